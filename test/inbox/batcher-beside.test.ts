/** Turns of accepts alone, beside the turn that settles and claims, where the store takes several at once. */
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/stores/memory.ts";
import { type Bench, type BenchOptions, deferred, openBench, rounds } from "./bench.ts";

function openParallel(options: BenchOptions<never> = {}): Promise<Bench> {
  const store = memoryStore({ volatile: true });
  const capabilities = { ...store.capabilities, parallelTurns: true };
  return openBench({ ...options, store: { ...store, capabilities } });
}

/** What each turn accepted, and whether it might claim. */
const turns = (bench: Bench) => bench.recorder.turns.map(({ accepts, claim }) => [accepts.length, claim.limit > 0]);

describe("Batcher, with a store that takes several turns at once", () => {
  it("accepts beside a turn that is slow, once at a time, and answers before that one ends", async () => {
    const bench = await openParallel();
    const [first, second] = [deferred(), deferred()];
    bench.recorder.gate = first.promise;
    const early = bench.acceptMany(3, "early");
    await rounds();
    bench.recorder.gate = second.promise;
    const beside = bench.acceptMany(5, "beside");
    await rounds();
    const waiting = bench.acceptMany(7, "waiting");
    await rounds();
    expect(turns(bench)).toEqual([
      [3, false],
      [5, false],
    ]);
    second.resolve();
    expect((await beside).map(({ outcome }) => outcome)).toEqual(Array(5).fill("accepted"));
    await waiting;
    first.resolve();
    await early;
    expect(turns(bench).map(([accepts]) => accepts)).toEqual([3, 5, 7]);
    expect(bench.recorder.turns[1]).toMatchObject({ settles: [], quarantines: [], repeats: [] });
  });

  it("takes no turn beside another without a delivery to accept", async () => {
    const bench = await openParallel();
    const gate = deferred();
    bench.recorder.gate = gate.promise;
    const early = bench.accept("early");
    await rounds();
    bench.batcher.poke();
    await rounds();
    expect(turns(bench)).toHaveLength(1);
    gate.resolve();
    await early;
    await rounds();
    expect(turns(bench)).toHaveLength(2);
  });

  it("has what came beside claimed by a turn of its own, and by none where nobody works (I5)", async () => {
    const bench = await openParallel({ register: (on) => on.onAny(() => {}) });
    bench.worker.start();
    await rounds();
    const [first, second] = [deferred(), deferred()];
    bench.recorder.gate = first.promise;
    const early = bench.accept("early");
    await rounds();
    bench.recorder.gate = second.promise;
    const beside = bench.accept("beside");
    await rounds();
    bench.recorder.gate = null;
    // The other turn and all that follows from it end before there is anything to claim.
    first.resolve();
    await early;
    await rounds();
    second.resolve();
    await beside;
    await bench.clock.advance(0);
    expect(await bench.states()).toEqual(["handled", "handled"]);
    const idle = await openParallel();
    const other = deferred();
    idle.recorder.gate = other.promise;
    const accepting = idle.accept("early");
    await rounds();
    idle.recorder.gate = null;
    await idle.accept("beside");
    other.resolve();
    await accepting;
    await rounds();
    expect(turns(idle)).toHaveLength(2);
  });

  it("rejects the deliveries of such a turn alone when it fails (I2, RCV-3)", async () => {
    const bench = await openParallel();
    const gate = deferred();
    bench.recorder.gate = gate.promise;
    const early = bench.accept("early");
    await rounds();
    bench.recorder.gate = null;
    bench.recorder.failNextTurns = 1;
    await expect(bench.accept("beside")).rejects.toThrow("the disk is on fire");
    expect(await bench.accept("beside")).toMatchObject({ outcome: "accepted" });
    gate.resolve();
    expect(await early).toMatchObject({ outcome: "accepted" });
  });

  it("is closed when both turns have ended", async () => {
    const bench = await openParallel();
    const [first, second] = [deferred(), deferred()];
    bench.recorder.gate = first.promise;
    const early = bench.accept("early");
    await rounds();
    bench.recorder.gate = second.promise;
    const beside = bench.accept("beside");
    await rounds();
    let isClosed = false;
    const closing = bench.batcher.close().then(() => {
      isClosed = true;
    });
    first.resolve();
    await early;
    await rounds();
    expect(isClosed).toBe(false);
    second.resolve();
    await Promise.all([beside, closing]);
    expect(isClosed).toBe(true);
  });
});
