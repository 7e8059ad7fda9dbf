/** What handlers see of order: sequences, gaps, late events, and events that this version does not know. */
import { describe, expect, it } from "vitest";
import type { WebhookEvent } from "../../src/index.ts";
import { MINUTE, memoryBench, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

interface Seen {
  readonly type: string;
  readonly missing: unknown;
}

interface Watched {
  onAny(handler: (event: WebhookEvent, ctx: { readonly missing: unknown }) => unknown): unknown;
}

/** Notes what each handler is given. */
function watch({ receiver }: { readonly receiver: Watched }): Seen[] {
  const seen: Seen[] = [];
  receiver.onAny((event, ctx) => void seen.push({ type: event.eventType, missing: ctx.missing }));
  return seen;
}

const types = (seen: readonly Seen[]) => seen.map(({ type }) => type);

describe.each([
  ["memory", () => memoryBench({ ack: "handled" })],
  ["SQLite", () => sqliteBench({ ack: "handled" })],
] as const)("order with the %s store", (_, makeBench) => {
  it("hands a message's events out by ascending sequence, in whatever order they come (RCV-7, DLV-10)", async () => {
    const bench = makeBench();
    const seen = watch(bench);
    await bench.receiver.start();
    expect((await bench.deliver(outbound("delivery"))).status).toBe(503);
    expect((await bench.deliver(outbound("sent"))).status).toBe(503);
    expect((await bench.deliver(outbound("queued"))).status).toBe(200);
    await until(() => seen.length === 3);
    expect(types(seen)).toEqual(["message.queued", "message.sent", "message.delivery"]);
    expect(await bench.deliver(outbound("delivery"))).toMatchObject({ status: 200, body: '{"outcome":"duplicate"}' });
  });
});

describe("gaps", () => {
  it("wait 22 minutes, then go on and say what is missing (RCV-7)", async () => {
    const bench = memoryBench();
    const seen = watch(bench);
    await bench.receiver.start();
    await bench.deliver(outbound("delivery"));
    await bench.clock.advance(22 * MINUTE - 1_000);
    expect(seen).toEqual([]);
    await bench.clock.advance(2_000);
    expect(seen).toEqual([{ type: "message.delivery", missing: { from: 1, to: 2 } }]);
    expect((await bench.receiver.inbox.stats()).counters.gapsSkipped).toBe(1);
  });

  it.each([
    ["strict", 84 * MINUTE, 2 * MINUTE],
    [() => 5_000, 4_000, 2_000],
  ] as const)("follow gapWait %s", async (gapWait, before, after) => {
    const bench = memoryBench({ gapWait });
    const seen = watch(bench);
    await bench.receiver.start();
    await bench.deliver(outbound("sent"));
    await bench.clock.advance(before);
    expect(seen).toEqual([]);
    await bench.clock.advance(after);
    expect(types(seen)).toEqual(["message.sent"]);
  });

  it("lose no event when gapWait gives no wait: it is kept until that is fixed", async () => {
    let wait = Number.NaN;
    const { deliver, receiver } = sqliteBench({ gapWait: () => wait });
    expect((await deliver(outbound("sent"))).body).toBe('{"outcome":"quarantined"}');
    expect((await deliver(inbound())).body).toBe('{"outcome":"accepted"}');
    const [row] = (await receiver.inbox.findQuarantined()).items;
    expect(row?.reason).toBe("source_failed");
    wait = 0;
    expect(await receiver.inbox.replayQuarantined(row?.id ?? 0)).toMatchObject({ ok: true });
  });

  it('are none with firstSequence: "any", and start where it says else (EVT-8)', async () => {
    const any = sqliteBench({ firstSequence: "any" });
    const seen = watch(any);
    await any.receiver.start();
    await any.deliver(outbound("delivery"));
    await until(() => seen.length === 1);
    expect(seen[0]?.missing).toBeNull();
  });
});

describe("late events (RCV-7)", () => {
  it("go to onLate only, marked as out of order (RCV-7)", async () => {
    const bench = sqliteBench({ gapWait: "eager" });
    const seen = watch(bench);
    const late: [string, boolean][] = [];
    bench.receiver.onLate((event, ctx) => void late.push([event.eventType, ctx.outOfOrder]));
    await bench.receiver.start();
    await bench.deliver(outbound("delivery"));
    await until(() => seen.length === 1);
    await bench.deliver(outbound("queued"));
    await until(() => late.length === 1);
    expect(late).toEqual([["message.queued", true]]);
    expect(types(seen)).toEqual(["message.delivery"]);
  });

  it("are not asked for when the receiver starts", async () => {
    const { receiver, codes } = sqliteBench();
    await receiver.on("message.sent", () => {}).start();
    expect(codes()).toEqual([]);
  });

  it("are not for on(), which refuses to be told to skip them", () => {
    const { receiver } = sqliteBench();
    expect(() => receiver.on("message.sent", () => {}, { late: "skip" })).toThrow(
      /go to onLate\(\), or are only recorded/,
    );
    expect(() => receiver.onAny(() => {}, { late: "keep" as "skip" })).toThrow(/"late"/);
  });
});

describe("what this version does not know (RCV-11)", () => {
  it.each([
    ["an unknown type", '{"eventType":"message.new","anything":[1,{"a":null}]}'],
    ["an unknown outbound type in its lane", outbound("queued", { extra: { eventType: "message.read" } })],
    ["odd fields", '{"eventType":"x","apiClientId":5,"direction":"sideways","messageId":[],"sequence":1.5,"data":0}'],
    ["an odd time", '{"eventType":"x","occurredAt":1e400}'],
    ["a fraction of a time", '{"eventType":"x","occurredAt":1.5}'],
    ["an unknown status", outbound("queued", { status: "read_by_customer" })],
    ["unknown fields", outbound("queued", { extra: { priority: 5, more: { deep: [true] } } })],
    ["media of any shape", inbound({ media: [1, null, "text", { nested: [{}] }] })],
  ])("takes %s without a retry, and hands it to onAny (RCV-11, EVT-13)", async (_, body) => {
    const bench = sqliteBench();
    const events: WebhookEvent[] = [];
    await bench.receiver.onAny((event) => void events.push(event)).start();
    expect(await bench.deliver(body)).toMatchObject({ status: 200, body: '{"outcome":"accepted"}' });
    await until(() => events.length === 1);
    expect(events[0]).toEqual(JSON.parse(body));
    expect((await bench.deliver(body)).body).toBe('{"outcome":"duplicate"}');
  });
});
