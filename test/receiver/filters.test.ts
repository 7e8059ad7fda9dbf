/** The option `filter`: what becomes of events that are not wanted, and of a filter that fails. */
import { setTimeout as realWait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createReceiver, type WebhookEvent } from "../../src/index.ts";
import { github, hmacSource, service, stripe } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { fixtures, incomingOf, signedRequest, TEST_SECRET, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { type BenchOptions, memoryBench, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const outcomeOf = ({ body }: { readonly body: string }) => (JSON.parse(body) as { outcome?: string }).outcome;
const MESSAGE = { source: "service", tenant: "apc_1", name: "msg_1", order: "sequence" } as const;
const notSent = (event: WebhookEvent) => event.eventType !== "message.sent";

/** A started receiver that notes the types that its handlers get. */
async function started(options: BenchOptions<never>, make: typeof memoryBench | typeof sqliteBench = sqliteBench) {
  const bench = make(options as BenchOptions<never> & BenchOptions<object>);
  const handled: string[] = [];
  bench.receiver.onAny((event) => void handled.push(event.eventType));
  bench.receiver.onLate((event) => void handled.push(`late ${event.eventType}`));
  await bench.receiver.start();
  const send = async (body: string) => outcomeOf(await bench.deliver(body));
  return { ...bench, handled, send };
}

describe("filter", () => {
  it("keeps the row of a filtered event in an ordered lane, without its body and the person's number", async () => {
    const { send, receiver } = await started({ filter: () => false });
    expect(await send(outbound("queued"))).toBe("filtered");
    const [row] = (await receiver.inbox.find({ outcome: "filtered" })).items;
    expect(row).toMatchObject({ state: "done", outcome: "filtered", attempts: 0, hasBody: false, late: false });
    const lane = await receiver.inbox.lane(MESSAGE);
    expect([lane?.peer, lane?.externalReference, lane?.status]).toEqual([null, null, "idle"]);
    expect(await receiver.inbox.replay(row?.id ?? 0)).toEqual({ ok: false, reason: "body_pruned" });
  });

  it("shows the number of a message from its first event that is wanted", async () => {
    const { send, receiver } = await started({ filter: ({ eventType }) => eventType !== "message.queued" });
    await send(outbound("queued"));
    await send(outbound("sent"));
    const lane = await receiver.inbox.lane(MESSAGE);
    expect([lane?.peer, lane?.externalReference]).toEqual(["+15550100002", "order-77"]);
  });

  it("keeps nothing of a filtered event in a lane without an order, and counts it", async () => {
    const { send, receiver, log } = await started({ filter: () => false, logEvents: true });
    const outcomes: unknown[] = [];
    receiver.instrument({ delivery: () => ({ ended: ({ outcome, late }) => void outcomes.push([outcome, late]) }) });
    expect(await send(inbound())).toBe("filtered");
    expect(await send(inbound())).toBe("filtered");
    expect(outcomes).toEqual([
      ["filtered", false],
      ["filtered", false],
    ]);
    expect((await receiver.inbox.find()).items).toEqual([]);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 0, filtered: 0 });
    expect(receiver.counters).toMatchObject({ "filtered:service": 2 });
    const [line] = log.filter(({ message }) => message.startsWith("Event was filtered"));
    expect(line?.fields).toEqual({ eventType: "message.inbound", sequence: 0, source: "service", id: "msg_in_1" });
  });

  it.each(["sqlite", "memory"] as const)('answers at once with ack: "handled", %s', async (kind) => {
    const options = { filter: notSent, ack: "handled" } as const;
    const { send, handled } = await started(options, kind === "memory" ? memoryBench : sqliteBench);
    expect(await send(outbound("queued"))).toBe("handled");
    expect(await send(outbound("sent"))).toBe("filtered");
    expect(await send(outbound("sent"))).toBe("duplicate");
    expect(await send(outbound("delivery"))).toBe("handled");
    expect(handled).toEqual(["message.queued", "message.delivery"]);
  });

  it("is not asked about bodies that are not events", async () => {
    const seen: unknown[] = [];
    const { send } = await started({ filter: (event) => seen.push(event) > 0 });
    expect(await send("{}")).toBe("quarantined");
    expect(seen).toEqual([]);
  });
});

describe("a filter that fails", () => {
  const failing: readonly (readonly [string, () => unknown, object])[] = [
    [
      "throws",
      () => {
        throw new TypeError("+15550100002 said Yes please");
      },
      { code: "filter_threw", error: "TypeError" },
    ],
    ["returns a promise", async () => false, { code: "filter_not_boolean", returned: "promise" }],
    ["rejects", () => Promise.reject(new Error("Yes please")), { code: "filter_not_boolean", returned: "promise" }],
    ["returns nothing", () => undefined, { code: "filter_not_boolean", returned: "undefined" }],
    ["returns 0", () => 0, { code: "filter_not_boolean", returned: "number" }],
  ];
  it.each(failing)(
    "lets the event in when it %s, with a warning without the event's contents",
    async (_, filter, fields) => {
      const { send, handled, log } = await started({ filter: filter as () => boolean });
      expect(await send(inbound())).toBe("accepted");
      await expect.poll(() => handled).toEqual(["message.inbound"]);
      // A rejection that nobody awaits would be reported by now.
      await realWait(5);
      expect(log.map((line) => line.fields)).toMatchObject([fields]);
      expect(JSON.stringify(log)).not.toMatch(/5550100002|Yes please/);
    },
  );

  it("warns once of a filter that returns no boolean, and ten times a second of one that throws", async () => {
    const wrong = await started({ filter: (() => undefined) as never });
    const throws = await started({
      filter: () => {
        throw new Error("no");
      },
    });
    for (let message = 0; message < 20; message++)
      for (const { send } of [wrong, throws])
        expect(await send(inbound({ messageId: `m${message}` }))).toBe("accepted");
    expect(wrong.codes()).toEqual(["filter_not_boolean"]);
    expect(throws.codes()).toEqual(Array.from({ length: 10 }, () => "filter_threw"));
  });

  it("fails at construction if it is not a function", () => {
    const store = memoryStore({ volatile: true });
    const filter = "message.sent" as never;
    const wrong = { code: "invalid_option", fields: { option: "filter" } };
    for (const make of [
      () => createReceiver({ secrets: TEST_SECRET, store, filter }),
      () => service({ secrets: TEST_SECRET, filter }),
      () => stripe({ secrets: TEST_SECRETS.stripe, filter }),
      () =>
        hmacSource({ preset: "acme", header: "x-sign", identity: "digest", lastRetryMs: 0 })({ secrets: "s", filter }),
    ])
      expect(make).toThrow(expect.objectContaining(wrong));
  });
});

describe("filter of another source", () => {
  it("sees the headers that the source keeps, and keeps no row where events are by themselves", async () => {
    const code = github({
      secrets: TEST_SECRETS.github,
      filter: (_event, head) => head.header("x-github-event") !== "push" && head.header("cookie") === undefined,
    });
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), sources: { code } });
    receiver.source("code").onAny(() => {});
    await receiver.start();
    const send = async (type?: string) => {
      const request = signedRequest(fixtures.github(), { source: "github", ...(type && { type }) });
      return outcomeOf(await receiver.source("code").handle(incomingOf(request)));
    };
    expect([await send(), await send("issues")]).toEqual(["filtered", "handled"]);
    expect((await receiver.inbox.find()).items.map(({ eventType }) => eventType)).toEqual(["issues"]);
    expect(receiver.counters).toMatchObject({ "filtered:code": 1 });
    await receiver.stop();
  });
});
