import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { DataPointType, MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PermanentError, SetupError } from "../../../src/index.ts";
import { openTelemetry } from "../../../src/tools/telemetry/index.ts";
import { RunningTotals, TypeLabels } from "../../../src/tools/telemetry/measuring.ts";
import { METRICS } from "../../../src/tools/telemetry/names.ts";
import { type Bench, MINUTE, memoryBench, sqliteBench, until } from "../../receiver/bench.ts";
import { inbound, outbound } from "../../receiver/events.ts";

const manager = new AsyncLocalStorageContextManager();
beforeAll(() => void api.context.setGlobalContextManager(manager.enable()));
afterAll(() => api.context.disable());

class Reader extends MetricReader {
  protected override async onForceFlush() {}
  protected override async onShutdown() {}
}

/** Spans and metrics in memory, of one receiver. */
function watch<Tx>({ receiver }: Bench<Tx>, system?: string) {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const reader = new Reader();
  const meter = new MeterProvider({ readers: [reader] }).getMeter("test");
  openTelemetry(receiver, api, { tracer: tracers.getTracer("test"), meter, ...(system !== undefined && { system }) });
  return {
    tracer: tracers.getTracer("application"),
    spans: () => exporter.getFinishedSpans(),
    /** By name: value and attributes of each point; of a histogram its count and its sum. */
    async metrics(): Promise<Record<string, { value: unknown; attributes: object }[]>> {
      const { resourceMetrics } = await reader.collect();
      const found = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
      return Object.fromEntries(
        found.map(({ descriptor, dataPointType, dataPoints }) => [
          descriptor.name,
          dataPoints.map(({ value, attributes }) => {
            if (dataPointType !== DataPointType.HISTOGRAM) return { value, attributes };
            const { count, sum } = value as { count: number; sum: number };
            return { value: { count, sum }, attributes };
          }),
        ]),
      );
    },
  };
}

/** Series have no order. */
function byText(one: object, other: object): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

describe("the span of an attempt", () => {
  it("is named after the event's type, has the conventions' attributes, and is linked to the delivery", async () => {
    const bench = sqliteBench();
    const { spans } = watch(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(outbound("queued", { messageId: "msg_77" }), { headers: { traceparent } });
    await bench.receiver.drain();
    const [span] = spans();
    expect(span?.name).toBe("process message.queued");
    expect(span?.kind).toBe(api.SpanKind.CONSUMER);
    expect(span?.parentSpanContext).toBeUndefined();
    expect(span?.links.map(({ context }) => context)).toEqual([
      { traceId: "a".repeat(32), spanId: "b".repeat(16), traceFlags: 1, isRemote: true },
    ]);
    expect(span?.status).toEqual({ code: api.SpanStatusCode.UNSET });
    expect(span?.attributes).toEqual({
      "messaging.system.name": "messaging_service",
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "messaging.destination.name": "message.queued",
      "messaging.message.id": "msg_77",
      "oncehook.source": "service",
      "oncehook.lane": "msg_77",
      "oncehook.event.id": 1,
      "oncehook.event.sequence": 1,
      "oncehook.event.late": false,
      "oncehook.event.replay": false,
      "oncehook.attempt.number": 1,
      "oncehook.attempt.ending": "handled",
    });
  });

  it("says what failed by its code, and not by its message", async () => {
    const bench = sqliteBench();
    const { spans } = watch(bench);
    bench.receiver.on("message.inbound", () => {
      throw new PermanentError("No customer +15550100002");
    });
    await bench.deliver(inbound());
    await bench.receiver.drain();
    const [span] = spans();
    expect(span?.links).toEqual([]);
    expect(span?.status).toEqual({ code: api.SpanStatusCode.ERROR, message: "permanent_failure" });
    expect(span?.attributes).toMatchObject({
      "error.type": "permanent_failure",
      "oncehook.attempt.ending": "dead",
    });
    expect(span?.events).toEqual([]);
  });

  it("is the parent of what its handlers make, also after they awaited, and of nothing else", async () => {
    const bench = sqliteBench();
    const { spans, tracer } = watch(bench);
    bench.receiver.onAny(() => tracer.startSpan("first").end());
    bench.receiver.onAny(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      tracer.startSpan("second").end();
    });
    const request = tracer.startSpan("request");
    await api.context.with(api.trace.setSpan(api.context.active(), request), async () => {
      for (const messageId of ["one", "two"]) await bench.deliver(inbound({ messageId }));
      await bench.receiver.drain();
    });
    const attempts = spans().filter(({ name }) => name === "process message.inbound");
    expect(attempts.map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined]);
    for (const name of ["first", "second"]) {
      const parents = spans()
        .filter((span) => span.name === name)
        .map(({ parentSpanContext }) => parentSpanContext?.spanId);
      expect(parents.toSorted()).toEqual(attempts.map((span) => span.spanContext().spanId).toSorted());
    }
  });

  it("has no name that a sender chose", async () => {
    const bench = sqliteBench();
    const { spans } = watch(bench, "our_sms");
    bench.receiver.onAny(() => {});
    await bench.deliver(JSON.stringify({ eventType: "message.of +15550100002", data: {} }));
    await bench.receiver.drain();
    expect(spans()[0]?.name).toBe("process _OTHER");
    expect(JSON.stringify(spans()[0]?.attributes)).not.toContain("15550100002");
    expect(spans()[0]?.attributes).toMatchObject({ "messaging.system.name": "our_sms" });
    // Of what is no message that would be the digest of its body, by which whoever knows the rest finds the number.
    expect(spans()[0]?.attributes).not.toHaveProperty("messaging.message.id");
  });
});

