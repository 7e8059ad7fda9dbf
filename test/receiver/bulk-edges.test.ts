/** Work on many events where it is easily wrong: its order, many pages, and what was or became otherwise. */
import { describe, expect, it } from "vitest";
import { type LaneStatus, PermanentError, type Receiver } from "../../src/index.ts";
import { failureOf } from "../support/failure-of.ts";
import { DAY, idleTurns, memoryBench, sqliteBench, until } from "./bench.ts";
import { BulkScene } from "./bulk-scene.ts";
import { inbound, outbound } from "./events.ts";

const NOTHING = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 };

describe("the order of bulk work", () => {
  it("is message by message, and of a message by sequence, however the events came", async () => {
    const { receiver, deliver } = sqliteBench();
    await deliver(outbound("queued", { messageId: "one" }));
    await deliver(outbound("queued", { messageId: "two" }));
    await deliver(outbound("delivery", { messageId: "two" }));
    await deliver(outbound("delivery", { messageId: "one" }));
    await deliver(outbound("sent", { messageId: "one" }));
    expect(await receiver.inbox.discardAll({ states: ["pending"] })).toEqual({ ...NOTHING, discarded: 5 });
    const acts = (await receiver.inbox.audit()).map(({ detail }) => Number(/\d+/.exec(detail)?.[0]));
    expect(acts.reverse()).toEqual([1, 5, 4, 2, 3]);
  });
});

describe("what bulk work finds", () => {
  it("is all that matches, over many pages, and nothing else", async () => {
    const { receiver, deliver } = sqliteBench();
    const messages = Array.from({ length: 1_001 }, (_, index) => inbound({ messageId: `m ${index}` }));
    for (let n = 0; n < messages.length; n += 200) {
      await Promise.all(messages.slice(n, n + 200).map((message) => deliver(message)));
    }
    await receiver.inbox.discard(1);
    const wish = { dryRun: true } as const;
    expect(await receiver.inbox.discardAll({ states: ["pending"] }, wish)).toMatchObject({ discarded: 1_000 });
    await deliver(inbound({ messageId: "one more" }));
    expect(await receiver.inbox.discardAll({ states: ["pending"] }, wish)).toMatchObject({ discarded: 1_001 });
  });

  it("is read a hundred at a time, for bodies of a megabyte come with it", async () => {
    const { receiver, store, deliver } = sqliteBench();
    await deliver(inbound({ messageId: "one" }));
    const limits: unknown[] = [];
    const find = store.find;
    store.find = (query) => {
      limits.push(query.limit);
      return find(query);
    };
    expect(await receiver.inbox.discardAll({ states: ["pending"] })).toMatchObject({ discarded: 1 });
    await receiver.inbox.groupByError();
    expect(limits).toEqual([100, 100]);
  });
});

describe("upTo", () => {
  it("leaves out what came after it, also beyond a page", async () => {
    const { receiver, deliver } = sqliteBench();
    const messages = Array.from({ length: 1_003 }, (_, index) => inbound({ messageId: `m ${index}` }));
    for (let n = 0; n < messages.length; n += 200)
      await Promise.all(messages.slice(n, n + 200).map((message) => deliver(message)));
    const wish = (upTo: number) => ({ upTo, dryRun: true });
    const counted = (upTo: number) => receiver.inbox.discardAll({ states: ["pending"] }, wish(upTo));
    expect((await counted(3)).discarded).toBe(3);
    expect((await counted(1_002)).discarded).toBe(1_002);
    expect(await receiver.inbox.replayAll({ states: ["done"] }, wish(0))).toMatchObject({ replayed: 0 });
  });

  it.each([-1, 1.5, Number.NaN, "5"])("refuses %j", async (upTo) => {
    const refused = memoryBench().receiver.inbox.replayAll({}, { upTo: upTo as number });
    await expect(refused).rejects.toMatchObject({ code: "invalid_option", fields: { option: "upTo" } });
  });
});

