/** Batches of accepts alone next to a batch with effects, where the store takes several batches at once. */
import { describe, expect, it } from "vitest";
import type { Acceptance } from "../../src/inbox/store.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type Bench, type BenchOptions, ENDS, openBench, rounds, watched } from "./bench.ts";

function openBeside(options: BenchOptions<never> = {}, parallelTurns = true): Promise<Bench> {
  const inner = memoryStore({ volatile: true });
  const capabilities = { ...inner.capabilities, parallelTurns };
  return openBench({ ...options, store: { ...inner, capabilities } });
}

/** Begins a batch with `deliveries` and the end of a lease, and waits until the store has it. */
async function begin(bench: Bench, deliveries = 1, end: keyof typeof ENDS = "effects"): Promise<Promise<unknown>[]> {
  bench.groupCommit.settle(ENDS[end], () => {});
  const answers = Array.from({ length: deliveries }, (_, index) => bench.accept(`early${index}`));
  await rounds();
  return answers;
}

/** What each batch accepted. */
const accepted = (bench: Bench) => bench.recorder.turns.map(({ accepts }) => accepts.length);

describe("GroupCommit, with a store that takes several batches at once", () => {
  it("accepts next to a batch with effects, one batch at a time, and answers before that one ends", async () => {
    const bench = await openBeside();
    const letFirstGo = bench.hold();
    const early = await begin(bench, 3);
    const letSecondGo = bench.hold();
    const beside = bench.acceptMany(5, "beside");
    await rounds();
    const waiting = bench.acceptMany(7, "waiting");
    await rounds();
    expect(accepted(bench)).toEqual([3, 5]);
    letSecondGo();
    expect((await beside).map(({ outcome }) => outcome)).toEqual(Array(5).fill("accepted"));
    await waiting;
    letFirstGo();
    await Promise.all(early);
    expect(accepted(bench)).toEqual([3, 5, 7]);
    expect(bench.recorder.turns[1]).toMatchObject({ settles: [], quarantines: [], claim: { limit: 0 } });
  });

  it.each<[string, keyof typeof ENDS, boolean]>([
    ["has no effects: one larger batch costs less than two", "no effects", true],
    ["only retries", "a retry", true],
    ["is of a store that takes one at a time", "effects", false],
  ])("lets deliveries gather where the batch %s", async (_why, end, parallelTurns) => {
    const bench = await openBeside({}, parallelTurns);
    const letGo = bench.hold();
    const early = await begin(bench, 1, end);
    const later: Promise<Acceptance>[] = [];
    for (const name of ["a", "b", "c"]) {
      later.push(bench.accept(name));
      await rounds();
    }
    expect(accepted(bench)).toEqual([1]);
    letGo();
    await Promise.all([...early, ...later]);
    expect(accepted(bench)).toEqual([1, 3]);
  });

  it("accepts nothing in a batch whose effects are functions: an answer does not wait for them", async () => {
    const bench = await openBeside();
    bench.groupCommit.settle(ENDS["a function"], () => {});
    const letGo = bench.hold();
    const early = bench.accept("early");
    await rounds();
    expect(accepted(bench)).toEqual([0, 1]);
    letGo();
    expect((await early).outcome).toBe("accepted");
    const alone = await openBeside({}, false);
    await Promise.all(await begin(alone, 2, "a function"));
    expect(accepted(alone)).toEqual([2]);
  });

  it("has what came meanwhile claimed by a batch of its own, and by none where no worker runs (I5)", async () => {
    const bench = await openBeside({ register: (on) => on.onAny(() => {}) });
    bench.worker.start();
    await rounds();
    const letFirstGo = bench.hold();
    const early = await begin(bench);
    const letSecondGo = bench.hold();
    const beside = bench.accept("beside");
    await rounds();
    bench.recorder.gate = null;
    // The other batch and all that follows from it end before there is anything to claim.
    letFirstGo();
    await Promise.all(early);
    await rounds();
    letSecondGo();
    await beside;
    await bench.clock.advance(0);
    expect(await bench.states()).toEqual(["handled", "handled"]);
    const idle = await openBeside();
    const letGo = idle.hold();
    const accepting = await begin(idle);
    idle.recorder.gate = null;
    await idle.accept("beside");
    letGo();
    await Promise.all(accepting);
    await rounds();
    expect(accepted(idle)).toEqual([1, 1]);
  });

  it("rejects the deliveries of such a batch alone when it fails (I2, RCV-3)", async () => {
    const bench = await openBeside();
    const letGo = bench.hold();
    const early = await begin(bench);
    bench.recorder.gate = null;
    bench.recorder.failNextTurns = 1;
    await expect(bench.accept("beside")).rejects.toThrow("the disk is on fire");
    expect(await bench.accept("beside")).toMatchObject({ outcome: "accepted" });
    letGo();
    expect(await Promise.all(early)).toMatchObject([{ outcome: "accepted" }]);
  });

  it("is closed when both batches have ended", async () => {
    const bench = await openBeside();
    const letFirstGo = bench.hold();
    const early = await begin(bench);
    const letSecondGo = bench.hold();
    const beside = bench.accept("beside");
    await rounds();
    const closing = bench.groupCommit.close();
    const isClosed = watched(closing);
    letFirstGo();
    await Promise.all(early);
    await rounds();
    expect(isClosed()).toBe(false);
    letSecondGo();
    await Promise.all([beside, closing]);
    expect(isClosed()).toBe(true);
  });
});
