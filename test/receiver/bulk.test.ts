/** Work on many events of an inbox: dead letters by error, and replaying or discarding all that match. */
import { beforeEach, describe, expect, it } from "vitest";
import { PermanentError, type ReplayCounts } from "../../src/index.ts";
import { failureOf } from "../support/failure-of.ts";
import { type Bench, idleTurns, memoryBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const NOTHING = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 };

/** A receiver whose handlers of some types fail until they are mended. */
class Scene {
  readonly failing = new Set(["message.sent"]);
  readonly bench: Bench<never> = memoryBench();
  readonly handled: string[] = [];
  mended = false;

  constructor() {
    this.bench.receiver.onAny((event) => {
      const { messageId, sequence } = event as { messageId?: string; sequence?: number };
      const name = `${messageId} ${sequence}`;
      if (!this.mended && this.failing.has(event.eventType))
        throw new PermanentError(`No order ${messageId?.slice(4)}`);
      this.handled.push(name);
    });
  }

  get inbox() {
    return this.bench.receiver.inbox;
  }

  /** Messages 1 to `count` with their `sent`, which is answered once it has failed. */
  async dead(count: number): Promise<void> {
    await this.bench.receiver.start();
    for (let n = 1; n <= count; n++) await this.bench.deliver(outbound("queued", { messageId: `msg_${n}` }));
    for (let n = 1; n <= count; n++) await this.bench.deliver(outbound("sent", { messageId: `msg_${n}` }));
    await until(async () => (await this.inbox.stats()).gauges.dead === count);
    this.handled.length = 0;
  }

  async settled(): Promise<void> {
    await until(async () => (await this.inbox.stats()).gauges.pending === 0);
  }
}

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
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

  it("keeps to the rate, on the clock", async () => {
    await scene.dead(4);
    scene.mended = true;
    const done: number[] = [];
    const onProgress = (progress: { done: number }) => done.push(progress.done);
    const replaying = scene.inbox.replayAll({}, { ratePerSecond: 2, onProgress });
    await idleTurns();
    expect(done).toEqual([1]);
    await scene.bench.clock.advance(499);
    expect(done).toEqual([1]);
    await scene.bench.clock.advance(1);
    await idleTurns();
    expect(done).toEqual([1, 2]);
    await scene.bench.clock.advance(500);
    await idleTurns();
    await scene.bench.clock.advance(500);
    await replaying;
    expect(done).toEqual([1, 2, 3, 4]);
  });

  it("tells how far it is, stops when it is told to, and goes on when it is called again", async () => {
    await scene.dead(5);
    scene.mended = true;
    const stop = new AbortController();
    const told: { total: number; done: number; counts: ReplayCounts }[] = [];
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
    expect(told).toMatchObject([
      { total: 5, done: 1, counts: { replayed: 1 } },
      { total: 5, done: 2, counts: { replayed: 2 } },
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
    expect(await receiver.inbox.discardAll({ states: ["pending"] })).toEqual({
      ...NOTHING,
      discarded: 0,
      in_progress: 1,
    });
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
