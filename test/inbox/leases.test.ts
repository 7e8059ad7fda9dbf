/** The leases of a process: how many it holds ahead, how long it renews them, and what ends them. */
import { describe, expect, it } from "vitest";
import { LeaseLost } from "../../src/errors.ts";
import { type HeldLease, Leases } from "../../src/inbox/claims.ts";
import type { Lease } from "../../src/inbox/store.ts";
import { sleep } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { type Bench, deferred, openBench, rounds, startBench, watched } from "./bench.ts";
import { takenAhead } from "./slow-handlers.ts";

function scene() {
  const { clock, running } = watchedTimers(createFakeClock());
  const extended: [events: number[], leaseMs: number][] = [];
  const losing = new Set<number>();
  const failing = { count: 0 };
  const asked = { meanwhile: () => {} };
  const extend = async (held: readonly { readonly event: number }[], leaseMs: number) => {
    if (failing.count-- > 0) throw new Error("no answer");
    extended.push([held.map(({ event }) => event), leaseMs]);
    asked.meanwhile();
    return held.map(({ event }) => !losing.has(event));
  };
  const lines: unknown[] = [];
  const logger = { ...silentLogger, warn: (fields: object, message: string) => void lines.push([fields, message]) };
  const lost: number[] = [];
  const options = { concurrency: 4, leaseMs: 30_000, clock, logger };
  const leases = new Leases({ extend }, options, ({ event }) => void lost.push(event));
  const add = (event: number) => leases.add({ lane: event, token: 1, event } as Lease, null);
  return { clock, leases, add, extended, losing, lost, lines, failing, asked, running };
}

describe("Leases.capacity", () => {
  it.each([
    ["the handlers that may run, before any ended", [], 4],
    ["as many as 50 ms of work need", [10], 20],
    ["no fewer than may run, where handlers are slow", [1_000], 4],
    ["256 at most, where they take no time", [0], 256],
    ["a tenth of the way to each later measurement", [10, 60], 14],
    ["the same way back", [20, 10], 11],
  ])("is %s", (_, durations, capacity) => {
    const { leases } = scene();
    for (const durationMs of durations) leases.finished({} as HeldLease, durationMs);
    expect(leases.capacity).toBe(capacity);
  });
});

describe("Leases", () => {
  it("renews what runs and what waits, for the whole lease time, at each third of it, until it holds none", async () => {
    const { clock, leases, add, extended, running } = scene();
    for (const event of [1, 2]) add(event);
    const first = leases.next();
    await clock.advance(9_999);
    expect(extended).toEqual([]);
    await clock.advance(20_001);
    expect(extended).toEqual(Array(3).fill([[2, 1], 30_000]));
    leases.takeWaiting();
    if (first !== null) leases.finished(first, 5);
    await clock.advance(60_000);
    expect([extended.length, running()]).toEqual([3, 0]);
    add(3);
    await clock.advance(10_000);
    expect(extended.at(-1)).toEqual([[3], 30_000]);
    leases.stopRenewing();
    await clock.advance(60_000);
    expect(extended).toHaveLength(4);
  });

  it("passes over a lost lease whose handler has ended meanwhile", async () => {
    const { clock, leases, add, extended, losing, lost, lines, asked } = scene();
    add(1);
    const first = leases.next();
    losing.add(1);
    asked.meanwhile = () => {
      if (first !== null) leases.finished(first, 5);
    };
    await clock.advance(10_000);
    expect(extended).toHaveLength(1);
    expect([lost, lines]).toEqual([[], []]);
  });

  it("tells how many leases could not be renewed, and tries again", async () => {
    const { clock, add, extended, lines, failing } = scene();
    for (const event of [1, 2]) add(event);
    failing.count = 1;
    await clock.advance(10_000);
    expect(lines).toEqual([[{ leases: 2 }, "Leases could not be renewed; the next renewal tries again."]]);
    await clock.advance(10_000);
    expect(extended).toEqual([[[1, 2], 30_000]]);
  });

  it("keeps a claim made anew when the older one is let go, and waits for nothing taken later", async () => {
    const { leases } = scene();
    const [older, newer, other] = [
      [1, 1],
      [1, 2],
      [2, 1],
    ].map(([lane, token]) => ({ lane, token }) as Lease);
    if (older === undefined || newer === undefined || other === undefined) throw new Error("no lease");
    for (const one of [older, other]) leases.add(one, null);
    const gone = watched(leases.untilEnded());
    leases.add(newer, null);
    expect(leases.end(older).lane).toBe(false);
    await rounds(1);
    expect(gone()).toBe(false);
    leases.end(other);
    await rounds(1);
    expect([gone(), leases.of(1), leases.isEmpty]).toEqual([true, newer, false]);
    expect(leases.end(newer).lane).toBe(true);
    expect([leases.isEmpty, leases.lanes(), leases.end(newer).lane]).toEqual([true, [], false]);
    await leases.untilEnded();
  });
});

describe("leases of the worker", () => {
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
    // A turn claims before it learns which part of it is unfinished.
    expect(ran).toBeLessThanOrEqual(8);
    const renewals = bench.recorder.extended.length;
    await bench.clock.advance(10_000);
    expect(bench.recorder.extended.slice(renewals)).toEqual([Array.from({ length: ran }, (_, index) => index + 1)]);
    bench.recorder.unfinishedTurns = 0;
    await bench.clock.advance(500);
    await bench.expectAllHandled(20);
    const ended = bench.recorder.extended.length;
    await bench.clock.advance(60_000);
    expect(bench.recorder.extended.length).toBe(ended);
  });

  it("that are lost abort their handler, whose effects and completion do not happen (I3)", async () => {
    const gate = deferred();
    const signals: AbortSignal[] = [];
    const bench = await startBench(async (_, ctx) => {
      signals.push(ctx.signal);
      await gate.promise;
    });
    await bench.accept("a");
    bench.recorder.losing.add(1);
    await bench.clock.advance(10_000);
    expect(signals[0]?.reason).toEqual(new LeaseLost("The lease of this event passed to another worker."));
    gate.resolve();
    await rounds();
    expect(bench.endings).toHaveLength(1);
  });

  it("that are lost before they were started are forgotten, and no others: drains, stop and requests go on", async () => {
    const { bench, slow } = await takenAhead(
      { quick: 10, slow: 3 },
      { worker: { concurrency: 1 }, handlerTimeoutMs: 600_000 },
    );
    expect(bench.recorder.outstanding.size).toBe(3);
    bench.recorder.losing.add(12);
    await bench.clock.advance(10_000);
    expect(bench.endings.at(-1)).toEqual([12, "put_back"]);
    slow.endOne();
    await rounds();
    slow.endOne();
    await rounds();
    expect(bench.endings.slice(-2)).toEqual([
      [11, "done"],
      [13, "done"],
    ]);
    const stopped = watched(bench.worker.stop(60_000));
    await rounds();
    expect(stopped()).toBe(true);
  });

  it("that wait for a place are started though the store does not answer", async () => {
    const { bench, slow } = await takenAhead({ quick: 10, slow: 3 }, { worker: { concurrency: 1 } });
    bench.recorder.failNextTurns = 1_000;
    slow.endOne();
    await rounds();
    expect(slow.running()).toBe(1);
    bench.recorder.failNextTurns = 0;
    await slow.endEach(3, () => bench.clock.advance(5_000));
    await bench.expectAllHandled(13);
  });
});