describe("the metrics", () => {
  it("count deliveries, attempts and write transactions, and tell what the inbox holds", async () => {
    const bench = sqliteBench({ gapWait: "eager", maxAttempts: 1 });
    const { metrics } = watch(bench);
    bench.receiver.on("message.inbound", () => {
      throw new TypeError("no");
    });
    bench.receiver.on("message.delivery", () => {}).onLate(() => {});
    await bench.deliver(outbound("delivery"));
    await bench.deliver(outbound("delivery"));
    await bench.deliver(inbound());
    await bench.deliver("no event");
    await bench.deliver(inbound(), { secret: "not-the-signing-secret-of-the-se" });
    await bench.receiver.drain();
    await bench.deliver(outbound("queued"));
    await bench.clock.advance(MINUTE);
    const found = await metrics();
    expect(Object.keys(found).toSorted()).toEqual(
      Object.values(METRICS)
        .map(({ name }) => name)
        .toSorted(),
    );
    const source = { "oncehook.source": "service" };
    const process = { "messaging.system.name": "messaging_service", "messaging.operation.name": "process", ...source };
    const delivered = { ...process, "messaging.destination.name": "message.delivery" };
    const failed = { ...process, "messaging.destination.name": "message.inbound", "error.type": "TypeError" };
    expect(found["messaging.client.consumed.messages"]).toEqual([
      { value: 1, attributes: delivered },
      { value: 1, attributes: failed },
    ]);
    expect(found["messaging.process.duration"]).toEqual([
      { value: { count: 1, sum: 0 }, attributes: delivered },
      { value: { count: 1, sum: 0 }, attributes: failed },
    ]);
    const outcome = (outcome: string, reason?: string) => ({
      "oncehook.delivery.outcome": outcome,
      ...(reason !== undefined && { "oncehook.delivery.reason": reason }),
      ...source,
    });
    const counted = (name: string) => found[name]?.filter(({ value }) => value !== 0);
    expect(counted("oncehook.deliveries")?.toSorted(byText)).toEqual(
      [
        { value: 2, attributes: outcome("accepted") },
        { value: 1, attributes: outcome("duplicate") },
        { value: 1, attributes: outcome("quarantined", "invalid_json") },
        { value: 1, attributes: outcome("refused", "signature_mismatch") },
        { value: 1, attributes: outcome("late") },
      ].toSorted(byText),
    );
    const single = (name: string) => found[name]?.map(({ value }) => value);
    expect(found["oncehook.signature.failures"]).toEqual([
      { value: 1, attributes: { "oncehook.delivery.reason": "signature_mismatch" } },
    ]);
    expect(counted("oncehook.secret.uses")).toEqual([
      { value: 5, attributes: { "oncehook.secret.slot": "current", ...source } },
    ]);
    expect(single("oncehook.gaps.given_up")).toEqual([1]);
    expect(single("oncehook.events.late")).toEqual([1]);
    expect(single("oncehook.events.dead")).toEqual([1]);
    expect(single("oncehook.inbox.pending")).toEqual([1]);
    expect(single("oncehook.inbox.oldest_pending")).toEqual([60]);
    expect(single("oncehook.inbox.dead")).toEqual([1]);
    expect(single("oncehook.inbox.quarantined")).toEqual([1]);
    expect(single("oncehook.inbox.blocked_lanes")).toEqual([0]);
    expect(single("oncehook.commit.size")).toEqual([{ count: expect.any(Number), sum: 7 }]);
  });

  it("count what failed to be written, and leave the gauges out while the inbox does not answer", async () => {
    const bench = sqliteBench();
    const { metrics } = watch(bench);
    bench.receiver.onAny(() => {});
    bench.store.faults.step = new Error("no");
    bench.store.faults.reads = new Error("no");
    await bench.deliver(inbound());
    const found = await metrics();
    expect(found["oncehook.commit.failures"]).toEqual([{ value: 1, attributes: {} }]);
    expect(found["oncehook.inbox.pending"]?.length ?? 0).toBe(0);
  });

  it("read the inbox every 5 s at most", async () => {
    const bench = memoryBench();
    let reads = 0;
    const { stats } = bench.store;
    const counted = () => {
      reads += 1;
      return stats();
    };
    Object.assign(bench.store, { stats: counted });
    const { metrics } = watch(bench);
    for (let second = 0; second < 11; second++) {
      await metrics();
      await bench.clock.advance(1_000);
    }
    expect(reads).toBe(3);
  });
});