describe("skipSuperseded", () => {
  it("takes no event for superseded by itself", async () => {
    const scene = new BulkScene();
    await scene.dead(1);
    const wish = { skipSuperseded: true, dryRun: true } as const;
    const counts = await scene.inbox.replayAll({ states: ["done"], messageId: "msg_1" }, wish);
    expect(counts).toEqual({ ...NOTHING, replayed: 1, superseded: 0 });
  });

  it("takes an event for superseded when the later one was handled and is pruned", async () => {
    const scene = new BulkScene();
    await scene.dead(2);
    const { clock, deliver, store } = scene.bench;
    await deliver(outbound("delivery", { messageId: "msg_1" }));
    await scene.settled();
    clock.set(clock.now() + 40 * DAY);
    await deliver(inbound());
    await store.prune({
      handledBodiesMs: DAY,
      otherBodiesMs: DAY,
      identitiesMs: 30 * DAY,
      deadMs: 90 * DAY,
      batch: 500,
    });
    const wish = { skipSuperseded: true, dryRun: true } as const;
    expect(await scene.inbox.replayAll({}, wish)).toEqual({ ...NOTHING, replayed: 1, superseded: 1 });
  });

  it("takes an event for superseded when a later one was handled and is pruned, before another dead letter", async () => {
    const scene = new BulkScene();
    scene.failing.add("message.queued").delete("message.sent");
    scene.failing.add("message.delivery");
    const { clock, deliver, store, receiver } = scene.bench;
    await receiver.start();
    for (const type of ["queued", "sent", "delivery"] as const) await deliver(outbound(type, { messageId: "msg_1" }));
    await scene.settled();
    const wish = { skipSuperseded: true, dryRun: true } as const;
    expect(await scene.inbox.replayAll({ states: ["dead"] }, wish)).toEqual({ ...NOTHING, replayed: 1, superseded: 1 });
    clock.set(clock.now() + 40 * DAY);
    await deliver(inbound());
    const bodies = { handledBodiesMs: DAY, otherBodiesMs: 90 * DAY };
    await store.prune({ ...bodies, identitiesMs: 30 * DAY, deadMs: 90 * DAY, batch: 500 });
    expect(await scene.inbox.replayAll({ states: ["dead"] }, wish)).toEqual({ ...NOTHING, replayed: 1, superseded: 1 });
  });

  it("goes on past a message that was pruned meanwhile, and counts its event as not found", async () => {
    const scene = new BulkScene();
    await scene.dead(2);
    const { clock, deliver, store } = scene.bench;
    const replaying = scene.inbox.replayAll({}, { skipSuperseded: true, ratePerSecond: 1 });
    await idleTurns(50);
    clock.set(clock.now() + 200 * DAY);
    await deliver(inbound());
    await store.prune({ handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 2 * DAY, deadMs: 2 * DAY, batch: 500 });
    await clock.advance(1_000);
    expect(await replaying).toEqual({ ...NOTHING, replayed: 1, superseded: 0, not_found: 1 });
  });
});

