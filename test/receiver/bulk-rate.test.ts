/** The rate of bulk work: kept over time, whatever the store, the timers and what is left out take. */
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { idleTurns } from "./bench.ts";
import { BulkScene } from "./bulk-scene.ts";
import { outbound } from "./events.ts";

/** A clock whose timers, as those of Node.js, take whole milliseconds and one at least. */
function tickingClock() {
  const clock = createFakeClock();
  const setTimeout = (callback: () => void, ms: number) => clock.setTimeout(callback, Math.max(1, Math.trunc(ms)));
  return { ...clock, setTimeout };
}

describe("ratePerSecond", () => {
  it("does not hurry after a store that was slow", async () => {
    const scene = new BulkScene();
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
    const scene = new BulkScene();
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

  it("waits a whole tick where acts are a tick apart", async () => {
    const scene = new BulkScene();
    await scene.dead(2);
    const done: number[] = [];
    const onProgress = (progress: { done: number }) => done.push(progress.done);
    const replaying = scene.inbox.replayAll({}, { ratePerSecond: 1_000, onProgress });
    await idleTurns(50);
    expect(done).toEqual([1]);
    await scene.bench.clock.advance(1);
    expect(await replaying).toMatchObject({ replayed: 2 });
  });

  it("counts acts alone: what is left out waits for nothing", async () => {
    const scene = new BulkScene();
    await scene.dead(3);
    for (const n of [1, 2]) await scene.bench.deliver(outbound("delivery", { messageId: `msg_${n}` }));
    await scene.settled();
    const wish = { skipSuperseded: true, ratePerSecond: 0.01 } as const;
    expect(await scene.inbox.replayAll({}, wish)).toMatchObject({ replayed: 1, superseded: 2 });
  });
});
