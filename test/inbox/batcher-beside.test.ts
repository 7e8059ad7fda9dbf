/** Turns of accepts alone, beside the turn that settles and claims, where the store takes several at once. */
import { describe, expect, it } from "vitest";
import { QUICK_BATCH } from "../../src/inbox/group-commit.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type Bench, type BenchOptions, deferred, openBench, rounds } from "./bench.ts";

function openParallel(options: BenchOptions<never> = {}, store: Partial<InboxStore<never>> = {}): Promise<Bench> {
  const inner = memoryStore({ volatile: true });
  const capabilities = { ...inner.capabilities, parallelTurns: true };
  return openBench({ ...options, store: { ...inner, capabilities, ...store } });
}

const FIRST_ARE_QUICK: Partial<InboxStore<never>> = { acceptsQuickly: ({ sequence }) => sequence === 1 };

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
    expect(bench.recorder.turns[1]).toMatchObject({ settles: [], quarantines: [] });
  });

  it("takes no turn beside another without a delivery to accept", async () => {
    const bench = await openParallel();
    const gate = deferred();
    bench.recorder.gate = gate.promise;
    const early = bench.accept("early");
    await rounds();
    bench.groupCommit.poke();
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
    const closing = bench.groupCommit.close().then(() => {
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

describe("Batcher, with a store that accepts some events quickly", () => {
  it("begins a turn of them as soon as they are one, while more are on their way", async () => {
    const bench = await openParallel({}, FIRST_ARE_QUICK);
    const accepting = bench.acceptMany(QUICK_BATCH + 8);
    expect(turns(bench)).toEqual([[QUICK_BATCH, false]]);
    await accepting;
    expect(turns(bench)).toEqual([
      [QUICK_BATCH, false],
      [8, false],
    ]);
  });

  it("waits for no more than it has where all were taken meanwhile", async () => {
    const bench = await openParallel({}, FIRST_ARE_QUICK);
    const accepting = bench.acceptMany(QUICK_BATCH);
    await Promise.all([accepting, bench.groupCommit.idle()]);
    await rounds();
    expect(turns(bench)).toEqual([[QUICK_BATCH, false]]);
  });

  it("has one such turn under way at once, and lets the rest gather for the other", async () => {
    const bench = await openParallel({}, FIRST_ARE_QUICK);
    const gate = deferred();
    bench.recorder.gate = gate.promise;
    const accepting = bench.acceptMany(2 * QUICK_BATCH + 8);
    await rounds();
    const later = bench.acceptMany(QUICK_BATCH, "later");
    await rounds();
    expect(turns(bench).map(([accepts]) => accepts)).toEqual([QUICK_BATCH, QUICK_BATCH + 8]);
    gate.resolve();
    await Promise.all([accepting, later]);
    expect(turns(bench).map(([accepts]) => accepts)).toEqual([QUICK_BATCH, QUICK_BATCH + 8, QUICK_BATCH]);
  });

  it("lets them gather behind one that it does not accept quickly, and begins again once that is taken", async () => {
    const bench = await openParallel({}, FIRST_ARE_QUICK);
    const slow = bench.accept("slow", 2);
    const accepting = bench.acceptMany(QUICK_BATCH);
    expect(turns(bench)).toEqual([]);
    await Promise.all([slow, accepting]);
    expect(turns(bench)).toEqual([[QUICK_BATCH + 1, false]]);
    const again = bench.acceptMany(QUICK_BATCH, "again");
    expect(turns(bench)).toHaveLength(2);
    await again;
  });

  it("lets them gather where the store takes one turn at a time", async () => {
    const { capabilities } = memoryStore({ volatile: true });
    const bench = await openParallel({}, { ...FIRST_ARE_QUICK, capabilities });
    const accepting = bench.acceptMany(QUICK_BATCH);
    expect(turns(bench)).toEqual([]);
    await accepting;
  });

  it("leaves nothing behind of a delivery of which the store cannot say it", async () => {
    const acceptsQuickly: InboxStore<never>["acceptsQuickly"] = ({ lane }) => {
      if (lane.messageId === "odd") throw new Error("no idea");
      return true;
    };
    const bench = await openParallel({}, { acceptsQuickly });
    await expect(bench.accept("odd")).rejects.toThrow("no idea");
    await bench.accept("other");
    expect(turns(bench)).toEqual([[1, false]]);
  });
});
