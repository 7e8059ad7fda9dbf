/** Work on many events of an inbox: dead letters by error, and replaying or discarding all that match, at a rate. */
import { beforeEach, describe, expect, it } from "vitest";
import {
  type BulkProgress,
  type LaneStatus,
  PermanentError,
  type Receiver,
  type ReplayCounts,
} from "../../src/index.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { failureOf } from "../support/failure-of.ts";
import { DAY, idleTurns, memoryBench, sqliteBench, until } from "./bench.ts";
import { BulkScene } from "./bulk-scene.ts";
import { inbound, outbound } from "./events.ts";

/** A clock whose timers, as those of Node.js, take whole milliseconds and one at least. */
function tickingClock() {
  const clock = createFakeClock();
  const setTimeout = (callback: () => void, ms: number) => clock.setTimeout(callback, Math.max(1, Math.trunc(ms)));
  return { ...clock, setTimeout };
}

const NOTHING = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 };

let scene: BulkScene;
beforeEach(() => {
  scene = new BulkScene();
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

  it("counts dead letters that failed alike, whatever numbers their errors tell", async () => {
    await scene.dead(3);
    await scene.bench.clock.advance(1_000);
    const groups = await scene.inbox.groupByError();
    expect(groups).toMatchObject([{ errorCode: "permanent_failure", error: "No order #", count: 3, exampleId: 6 }]);
    expect(groups[0]?.newestAt).toBeLessThan(scene.bench.clock.now());
    expect(groups[0]?.oldestAt).toBeLessThanOrEqual(groups[0]?.newestAt ?? 0);
    expect(await scene.inbox.groupByError({ lane: "msg_2" })).toMatchObject([{ count: 1, exampleId: 5 }]);
    expect(await scene.inbox.groupByError({ errorCode: "other" })).toEqual([]);
  });

  it("gives the largest group first, and of two alike the one that was added to last", async () => {
    await scene.dead(1);
    for (const messageId of ["msg_x", "msg_y", "msg_yy"]) {
      await scene.bench.clock.advance(1_000);
      for (const kind of ["queued", "sent"] as const) await scene.bench.deliver(outbound(kind, { messageId }));
      await scene.settled();
    }
    await scene.bench.deliver(outbound("queued", { messageId: "msg_2" }));
    await scene.bench.deliver(outbound("sent", { messageId: "msg_2" }));
    await scene.settled();
    const groups = await scene.inbox.groupByError();
    expect(groups.map(({ error, count }) => [error, count])).toEqual([
      ["No order #", 2],
      ["No order yy", 1],
      ["No order y", 1],
      ["No order x", 1],
    ]);
  });
});

