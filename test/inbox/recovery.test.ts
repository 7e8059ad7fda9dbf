import { describe, expect, it } from "vitest";
import { Recovery } from "../../src/inbox/worker.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { afterCrash } from "./after-crash.ts";
import { Bench, deferred, openBench, openContext, RULES, rounds } from "./bench.ts";

describe("an expired lease", () => {
  it("is claimed alone: nothing else runs while it does, and nothing is lost (I3)", async () => {
    const gate = deferred();
    const running = new Set<string>();
    const companions: string[][] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny(async (_, ctx) => {
        const id = ctx.meta.lane.messageId;
        running.add(id);
        if (id.startsWith("crashed")) {
          companions.push([...running]);
          await gate.promise;
          companions.push([...running]);
        }
        running.delete(id);
      });
    const bench = await openBench({ ...(await afterCrash(["crashed1", "crashed2"])), register });
    await bench.acceptMany(6);
    bench.worker.start();
    await rounds();
    expect(companions).toEqual([["crashed1"]]);
    await bench.accept("meanwhile");
    await bench.clock.advance(1_000);
    expect([...running]).toEqual(["crashed1"]);
    gate.resolve();
    await bench.clock.advance(0);
    await bench.clock.advance(0);
    expect(companions).toEqual([["crashed1"], ["crashed1"], ["crashed2"], ["crashed2"]]);
    expect(await bench.states()).toEqual(Array(9).fill("handled"));
    const attempts = (await bench.events()).map((event) => event.attempts);
    expect(attempts).toEqual([2, 2, 1, 1, 1, 1, 1, 1, 1]);
    await bench.expectNothingLeaked();
  });

  it("waits until running handlers have ended; what waits for a place goes back first", async () => {
    const { store, clock } = await afterCrash([]);
    const gate = deferred();
    let quick = true;
    const seen: number[] = [];
    const bench: Bench = await openBench({
      ...{ store: store ?? memoryStore(), clock: clock ?? createFakeClock(), worker: { concurrency: 1 } },
      register: (on) =>
        on.onAny((_, ctx) => {
          seen.push(ctx.meta.eventId);
          return quick ? undefined : gate.promise;
        }),
      handlerTimeoutMs: 600_000,
    });
    bench.worker.start();
    await bench.acceptMany(10, "quick");
    await rounds();
    // Another process claims one and dies.
    await bench.accept("gap", 2);
    bench.clock.set(bench.clock.now() + 90_000);
    const turn = { settles: [], accepts: [], quarantines: [] } as const;
    const claim = {
      limit: 1,
      leaseMs: 1_000,
      maxAttempts: 9,
      onDead: "continue",
      takes: () => true,
      mode: "ordinary",
    } as const;
    await store?.step({ ...turn, quarantineQuota: { maxRows: 1, maxBytes: 1 }, claim });
    quick = false;
    await bench.acceptMany(4, "slow");
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(4);
    await bench.clock.advance(1_000);
    await bench.accept("notices");
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(1);
    gate.resolve();
    await bench.clock.advance(5_000);
    await bench.clock.advance(5_000);
    expect(await bench.states()).toEqual(Array(16).fill("handled"));
    const at = seen.indexOf(11);
    expect(at).toBeGreaterThan(10);
    await bench.expectNothingLeaked();
  });

  it("is handled by a drain, which goes on with the rest", async () => {
    const bench = await openBench({ ...(await afterCrash(["a", "b"])), register: (on) => on.onAny(() => {}) });
    await bench.acceptMany(3);
    expect(await bench.worker.drain({})).toMatchObject({ complete: true });
    expect(await bench.states()).toEqual(Array(5).fill("handled"));
    await bench.expectNothingLeaked();
  });

  it("is all that is ready, and a drain handles it", async () => {
    const bench = await openBench({ ...(await afterCrash(["a"])), register: (on) => on.onAny(() => {}) });
    expect(await bench.worker.drain({})).toEqual({ claimed: 1, complete: true });
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("whose attempts are used up becomes a dead letter, and a drain goes on with the rest (I7)", async () => {
    const crashed = await afterCrash(["a"], 3);
    const bench = await openBench({ ...crashed, register: (on) => on.onAny(() => {}), worker: { maxAttempts: 3 } });
    await bench.acceptMany(3);
    expect(await bench.worker.drain({})).toMatchObject({ complete: true });
    expect(await bench.states()).toEqual(["dead", "handled", "handled", "handled"]);
    expect(bench.dead).toMatchObject([{ attempts: 3, code: "attempts_exhausted" }]);
    expect(bench.endings).toContainEqual([1, "dead"]);
  });

  it("whose attempts are used up does not keep a worker from the rest", async () => {
    const crashed = await afterCrash(["a", "b"], 3);
    const bench = await openBench({ ...crashed, register: (on) => on.onAny(() => {}), worker: { maxAttempts: 3 } });
    await bench.acceptMany(3);
    bench.worker.start();
    await bench.clock.advance(0);
    expect(await bench.states()).toEqual(["dead", "dead", "handled", "handled", "handled"]);
  });

  it("is claimed a second after a turn for it failed", async () => {
    const bench = await openBench({ ...(await afterCrash(["a"])), register: (on) => on.onAny(() => {}) });
    bench.worker.start();
    bench.recorder.failNextTurns = 0;
    await untilRecovering(bench);
    bench.recorder.failNextTurns = 1;
    await bench.clock.advance(2_000);
    expect(bench.recorder.turns.filter((turn) => turn.claim.mode === "recover").length).toBeGreaterThanOrEqual(2);
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("asks for no turns while it runs", async () => {
    const gate = deferred();
    const bench = await openBench({ ...(await afterCrash(["a"])), register: (on) => on.onAny(() => gate.promise) });
    bench.worker.start();
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(1);
    expect(bench.recorder.turns.at(-1)?.claim.mode).toBe("recover");
    gate.resolve();
    await rounds();
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("is left alone by a drain that was cut off, and taken by the next one", async () => {
    const crashed = await afterCrash(["a"]);
    const gate = deferred();
    const bench = await openBench({ ...crashed, register: (on) => on.onAny(() => {}) });
    const drained = bench.worker.drain({ budgetMs: 1 });
    await untilRecovering(bench);
    bench.recorder.gate = gate.promise;
    await bench.clock.advance(1);
    bench.recorder.gate = null;
    gate.resolve();
    expect(await drained).toMatchObject({ complete: false });
    expect(await bench.worker.drain({})).toMatchObject({ complete: true });
    expect(await bench.states()).toEqual(["handled"]);
    await bench.expectNothingLeaked();
  });
});

/** Until the worker knows of the expired lease, before it claims it. */
async function untilRecovering(bench: Bench): Promise<void> {
  while (!bench.recorder.results.some((result) => result.recoveryDue)) await rounds(1);
}

describe("the clock of the process that died", () => {
  it("counts: a lease of another process that has not expired is left alone", async () => {
    const clock = createFakeClock();
    const store = memoryStore({ volatile: true });
    const bench = new Bench({ ...store, open: async () => RULES }, { clock, register: (on) => on.onAny(() => {}) });
    await store.open(openContext(clock, { debug() {}, info() {}, warn() {}, error() {} }));
    await bench.accept("a");
    const turn = { settles: [], accepts: [], quarantines: [] } as const;
    const claim = {
      limit: 1,
      leaseMs: 20_000,
      maxAttempts: 9,
      onDead: "continue",
      takes: () => true,
      mode: "ordinary",
    } as const;
    await store.step({ ...turn, quarantineQuota: { maxRows: 1, maxBytes: 1 }, claim });
    bench.worker.start();
    await clock.advance(19_999);
    expect(await bench.states()).toEqual(["pending"]);
    await clock.advance(1);
    await clock.advance(1_000);
    expect(await bench.states()).toEqual(["handled"]);
  });
});

describe("Recovery", () => {
  it("waits for what runs, claims once, and is over when what was claimed has ended", () => {
    const recovery = new Recovery();
    const states: unknown[] = [];
    const note = (answer?: boolean) => void states.push([recovery.isInProgress, recovery.wantsClaim, answer]);
    note(recovery.idle());
    recovery.begin();
    note();
    note(recovery.idle());
    note(recovery.idle());
    recovery.claimed(true);
    note();
    note(recovery.idle());
    expect(states).toEqual([
      [false, false, false],
      [true, false, undefined],
      [true, true, true],
      [true, true, false],
      [true, false, undefined],
      [false, false, true],
    ]);
  });

  it("is over at once when another process was first", () => {
    const recovery = new Recovery();
    recovery.begin();
    recovery.idle();
    recovery.claimed(false);
    expect([recovery.isInProgress, recovery.wantsClaim, recovery.idle()]).toEqual([false, false, false]);
  });
});
