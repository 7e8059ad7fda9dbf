/** Work on many events of an inbox: dead letters by error, and replaying or discarding all that match. */
import { beforeEach, describe, expect, it } from "vitest";
import type { BulkProgress, ReplayCounts } from "../../src/index.ts";
import { failureOf } from "../support/failure-of.ts";
import { idleTurns, memoryBench, until } from "./bench.ts";
import { BulkScene } from "./bulk-scene.ts";
import { inbound, outbound } from "./events.ts";

const NOTHING = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 };

let scene: BulkScene;
beforeEach(() => {
  scene = new BulkScene();
});

describe("inbox.groupByError()", () => {
  it("counts dead letters that failed alike, whatever numbers their errors tell", async () => {
    await scene.dead(3);
    await scene.bench.clock.advance(1_000);
    const groups = await scene.inbox.groupByError();
    expect(groups).toMatchObject([{ errorCode: "permanent_failure", error: "No order #", count: 3, exampleId: 6 }]);
    expect(groups[0]?.newestAt).toBeLessThan(scene.bench.clock.now());
    expect(groups[0]?.oldestAt).toBeLessThanOrEqual(groups[0]?.newestAt ?? 0);
    expect(await scene.inbox.groupByError({ messageId: "msg_2" })).toMatchObject([{ count: 1, exampleId: 5 }]);
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
    expect((await scene.inbox.find({ states: ["dead"] })).items.map(({ lane }) => lane.messageId)).toEqual(["msg_2"]);
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

  it("leaves alone what somebody else acted on meanwhile", async () => {
    await scene.dead(3);
    scene.mended = true;
    const onProgress = async ({ done }: { done: number }) => {
      if (done !== 1) return;
      await scene.inbox.replay(5);
      await scene.settled();
    };
    const counts = scene.inbox.replayAll({}, { ratePerSecond: 1, onProgress });
    await idleTurns(100);
    await scene.bench.clock.advance(2_000);
    expect(await counts).toEqual({ ...NOTHING, replayed: 2, superseded: 0, wrong_state: 1 });
    await scene.settled();
    expect(scene.handled.sort()).toEqual(["msg_1 2", "msg_2 2", "msg_3 2"]);
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
    await scene.inbox.erase({ messageId: "msg_1" });
    const expected = { ...NOTHING, replayed: 1, superseded: 0, body_pruned: 1 };
    expect(await scene.inbox.replayAll({}, { dryRun: true })).toEqual(expected);
    expect(await scene.inbox.replayAll()).toEqual(expected);
  });

  it("replays other states when it is told which", async () => {
    await scene.dead(1);
    expect(await scene.inbox.replayAll({ states: ["done"], eventType: "message.queued" })).toMatchObject({
      replayed: 1,
    });
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

  it("leaves an event alone that is being handled", async () => {
    const { receiver, deliver } = memoryBench();
    receiver.onAny(() => new Promise(() => {}));
    await receiver.start();
    void deliver(inbound());
    await until(async () => (await receiver.inbox.stats()).gauges.pending === 1);
    const expected = { ...NOTHING, discarded: 0, in_progress: 1 };
    expect(await receiver.inbox.discardAll({ states: ["pending"] }, { dryRun: true })).toEqual(expected);
    expect(await receiver.inbox.discardAll({ states: ["pending"] })).toEqual(expected);
  });

  it("foresees which event of a message a worker holds, and which wait", async () => {
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
    expect(await dryRun()).toEqual({ ...NOTHING, discarded: 1, in_progress: 1 });
  });
});

describe("what bulk work refuses", () => {
  it.each([
    [() => scene.inbox.replayAll({ mesageId: "m" } as never), "mesageId"],
    [() => scene.inbox.replayAll({ limit: 5 } as never), "limit"],
    [() => scene.inbox.replayAll({ states: ["pending"] }), "states"],
    [() => scene.inbox.discardAll({ states: ["done"] }), "states"],
    [() => scene.inbox.discardAll({ states: "dead" as never }), "states"],
    [() => scene.inbox.groupByError({ states: ["late"] }), "states"],
    [() => scene.inbox.replayAll({}, { ratePerSecond: 0 }), "ratePerSecond"],
    [() => scene.inbox.replayAll({}, { dryRun: "yes" as never }), "dryRun"],
    [() => scene.inbox.replayAll({}, { rate: 5 } as never), "rate"],
    [() => scene.inbox.discardAll({}, { skipSuperseded: true } as never), "skipSuperseded"],
    [() => scene.inbox.replayAll({}, { signal: "now" as never }), "signal"],
    [() => scene.inbox.replayAll({}, { onProgress: 5 as never }), "onProgress"],
  ])("refuses what it does not know (%#)", async (asked, option) => {
    expect(await failureOf(asked())).toMatchObject({ code: "invalid_option", fields: { option } });
  });
});