describe("inbox.replayAll()", () => {
  it("replays every dead letter in lane and sequence order, and counts them", async () => {
    await scene.dead(5);
    scene.mended = true;
    expect(await scene.inbox.replayAll({}, { by: "ann" })).toEqual({ ...NOTHING, replayed: 5, superseded: 0 });
    await scene.settled();
    expect(scene.handled).toEqual([1, 2, 3, 4, 5].map((n) => `msg_${n} 2`));
    expect(await scene.inbox.audit(1)).toMatchObject([{ act: "replay", by: "ann" }]);
    expect(await scene.inbox.replayAll()).toMatchObject({ replayed: 0, wrong_state: 0 });
  });

  it("leaves out what a later event of the message superseded, when asked to", async () => {
    await scene.dead(3);
    await scene.bench.deliver(outbound("delivery", { messageId: "msg_2" }));
    await scene.settled();
    scene.mended = true;
    const wish = { skipSuperseded: true } as const;
    const expected = { ...NOTHING, replayed: 2, superseded: 1 };
    expect(await scene.inbox.replayAll({}, { ...wish, dryRun: true })).toEqual(expected);
    expect((await scene.inbox.stats()).gauges.dead).toBe(3);
    expect(await scene.inbox.replayAll({}, wish)).toEqual(expected);
    await scene.settled();
    expect((await scene.inbox.find({ states: ["dead"] })).items.map(({ lane }) => lane.name)).toEqual(["msg_2"]);
    expect(await scene.inbox.replayAll()).toMatchObject({ replayed: 1 });
  });

  it("asks at the moment of the act whether an event is superseded, not before it waits", async () => {
    await scene.dead(2);
    scene.mended = true;
    const replaying = scene.inbox.replayAll({}, { skipSuperseded: true, ratePerSecond: 1 });
    await idleTurns(50);
    await scene.bench.deliver(outbound("delivery", { messageId: "msg_2" }));
    await scene.settled();
    await scene.bench.clock.advance(1_000);
    expect(await replaying).toEqual({ ...NOTHING, replayed: 1, superseded: 1 });
    await scene.settled();
    expect(scene.handled).toEqual(["msg_1 2", "msg_2 3"]);
  });

  it("takes no event for superseded by one that was not handled itself", async () => {
    scene.failing.add("message.delivery");
    await scene.dead(1);
    await scene.bench.deliver(outbound("delivery", { messageId: "msg_1" }));
    await until(async () => (await scene.inbox.stats()).gauges.dead === 2);
    scene.mended = true;
    expect(await scene.inbox.replayAll({}, { skipSuperseded: true })).toMatchObject({ replayed: 2, superseded: 0 });
    await scene.settled();
    expect(scene.handled).toEqual(["msg_1 2", "msg_1 3"]);
  });

  it("tells how far it is, stops when it is told to, and goes on when it is called again", async () => {
    await scene.dead(5);
    scene.mended = true;
    const stop = new AbortController();
    const told: BulkProgress<ReplayCounts>[] = [];
    const replaying = scene.inbox.replayAll(
      {},
      {
        signal: stop.signal,
        onProgress(progress) {
          told.push(progress);
          if (progress.done === 2) stop.abort(new Error("enough"));
        },
      },
    );
    await expect(replaying).rejects.toThrow("enough");
    const acted = (await scene.inbox.audit()).map(({ detail }) => Number(/\d+/.exec(detail)));
    expect(told).toMatchObject([
      { total: 5, done: 1, counts: { replayed: 1 }, id: acted[1], end: "replayed" },
      { total: 5, done: 2, counts: { replayed: 2 }, id: acted[0], end: "replayed" },
    ]);
    expect(await scene.inbox.replayAll()).toMatchObject({ replayed: 3 });
  });

  it("stops while it waits for the next one's time", async () => {
    await scene.dead(2);
    const stop = new AbortController();
    const replaying = scene.inbox.replayAll({}, { signal: stop.signal, ratePerSecond: 0.01 });
    const failed = failureOf(replaying);
    await idleTurns();
    stop.abort(new Error("enough"));
    expect(await failed).toMatchObject({ message: "enough" });
    expect((await scene.inbox.audit()).length).toBe(1);
  });

  it.each(["replayAll", "discardAll"] as const)("stops while it still finds what matches (%s)", async (work) => {
    await scene.dead(5);
    const stop = new AbortController();
    const { store } = scene.bench;
    const find = store.find.bind(store);
    let pages = 0;
    store.find = (query) => {
      pages += 1;
      if (pages === 2) stop.abort(new Error("enough"));
      return find({ ...query, limit: 1 });
    };
    await expect(scene.inbox[work]({}, { signal: stop.signal })).rejects.toThrow("enough");
    expect(pages).toBe(2);
    expect(await scene.inbox.audit()).toEqual([]);
  });

  it("hands nothing out twice that somebody else replayed meanwhile, though it is again as it was found", async () => {
    await scene.dead(2);
    const replaying = scene.inbox.replayAll({}, { ratePerSecond: 1 });
    await idleTurns(50);
    await scene.bench.clock.advance(1);
    expect(await scene.inbox.replay(4)).toMatchObject({ ok: true });
    await scene.settled();
    expect((await scene.inbox.find({ states: ["dead"] })).items.map(({ id }) => id)).toContain(4);
    await scene.bench.clock.advance(999);
    expect(await replaying).toMatchObject({ replayed: 1, wrong_state: 1 });
  });

  it("counts what is erased as such, also beforehand", async () => {
    await scene.dead(2);
    await scene.inbox.erase({ id: "msg_1" });
    const expected = { ...NOTHING, replayed: 1, superseded: 0, body_pruned: 1 };
    expect(await scene.inbox.replayAll({}, { dryRun: true })).toEqual(expected);
    expect(await scene.inbox.replayAll()).toEqual(expected);
  });
});

