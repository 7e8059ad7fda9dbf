import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { type Bench, openBench, rounds, startBench, watched } from "./bench.ts";
import { slowHandlers, takenAhead } from "./slow-handlers.ts";

describe("a batch under way", () => {
  it.each<[string, (bench: Bench) => unknown, (bench: Bench) => unknown]>([
    ["is paused", ({ worker }) => worker.start(), ({ worker }) => worker.pause()],
    ["is stopped", ({ worker }) => worker.start(), ({ worker }) => worker.stop(1_000)],
    [
      "has a drain at the end of its budget",
      ({ worker }) => worker.drain({ budgetMs: 10 }),
      ({ clock }) => clock.advance(10),
    ],
  ])("gives what it claimed back with its attempt, and starts none, if the worker %s", async (_what, begin, end) => {
    let ran = 0;
    const bench = await openBench({ register: (on) => on.onAny(() => void ran++) });
    await bench.acceptMany(3);
    const letGo = bench.hold();
    const begun = begin(bench);
    await rounds();
    const ended = end(bench);
    await rounds();
    letGo();
    await Promise.all([begun, ended]);
    await rounds();
    expect(ran).toBe(0);
    expect((await bench.events()).map((event) => event.attempts)).toEqual([0, 0, 0]);
    await bench.expectNothingLeaked();
  });
});

describe("Worker.pause() and resume()", () => {
  it("claims nothing, gives back what has not started, and goes on later", async () => {
    const { bench, slow } = await takenAhead({ quick: 10, slow: 3 }, { worker: { concurrency: 1 } });
    expect(bench.recorder.outstanding.size).toBe(3);
    bench.worker.pause();
    expect(bench.worker.isPaused).toBe(true);
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(1);
    const waiting = (await bench.events()).filter((event) => event.state === "pending" && event.attempts === 0);
    expect(waiting).toHaveLength(2);
    slow.endOne();
    await bench.accept("later");
    await bench.clock.advance(60_000);
    expect(slow.most()).toBe(1);
    expect(bench.recorder.outstanding.size).toBe(0);
    bench.worker.resume();
    for (let round = 0; round < 5; round++) {
      await rounds();
      slow.endOne();
    }
    await rounds();
    await bench.expectAllHandled(14);
  });
});

describe("Worker.stop()", () => {
  it("waits for running handlers, gives the others back with their attempt, and claims nothing more", async () => {
    const { bench, slow } = await takenAhead({ quick: 10, slow: 6 }, { worker: { concurrency: 2 } });
    const stop = bench.worker.stop(30_000);
    const stopped = watched(stop);
    await rounds();
    expect(stopped()).toBe(false);
    expect(bench.worker.isStarted).toBe(false);
    slow.endAll();
    await stop;
    await bench.clock.advance(600_000);
    const pending = (await bench.events()).filter((event) => event.state === "pending");
    expect(pending.map((event) => event.attempts)).toEqual([0, 0, 0, 0]);
    expect(slow.most()).toBe(2);
    await bench.expectNothingLeaked();
  });

  it("waits no longer than timeoutMs; what runs on then can still settle", async () => {
    const slow = slowHandlers();
    const bench = await startBench(slow.handler);
    await bench.accept("a");
    await rounds();
    const stop = bench.worker.stop(5_000);
    const stopped = watched(stop);
    await bench.clock.advance(4_999);
    expect(stopped()).toBe(false);
    await bench.clock.advance(1);
    await stop;
    slow.endAll();
    await rounds();
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("leaves no timer behind when what runs has ended in time", async () => {
    const { clock, running } = watchedTimers(createFakeClock());
    const slow = slowHandlers();
    const bench = await openBench({ clock, register: (on) => on.onAny(slow.handler) });
    bench.worker.start();
    await bench.accept("a");
    await rounds();
    const stop = bench.worker.stop(30_000);
    slow.endAll();
    await stop;
    expect(running()).toBe(0);
  });
});