describe("openTelemetry()", () => {
  it("goes on with the counts of the receiver that is taken over, and does not count twice when it is called twice", async () => {
    const reader = new Reader();
    const meter = new MeterProvider({ readers: [reader] }).getMeter("test");
    const before = sqliteBench();
    openTelemetry(before.receiver, api, { meter });
    before.receiver.onAny(() => {});
    for (const messageId of ["one", "two", "three"]) await before.deliver(inbound({ messageId }));
    const after = sqliteBench({ clock: before.clock }, before.file);
    openTelemetry(after.receiver, api, { meter });
    openTelemetry(after.receiver, api, { meter });
    after.receiver.onAny(() => {}).takeOver(before.receiver);
    const valuesOf = async (wanted: string) => {
      const { resourceMetrics } = await reader.collect();
      const found = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
      const points = found
        .filter(({ descriptor }) => descriptor.name === wanted)
        .flatMap(({ dataPoints }) => dataPoints.map(({ value }) => value));
      return points.filter((value) => value !== 0);
    };
    expect(await valuesOf("oncehook.deliveries")).toEqual([3]);
    await after.deliver(inbound({ messageId: "four" }));
    // Of two that observe one counter, each collection would add the difference.
    for (let collection = 0; collection < 2; collection++) {
      expect(await valuesOf("oncehook.deliveries")).toEqual([4]);
    }
    expect(await valuesOf("oncehook.inbox.pending")).toHaveLength(1);
  });

  it("uses the API's own tracer and meter unless it is given others", async () => {
    const bench = memoryBench();
    openTelemetry(bench.receiver, api);
    let handled = 0;
    bench.receiver.onAny(() => void handled++);
    await bench.deliver(inbound());
    await until(() => handled === 1);
  });

  it.each([
    [() => openTelemetry(memoryBench().receiver, {} as never), /must be OpenTelemetry's API/],
    [() => openTelemetry(memoryBench().receiver, api, { sytem: "x" } as never), /Did you mean "system"/],
    [() => openTelemetry(memoryBench().receiver, api, { system: "" }), /"system"/],
  ])("refuses what it can not use (%#)", (call, message) => {
    expect(call).toThrow(SetupError);
    expect(call).toThrow(message);
  });
});

describe("TypeLabels", () => {
  const lane = (source: string) => ({ source, tenant: null, name: null, order: null });

  it("has 50 types of each source, and _OTHER for what comes after", () => {
    const labels = new TypeLabels();
    const of = (source: string, n: number) => labels.of({ lane: lane(source), eventType: `type.n${n}` });
    const ordinals = Array.from({ length: 60 }, (_, n) => n);
    expect(ordinals.filter((n) => of("one", n) !== "_OTHER")).toHaveLength(50);
    expect(of("another", 59)).toBe("type.n59");
    expect(of("one", 0)).toBe("type.n0");
  });

  it.each(["of somebody", "to:+15550100002", "to.15550100002"])("is _OTHER for %j", (eventType) => {
    expect(new TypeLabels().of({ lane: lane("one"), eventType })).toBe("_OTHER");
  });
});

describe("RunningTotals", () => {
  const labels = { type: "a", error: "b" };
  it.each<readonly [string, Readonly<Record<string, string>>]>([
    ["the value of the first label", { type: "b", error: "b" }],
    ["the value of the last label", { type: "a", error: "c" }],
    ["a label that is missing", { type: "a" }],
    ["the name of a label", { type: "a", source: "b" }],
    ["one value that spells two labels, for a key with NULs", { type: "a\0error\0b" }],
    ["one value that spells two labels, for a key with lengths", { type: "aerror 1 b" }],
  ])("counts apart what differs in one part: %s", (_part, other) => {
    const totals = new RunningTotals();
    for (const one of [labels, other, labels]) totals.add(one, 1);
    expect([...totals.counts()]).toEqual([
      { labels, value: 2 },
      { labels: other, value: 1 },
    ]);
  });
});