describe("inbox.discardAll()", () => {
  it("discards dead letters, or pending events when it is told to, and nothing in a dry run", async () => {
    const { receiver, deliver } = scene.bench;
    await scene.dead(2);
    receiver.pause();
    await deliver(inbound());
    const expected = { ...NOTHING, discarded: 2 };
    expect(await scene.inbox.discardAll({}, { dryRun: true })).toEqual(expected);
    expect(await scene.inbox.discardAll({}, { by: "ann" })).toEqual(expected);
    expect((await scene.inbox.stats()).gauges).toMatchObject({ dead: 0, pending: 1 });
    expect(await scene.inbox.discardAll({ states: ["pending"] })).toEqual({ ...NOTHING, discarded: 1 });
  });

  it("foresees which event of a message a worker holds, and which wait, and leaves the first alone", async () => {
    const { receiver, deliver, clock } = memoryBench({ maxAttempts: 5 });
    let failing = true;
    receiver.onAny(() => (failing ? Promise.reject(new Error("busy")) : new Promise(() => {})));
    await receiver.start();
    const dryRun = () => receiver.inbox.discardAll({ states: ["pending"] }, { dryRun: true });
    void deliver(outbound("queued", { messageId: "msg_1" }));
    void deliver(outbound("sent", { messageId: "msg_1" }));
    await until(async () => (await receiver.inbox.findLanes({ statuses: ["backoff"] })).items.length === 1);
    expect(await dryRun()).toEqual({ ...NOTHING, discarded: 2 });
    failing = false;
    await clock.advance(60_000);
    const expected = { ...NOTHING, discarded: 1, in_progress: 1 };
    expect(await dryRun()).toEqual(expected);
    expect(await receiver.inbox.discardAll({ states: ["pending"] })).toEqual(expected);
  });
});

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

describe("upTo", () => {
  it("leaves out what came after it, also beyond a page; without it all that matches is found", async () => {
    const { receiver, deliver } = sqliteBench();
    const messages = Array.from({ length: 1_004 }, (_, index) => inbound({ messageId: `m ${index}` }));
    for (let n = 0; n < messages.length; n += 200)
      await Promise.all(messages.slice(n, n + 200).map((message) => deliver(message)));
    await receiver.inbox.discard(1);
    const counted = async (wish: object) =>
      (await receiver.inbox.discardAll({ states: ["pending"] }, { ...wish, dryRun: true })).discarded;
    expect([await counted({ upTo: 4 }), await counted({ upTo: 1_003 }), await counted({})]).toEqual([3, 1_002, 1_003]);
    const none = await receiver.inbox.replayAll({ states: ["done"] }, { upTo: 0, dryRun: true });
    expect(none.replayed).toBe(0);
  });
});

