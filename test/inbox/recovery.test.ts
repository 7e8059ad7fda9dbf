/** Leases that expired with their process: each is claimed alone, by workers, drains and requests. */
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { type Bench, type BenchOptions, deferred, openBench, rounds, stepElsewhere } from "./bench.ts";

/** A store in which an earlier process died while it handled the first events of `ids`; its leases have expired. */
async function afterCrash(ids: readonly string[], attempts = 1): Promise<Pick<BenchOptions<never>, "store" | "clock">> {
  const clock = createFakeClock();
  const store = memoryStore({ volatile: true });
  const before = await openBench({ store, clock });
  await Promise.all(ids.map((id) => before.accept(id)));
  await stepElsewhere(store, { limit: 100 });
  for (let attempt = 1; attempt < attempts; attempt++) {
    clock.set(clock.now() + 30_000);
    for (const _ of ids) await stepElsewhere(store, { mode: "recover" });
  }
  await store.close();
  return { store, clock };
}

describe("an expired lease", () => {
  it("is claimed alone: nothing else runs while it does, and nothing is lost (I3)", async () => {
    const gate = deferred();
    const running = new Set<string>();
    const companions: string[][] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny(async (_, ctx) => {
        const id = `${ctx.meta.lane}`;
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
    const gate = deferred();
    let quick = true;
    const seen: number[] = [];
    const store = memoryStore({ volatile: true });
    const bench = await openBench({
      store,
      register: (on) =>
        on.onAny((_, ctx) => {
          seen.push(ctx.meta.eventId);
          return quick ? undefined : gate.promise;
        }),
      worker: { concurrency: 1 },
      handlerTimeoutMs: 600_000,
    });
    bench.worker.start();
    await bench.acceptMany(10, "quick");
    await rounds();
    // Another process claims one and dies.
    await bench.accept("gap", 2);
    bench.clock.set(bench.clock.now() + 90_000);
    await stepElsewhere(store, { leaseMs: 1_000 });
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

  it.each([0, 3])("is handled by a drain, which goes on with the rest: %i more", async (more) => {
    const bench = await openBench({ ...(await afterCrash(["a", "b"])), register: (on) => on.onAny(() => {}) });
    await bench.acceptMany(more);
    expect(await bench.worker.drain({})).toEqual({ claimed: 2 + more, complete: true });
    await bench.expectAllHandled(2 + more);
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

  it("is left alone by a drain that was cut off, and taken by the next one", async () => {
    const crashed = await afterCrash(["a"]);
    const bench = await openBench({ ...crashed, register: (on) => on.onAny(() => {}) });
    const drained = bench.worker.drain({ budgetMs: 1 });
    await untilRecovering(bench);
    const letGo = bench.hold();
    await bench.clock.advance(1);
    letGo();
    expect(await drained).toMatchObject({ complete: false });
    expect(await bench.worker.drain({})).toMatchObject({ complete: true });
    await bench.expectAllHandled(1);
  });
});

/** Until the worker knows of the expired lease, before it claims it. */
async function untilRecovering(bench: Bench): Promise<void> {
  while (!bench.recorder.results.some((result) => result.recoveryDue)) await rounds(1);
}

describe("an expired lease, and requests that drive lanes", () => {
  it("that a request drives keeps no worker that starts meanwhile from the rest (I9)", async () => {
    const gate = deferred();
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => (ctx.meta.lane === "crashed" ? gate.promise : undefined));
    const bench = await openBench({ ...(await afterCrash(["crashed"])), register });
    const { id } = await bench.lane("crashed");
    bench.worker.claimOnDemand(id, 1, () => {});
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(1);
    bench.worker.start();
    await bench.accept("other");
    await rounds();
    expect(await bench.states()).toEqual(["pending", "handled"]);
    gate.resolve();
    await rounds();
    await bench.expectNothingLeaked();
  });

  it("lets requests that drive a lane go on when the drain that handles it is cut off", async () => {
    const running: (string | null)[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        running.push(ctx.meta.lane);
        return ctx.meta.lane === "crashed" ? new Promise<void>(() => {}) : undefined;
      });
    const bench = await openBench({ ...(await afterCrash(["crashed"])), register });
    void bench.worker.drain({ budgetMs: 1_000 });
    await rounds();
    bench.drive(await bench.accept("driven"));
    await rounds();
    expect(running).toEqual(["crashed"]);
    await bench.clock.advance(1_000);
    await rounds();
    expect(running).toEqual(["crashed", "driven"]);
  });

  it("lets requests that drive a lane wait for its end", async () => {
    const gate = deferred();
    const running: (string | null)[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny(async (_, ctx) => {
        running.push(ctx.meta.lane);
        if (ctx.meta.lane === "crashed") await gate.promise;
      });
    const bench = await openBench({ ...(await afterCrash(["crashed"])), register });
    bench.worker.start();
    await rounds();
    const told = bench.drive(await bench.accept("driven"));
    await rounds();
    const turns = bench.recorder.turns.length;
    await rounds(200);
    expect(bench.recorder.turns.length).toBe(turns);
    expect(running).toEqual(["crashed"]);
    gate.resolve();
    await rounds();
    expect(running).toEqual(["crashed", "driven"]);
    expect(told.refused).toBe(0);
  });

  it("is waited for no longer when another process was first, though a request's event still runs", async () => {
    const gates = { before: deferred(), driven: deferred() };
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => gates[ctx.meta.lane as keyof typeof gates]?.promise);
    const bench = await openBench({ register });
    const { store } = bench.recorder;
    await bench.accept("crashed");
    await stepElsewhere(store, { leaseMs: 1_000 });
    await bench.accept("before");
    void bench.worker.drain({ budgetMs: 2_000 });
    await bench.clock.advance(1_000);
    // The drain learns of the expired lease, and is over before what runs has ended.
    await bench.accept("other");
    await bench.clock.advance(1_000);
    gates.before.resolve();
    await rounds();
    bench.drive(await bench.accept("driven"));
    await rounds();
    expect((await stepElsewhere(store, { mode: "recover" })).leases).toHaveLength(1);
    void bench.worker.drain({});
    await rounds();
    expect(await bench.states()).toEqual(["pending", "handled", "handled", "pending"]);
    gates.driven.resolve();
    await rounds();
    expect((await bench.lane("driven")).events[0]?.outcome).toBe("handled");
  });
});
