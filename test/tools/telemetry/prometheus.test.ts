import promClient from "prom-client";
import { describe, expect, it } from "vitest";
import { type Lease, PermanentError, SetupError, type Turn } from "../../../src/index.ts";
import type { SqliteDatabase } from "../../../src/stores/sqlite.ts";
import { prometheusMetrics } from "../../../src/tools/telemetry/index.ts";
import { METRICS } from "../../../src/tools/telemetry/names.ts";
import { prometheusName } from "../../../src/tools/telemetry/prometheus.ts";
import { type Bench, memoryBench, sqliteBench } from "../../receiver/bench.ts";
import { inbound, outbound } from "../../receiver/events.ts";
import { parseScrape } from "./scrape.ts";

const PUT_BACK = 'oncehook_attempts_total{oncehook_attempt_ending="put_back"}';

function watch<Tx>({ receiver }: Bench<Tx>): promClient.Registry {
  const register = new promClient.Registry();
  prometheusMetrics(receiver, promClient, { register });
  return register;
}

describe("a scrape", () => {
  it("parses, and has every metric with its type and its help", async () => {
    const scrape = parseScrape(await watch(sqliteBench()).metrics());
    expect([...scrape.types]).toEqual(
      expect.arrayContaining(Object.values(METRICS).map((metric) => [prometheusName(metric), metric.kind])),
    );
    expect(scrape.types.size).toBe(Object.keys(METRICS).length);
    expect(scrape.helps.size).toBe(scrape.types.size);
  });

  it("tells what happened", async () => {
    const bench = sqliteBench();
    const register = watch(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    await bench.deliver(inbound(), { secret: "not-the-signing-secret-of-the-se" });
    await bench.receiver.drain();
    const { samples } = parseScrape(await register.metrics());
    const process = 'messaging_system_name="messaging_service",messaging_operation_name="process"';
    expect(
      samples.get(
        `messaging_client_consumed_messages_total{${process},messaging_destination_name="message.inbound",oncehook_source="service"}`,
      ),
    ).toBe(1);
    expect(
      samples.get('oncehook_deliveries_total{oncehook_delivery_outcome="accepted",oncehook_source="service"}'),
    ).toBe(1);
    expect(samples.get('oncehook_signature_failures_total{oncehook_delivery_reason="signature_mismatch"}')).toBe(1);
    expect(samples.get('oncehook_secret_uses_total{oncehook_secret_slot="current",oncehook_source="service"}')).toBe(1);
    expect(samples.get('oncehook_attempts_total{oncehook_attempt_ending="handled"}')).toBe(1);
    expect(samples.get("oncehook_inbox_pending")).toBe(0);
    expect(samples.get("oncehook_commit_size_sum")).toBe(2);
  });

  it("says that it does not know what an inbox holds that does not answer", async () => {
    const bench = sqliteBench();
    const register = watch(bench);
    bench.store.faults.reads = new Error("no");
    expect(parseScrape(await register.metrics()).samples.get("oncehook_inbox_pending")).toBeNaN();
  });
});

describe("an inbox that does not answer", () => {
  it("holds up a scrape for 2 s, and is not asked again meanwhile", async () => {
    const bench = memoryBench();
    let reads = 0;
    Object.assign(bench.store, {
      stats: () => {
        reads += 1;
        return new Promise(() => {});
      },
    });
    const register = watch(bench);
    for (let scrapes = 0; scrapes < 4; scrapes++) {
      const scrape = register.metrics();
      await bench.clock.advance(2_000);
      expect(parseScrape(await scrape).samples.get("oncehook_inbox_pending")).toBeNaN();
      await bench.clock.advance(5_000);
    }
    expect(reads).toBe(1);
  });
});

describe("what an alert looks for", () => {
  it("is there from the first scrape on, so that its first increase shows", async () => {
    const { samples } = parseScrape(await watch(memoryBench()).metrics());
    const series = [
      'oncehook_deliveries_total{oncehook_delivery_outcome="accepted",oncehook_source="service"}',
      'oncehook_deliveries_total{oncehook_delivery_outcome="conflict",oncehook_source="service"}',
      'oncehook_attempts_total{oncehook_attempt_ending="lost"}',
      'oncehook_attempts_total{oncehook_attempt_ending="handled"}',
      'oncehook_secret_uses_total{oncehook_secret_slot="previous",oncehook_source="service"}',
      "oncehook_gaps_given_up_total",
      "oncehook_commit_failures_total",
    ];
    expect(series.map((name) => samples.get(name))).toEqual(series.map(() => 0));
  });
});

describe("a label that handlers choose", () => {
  it("has 50 values at most, and _OTHER for what comes after", async () => {
    const bench = sqliteBench();
    const register = watch(bench);
    let thrown = 0;
    bench.receiver.onAny(() => {
      thrown += 1;
      throw Object.assign(new PermanentError("no"), { code: `ORDER_${thrown}` });
    });
    for (let id = 0; id < 60; id++) await bench.deliver(inbound({ messageId: `m${id}` }));
    await bench.receiver.drain();
    const failures = [...parseScrape(await register.metrics()).samples].filter(
      ([name]) => name.startsWith("messaging_client") && name.includes("error_type"),
    );
    expect(failures).toHaveLength(51);
    expect(failures.find(([name]) => name.includes('error_type="_OTHER"'))?.[1]).toBe(10);
  });
});

describe("messaging_client_consumed_messages_total", () => {
  it("counts no attempt that no handler was called for", async () => {
    const bench = sqliteBench();
    const register = watch(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    const { step } = bench.store;
    // Of a body that is no event to this version.
    const unreadable = (lease: Lease) => ({ ...lease, raw: Buffer.from("{}") });
    Object.assign(bench.store, {
      async step(turn: Turn<SqliteDatabase>) {
        const result = await step(turn);
        return { ...result, leases: result.leases.map(unreadable) };
      },
    });
    await bench.receiver.drain();
    const { samples } = parseScrape(await register.metrics());
    expect(samples.get('oncehook_attempts_total{oncehook_attempt_ending="dead"}')).toBe(1);
    expect([...samples.keys()].filter((name) => name.startsWith("messaging_"))).toEqual([]);
  });
});

describe("oncehook_commit_duration_seconds", () => {
  it("measures also what only claims", async () => {
    const bench = sqliteBench();
    const register = watch(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    await bench.receiver.drain();
    const { samples } = parseScrape(await register.metrics());
    const counts = ["size", "duration_seconds"].map((name) => samples.get(`oncehook_commit_${name}_count`));
    // The delivery, the claim and the end; the claim wrote none of what is counted.
    expect(counts).toEqual([2, 3]);
  });
});

describe("oncehook_gaps_given_up_total", () => {
  const gaps = async (register: promClient.Registry) =>
    parseScrape(await register.metrics()).samples.get("oncehook_gaps_given_up_total");

  it("counts a gap once, also when its event is replayed", async () => {
    const bench = sqliteBench({ gapWait: "eager" });
    const register = watch(bench);
    bench.receiver.onAny(() => {
      throw new PermanentError("no");
    });
    await bench.deliver(outbound("delivery"));
    await bench.receiver.drain();
    expect(await gaps(register)).toBe(1);
    await bench.receiver.inbox.replayAll();
    expect(await bench.receiver.drain()).toMatchObject({ claimed: 1 });
    expect(await gaps(register)).toBe(1);
  });

  it("counts a gap once, also when its event is put back after each probe", async () => {
    const bench = sqliteBench({ gapWait: "eager", concurrency: 1 });
    const register = watch(bench);
    bench.receiver.onAny(() => {
      throw new Error("down");
    });
    for (let id = 0; id < 40; id++) await bench.deliver(outbound("delivery", { messageId: `m${id}` }));
    await bench.receiver.start();
    for (let second = 0; second < 300; second++) await bench.clock.advance(1_000);
    expect(parseScrape(await register.metrics()).samples.get(PUT_BACK)).toBeGreaterThan(1);
    const { gapsSkipped } = (await bench.receiver.inbox.stats()).counters;
    expect(await gaps(register)).toBeLessThanOrEqual(gapsSkipped);
    expect(await gaps(register)).toBeGreaterThanOrEqual(20);
  });
});

describe("prometheusMetrics()", () => {
  it("registers with prom-client's own registry unless it is given another", async () => {
    prometheusMetrics(memoryBench().receiver, promClient);
    expect(parseScrape(await promClient.register.metrics()).types.size).toBe(Object.keys(METRICS).length);
    expect(() => prometheusMetrics(memoryBench({ name: "second" }).receiver, promClient)).toThrow(/already/);
    promClient.register.clear();
  });

  it("goes on with the metrics of the receiver that is taken over, also in a registry that was cleared", async () => {
    const register = new promClient.Registry();
    const before = sqliteBench();
    prometheusMetrics(before.receiver, promClient, { register });
    before.receiver.onAny(() => {});
    await before.deliver(inbound());
    const after = sqliteBench({ clock: before.clock }, before.file);
    prometheusMetrics(after.receiver, promClient, { register });
    after.receiver.onAny(() => {}).takeOver(before.receiver);
    await after.deliver(inbound({ messageId: "two" }));
    const accepted = 'oncehook_deliveries_total{oncehook_delivery_outcome="accepted",oncehook_source="service"}';
    const { samples } = parseScrape(await register.metrics());
    expect([samples.get(accepted), samples.get("oncehook_inbox_pending")]).toEqual([2, 2]);
    register.clear();
    prometheusMetrics(after.receiver, promClient, { register });
    await after.deliver(inbound({ messageId: "three" }));
    expect(parseScrape(await register.metrics()).samples.get(accepted)).toBe(3);
  });

  it("refuses what is not prom-client", () => {
    expect(() => prometheusMetrics(memoryBench().receiver, {} as never)).toThrow(SetupError);
    expect(() => prometheusMetrics(memoryBench().receiver, promClient, { registry: 1 } as never)).toThrow(/register/);
  });
});