describe("a dry run of discardAll()", () => {
  /** Messages of which the handlers of one type never end. */
  function stuckAt(eventType: string) {
    const bench = memoryBench({ gapWait: "eager" });
    const handle = (event: { readonly eventType: string }) =>
      event.eventType === eventType ? new Promise<void>(() => {}) : undefined;
    bench.receiver.onAny(handle).onLate(handle);
    const dryRun = () => bench.receiver.inbox.discardAll({ states: ["pending"] }, { dryRun: true });
    const leased = () =>
      until(async () => (await bench.receiver.inbox.findLanes({ statuses: ["leased"] })).items.length === 1);
    return { ...bench, dryRun, leased };
  }

  it("foresees that an event is being handled, behind one that was", async () => {
    const { receiver, deliver, dryRun, leased } = stuckAt("message.sent");
    await receiver.start();
    await deliver(outbound("queued"));
    void deliver(outbound("sent"));
    await leased();
    expect(await dryRun()).toEqual({ ...NOTHING, discarded: 0, in_progress: 1 });
  });

  it("foresees that a late event is being handled, before one that waits", async () => {
    const { receiver, deliver, dryRun, leased } = stuckAt("message.queued");
    await receiver.start();
    await deliver(outbound("sent"));
    void deliver(outbound("queued"));
    await leased();
    void deliver(outbound("delivery"));
    await until(async () => (await receiver.inbox.stats()).gauges.pending === 2);
    expect(await dryRun()).toEqual({ ...NOTHING, discarded: 1, in_progress: 1 });
  });

  it("foresees that a late event, which failed and is to be tried again, is not the one being handled", async () => {
    const { receiver, deliver, clock } = sqliteBench({ gapWait: "eager" });
    receiver.onAny(({ eventType }) => (eventType === "message.delivery" ? new Promise<void>(() => {}) : undefined));
    receiver.onLate(() => Promise.reject(new Error("busy")));
    await receiver.start();
    const status = (name: LaneStatus) =>
      until(async () => (await receiver.inbox.findLanes({ statuses: [name] })).items.length === 1, name);
    await deliver(outbound("sent"));
    await status("idle");
    await deliver(outbound("queued"));
    await status("backoff");
    await deliver(outbound("delivery"));
    await clock.advance(5_000);
    await status("leased");
    const foreseen = (eventType: string) =>
      receiver.inbox.discardAll({ states: ["pending"], eventType }, { dryRun: true });
    expect(await foreseen("message.queued")).toEqual({ ...NOTHING, discarded: 1 });
    expect(await foreseen("message.delivery")).toEqual({ ...NOTHING, discarded: 0, in_progress: 1 });
  });
});

describe("inbox.groupByError()", () => {
  it("tells when the first and the last of a group became dead letters, not when they came", async () => {
    const { receiver, deliver, clock } = sqliteBench();
    const startAt = clock.now();
    receiver.onAny((_, ctx) => {
      throw new PermanentError(`No order ${ctx.meta.eventId ** 8}`);
    });
    const dead = (count: number) => until(async () => (await receiver.inbox.stats()).gauges.dead === count);
    await deliver(inbound({ messageId: "one" }));
    await clock.advance(5_000);
    await receiver.start();
    await dead(1);
    for (const [index, messageId] of ["two", "three"].entries()) {
      await clock.advance(1_000);
      await deliver(inbound({ messageId }));
      await dead(index + 2);
    }
    const [group, ...others] = await receiver.inbox.groupByError();
    expect(group).toMatchObject({ error: "No order #", count: 3, exampleId: 3 });
    expect([group?.oldestAt, group?.newestAt]).toEqual([startAt + 5_000, startAt + 7_000]);
    expect(others).toEqual([]);
  });
});

describe("what bulk work says of a mistake", () => {
  const bulk = (ask: (inbox: Receiver["inbox"]) => Promise<unknown>) => () => ask(memoryBench().receiver.inbox);
  it.each([
    [
      bulk((inbox) => inbox.replayAll({ states: ["dead", "pending"] })),
      'a list of "done", "dead", "late", "discarded"',
    ],
    [bulk((inbox) => inbox.replayAll({}, { signal: "now" as never })), "must be an AbortSignal"],
    [bulk((inbox) => inbox.replayAll({}, { ratePerSecond: 0 })), "from 0.01 to 100000 a second"],
    [bulk((inbox) => inbox.replayAll({}, { rate: 5 } as never)), "inbox.replayAll() has no option"],
    [bulk((inbox) => inbox.replayAll({}, { skipSuperseded: "no" } as never)), 'Option "skipSuperseded"'],
    [bulk((inbox) => inbox.discardAll({}, { skipSuperseded: true } as never)), "inbox.discardAll() has no option"],
    [bulk((inbox) => inbox.erase({ per: "+15550100002" } as never)), "inbox.erase()"],
    [bulk((inbox) => inbox.exportSubject({ per: "+15550100002" } as never).next()), "inbox.exportSubject()"],
  ])("says what it takes instead (%#)", async (asked, words) => {
    expect(((await failureOf(asked())) as Error).message).toContain(words);
  });
});