describe("skipSuperseded", () => {
  it("takes no event for superseded by itself", async () => {
    await scene.dead(1);
    const wish = { skipSuperseded: true, dryRun: true } as const;
    const counts = await scene.inbox.replayAll({ states: ["done"], lane: "msg_1" }, wish);
    expect(counts).toEqual({ ...NOTHING, replayed: 1, superseded: 0 });
  });

  it("takes an event for superseded when a later one was handled and is pruned, before another dead letter", async () => {
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

describe("ratePerSecond", () => {
  it("does not hurry after a store that was slow", async () => {
    await scene.dead(3);
    const { store, clock } = scene.bench;
    const act = store.act.bind(store);
    store.act = async (...asked) => {
      await clock.advance(2_000);
      store.act = act;
      return act(...asked);
    };
    const done: number[] = [];
    const onProgress = (progress: { done: number }) => done.push(progress.done);
    const replaying = scene.inbox.replayAll({}, { ratePerSecond: 2, onProgress });
    await idleTurns(50);
    expect(done).toEqual([1, 2]);
    await clock.advance(500);
    expect(await replaying).toMatchObject({ replayed: 3 });
  });

  it.each([900, 5_000])("is reached at %i/s, whose acts are not timer ticks apart, and not passed", async (rate) => {
    const scene = new BulkScene(tickingClock());
    await scene.dead(25);
    const { clock } = scene.bench;
    const startedAt = clock.monotonic();
    let isDone = false;
    const replaying = scene.inbox.replayAll({}, { ratePerSecond: rate }).finally(() => {
      isDone = true;
    });
    for (await idleTurns(60); !isDone; await idleTurns(60)) await clock.advance(1);
    expect(await replaying).toMatchObject({ replayed: 25 });
    const fullMs = (24 / rate) * 1_000;
    expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(Math.floor(fullMs) - 1);
    expect(clock.monotonic() - startedAt).toBeLessThanOrEqual(Math.ceil(fullMs) + 1);
  });

  it("counts acts alone: what is left out waits for nothing", async () => {
    await scene.dead(3);
    for (const n of [1, 2]) await scene.bench.deliver(outbound("delivery", { messageId: `msg_${n}` }));
    await scene.settled();
    const wish = { skipSuperseded: true, ratePerSecond: 0.01 } as const;
    expect(await scene.inbox.replayAll({}, wish)).toMatchObject({ replayed: 1, superseded: 2 });
  });
});

describe("what bulk work refuses", () => {
  type Inbox = Receiver["inbox"];

  it.each<readonly [(inbox: Inbox) => Promise<unknown>, string, string]>([
    [(inbox) => inbox.replayAll({ tennant: "m" } as never), "tennant", "tenant"],
    [(inbox) => inbox.replayAll({ limit: 5 } as never), "limit", "no option"],
    [(inbox) => inbox.replayAll({ states: ["dead", "pending"] }), "states", '"done", "dead", "late", "discarded"'],
    [(inbox) => inbox.discardAll({ states: ["done"] }), "states", '"pending", "dead"'],
    [(inbox) => inbox.discardAll({ states: "dead" as never }), "states", "a list of"],
    [(inbox) => inbox.groupByError({ states: ["late"] }), "states", '"dead"'],
    [(inbox) => inbox.replayAll({}, { ratePerSecond: 0 }), "ratePerSecond", "from 0.01 to 100000 a second"],
    ...[-1, 1.5, Number.NaN, "5" as never].map(
      (upTo) => [(inbox: Inbox) => inbox.replayAll({}, { upTo }), "upTo", "the id of an event"] as const,
    ),
    [(inbox) => inbox.replayAll({}, { dryRun: "yes" as never }), "dryRun", "true or false"],
    [(inbox) => inbox.replayAll({}, { skipSuperseded: "no" } as never), "skipSuperseded", "true or false"],
    [(inbox) => inbox.replayAll({}, { rate: 5 } as never), "rate", "inbox.replayAll() has no option"],
    [(inbox) => inbox.discardAll({}, { skipSuperseded: true } as never), "skipSuperseded", "inbox.discardAll() has no"],
    [(inbox) => inbox.replayAll({}, { signal: "now" as never }), "signal", "must be an AbortSignal"],
    [(inbox) => inbox.replayAll({}, { onProgress: 5 as never }), "onProgress", "must be a function"],
    [(inbox) => inbox.erase({ per: "+15550100002" } as never), "per", "inbox.erase()"],
    [(inbox) => inbox.exportSubject({ per: "+15550100002" } as never).next(), "per", "inbox.exportSubject()"],
  ])("refuses what it does not know, and says what it takes (%#)", async (ask, option, words) => {
    const refused = { code: "invalid_option", fields: { option }, message: expect.stringContaining(words) };
    expect(await failureOf(ask(memoryBench().receiver.inbox))).toMatchObject(refused);
  });
});
