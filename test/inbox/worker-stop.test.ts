import { describe, expect, it } from "vitest";
import type { Timer } from "../../src/internal/clock.ts";
import { createFakeClock, type FakeClock } from "../../src/testing/fake-clock.ts";
import { deferred, openBench, rounds } from "./bench.ts";
import { slowHandlers, takenAhead } from "./slow-handlers.ts";

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
    expect(await bench.states()).toEqual(Array(14).fill("handled"));
    await bench.expectNothingLeaked();
  });

  it("gives back with its attempt what a turn under way had claimed", async () => {
    const gate = deferred();
    let ran = 0;
    const bench = await openBench({ register: (on) => on.onAny(() => void ran++) });
    await bench.acceptMany(3);
    bench.recorder.gate = gate.promise;
    bench.worker.start();
    await rounds();
    bench.worker.pause();
    bench.recorder.gate = null;
    gate.resolve();
    await rounds();
    expect(ran).toBe(0);
    expect((await bench.events()).map((event) => event.attempts)).toEqual([0, 0, 0]);
    await bench.expectNothingLeaked();
    bench.worker.resume();
    await rounds();
    expect(ran).toBe(3);
  });
});

describe("Worker.stop()", () => {
  it("waits for running handlers, gives the others back with their attempt, and claims nothing more", async () => {
    const { bench, slow } = await takenAhead({ quick: 10, slow: 6 }, { worker: { concurrency: 2 } });
    let stopped = false;
    const stop = bench.worker.stop(30_000).then(() => {
      stopped = true;
    });
    await rounds();
    expect(stopped).toBe(false);
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
    const bench = await openBench({ register: (on) => on.onAny(slow.handler) });
    bench.worker.start();
    await bench.accept("a");
    await rounds();
    let stopped = false;
    const stop = bench.worker.stop(5_000).then(() => {
      stopped = true;
    });
    await bench.clock.advance(4_999);
    expect(stopped).toBe(false);
    await bench.clock.advance(1);
    await stop;
    slow.endAll();
    await rounds();
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("starts nothing that a turn under way had claimed", async () => {
    const gate = deferred();
    let ran = 0;
    const bench = await openBench({ register: (on) => on.onAny(() => void ran++) });
    await bench.acceptMany(3);
    bench.recorder.gate = gate.promise;
    bench.worker.start();
    await rounds();
    const stop = bench.worker.stop(1_000);
    bench.recorder.gate = null;
    gate.resolve();
    await stop;
    await bench.groupCommit.close();
    expect(ran).toBe(0);
    expect((await bench.events()).map((event) => event.attempts)).toEqual([0, 0, 0]);
    await bench.expectNothingLeaked();
  });

  it("leaves no timer behind when what runs has ended in time", async () => {
    const fake = createFakeClock();
    const timers = new Set<Timer>();
    const setTimeout: FakeClock["setTimeout"] = (callback, ms) => {
      const timer = fake.setTimeout(callback, ms);
      timers.add(timer);
      const cancel = () => {
        timers.delete(timer);
        timer.cancel();
      };
      return { ...timer, cancel };
    };
    const slow = slowHandlers();
    const bench = await openBench({ clock: { ...fake, setTimeout }, register: (on) => on.onAny(slow.handler) });
    bench.worker.start();
    await bench.accept("a");
    await rounds();
    const stop = bench.worker.stop(30_000);
    slow.endAll();
    await stop;
    expect(timers.size).toBe(0);
  });

  it("is harmless without a start, and twice", async () => {
    const bench = await openBench();
    await bench.worker.stop(1_000);
    await bench.worker.stop(1_000);
  });
});
