import { describe, expect, it } from "vitest";
import { LeaseLost } from "../../src/errors.ts";
import { sleep } from "../../src/internal/clock.ts";
import { type Bench, deferred, openBench, rounds } from "./bench.ts";
import { slowHandlers, takenAhead } from "./slow-handlers.ts";

describe("leases of the worker", () => {
  it("are renewed at a third of their time, also those taken ahead of a free place", async () => {
    const { bench, slow } = await takenAhead(
      { quick: 20, slow: 20 },
      { worker: { concurrency: 2 }, handlerTimeoutMs: 600_000 },
    );
    expect(slow.running()).toBe(2);
    expect(bench.recorder.outstanding.size).toBe(20);
    await bench.clock.advance(10_000);
    expect(bench.recorder.extended.at(-1)?.toSorted((a, b) => a - b)).toEqual([...Array(20).keys()].map((n) => n + 21));
    await bench.clock.advance(300_000);
    expect(slow.most()).toBe(2);
    for (let round = 0; round < 20; round++) {
      slow.endAll();
      await rounds();
    }
    expect(await bench.states()).toEqual(Array(40).fill("handled"));
    await bench.expectNothingLeaked();
  });

  it("whose effects run on are renewed and take places: no backlog is claimed to wait for its effects (I9)", async () => {
    let ran = 0;
    const bench: Bench = await openBench({
      register: (on) =>
        on.onAny(async () => {
          ran++;
          await sleep(bench.clock, 100);
        }),
    });
    await bench.acceptMany(20);
    bench.recorder.unfinishedTurns = 1_000;
    bench.worker.start();
    await bench.clock.advance(5_000);
    // A turn claims before it is told what of it is unfinished.
    expect(ran).toBeLessThanOrEqual(8);
    const renewals = bench.recorder.extended.length;
    await bench.clock.advance(10_000);
    expect(bench.recorder.extended.slice(renewals)).toEqual([Array.from({ length: ran }, (_, index) => index + 1)]);
    bench.recorder.unfinishedTurns = 0;
    await bench.clock.advance(500);
    expect(await bench.states()).toEqual(Array(20).fill("handled"));
    await bench.expectNothingLeaked();
    const ended = bench.recorder.extended.length;
    await bench.clock.advance(60_000);
    expect(bench.recorder.extended.length).toBe(ended);
  });

  it("that are lost abort their handler, whose effects and completion do not happen (I3)", async () => {
    const gate = deferred();
    let reason: unknown;
    const bench = await openBench({
      register: (on) =>
        on.onAny(async (_, ctx) => {
          ctx.signal.addEventListener("abort", () => {
            reason = ctx.signal.reason;
          });
          await gate.promise;
        }),
    });
    bench.worker.start();
    await bench.accept("a");
    await rounds();
    const lease = [...bench.recorder.outstanding.values()][0];
    if (lease === undefined) throw new Error("no lease");
    bench.recorder.losing.add(lease.event);
    await bench.clock.advance(10_000);
    expect(reason).toBeInstanceOf(LeaseLost);
    gate.resolve();
    await rounds();
    expect(bench.endings).toHaveLength(1);
  });

  it("that are lost before they were started are forgotten: drains, stop and requests go on", async () => {
    const { bench, slow } = await takenAhead(
      { quick: 10, slow: 2 },
      { worker: { concurrency: 1 }, handlerTimeoutMs: 600_000 },
    );
    expect(bench.recorder.outstanding.size).toBe(2);
    bench.recorder.losing.add(12);
    await bench.clock.advance(10_000);
    expect(bench.endings.at(-1)).toEqual([12, "put_back"]);
    slow.endOne();
    await rounds();
    let stopped = false;
    void bench.worker.stop(60_000).then(() => {
      stopped = true;
    });
    await rounds();
    expect(stopped).toBe(true);
  });

  it("are renewed again after a renewal that failed", async () => {
    const slow = slowHandlers();
    const bench = await openBench({ register: (on) => on.onAny(slow.handler), handlerTimeoutMs: 600_000 });
    bench.worker.start();
    await bench.accept("a");
    bench.recorder.failExtends = 1;
    await bench.clock.advance(60_000);
    expect(slow.most()).toBe(1);
    expect(bench.lines.filter((line) => line.message.includes("could not be renewed"))).toHaveLength(1);
    slow.endAll();
    await rounds();
    expect(await bench.states()).toEqual(["handled"]);
    await bench.clock.advance(60_000);
    const renewals = bench.recorder.extended.length;
    await bench.clock.advance(60_000);
    expect(bench.recorder.extended.length).toBe(renewals);
  });

  it("that wait for a place are started though the store does not answer", async () => {
    const { bench, slow } = await takenAhead({ quick: 10, slow: 3 }, { worker: { concurrency: 1 } });
    bench.recorder.failNextTurns = 1_000;
    slow.endOne();
    await rounds();
    expect(slow.running()).toBe(1);
    bench.recorder.failNextTurns = 0;
    for (let round = 0; round < 3; round++) {
      slow.endOne();
      await bench.clock.advance(5_000);
    }
    expect(await bench.states()).toEqual(Array(13).fill("handled"));
    await bench.expectNothingLeaked();
  });
});
