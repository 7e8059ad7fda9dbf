/** What an open inbox does by itself: here, that pruning catches up, and keeps out of the way. */
import { describe, expect, it } from "vitest";
import { type Bench, idleTurns, memoryBench, until } from "./bench.ts";

const MINUTE = 60_000;

/** A store that has `batches` batches to prune; each takes `ms` of the clock. */
function backlog(batches: number, ms = 0) {
  const bench: Bench<never> = memoryBench();
  let pruned = 0;
  bench.store.prune = async () => {
    pruned++;
    if (ms > 0) await bench.clock.advance(ms);
    return { bodies: 500, events: 0, lanes: 0, quarantined: 0, more: pruned < batches };
  };
  bench.receiver.onAny(() => {});
  return { ...bench, pruned: () => pruned };
}

describe("pruning", () => {
  it("by the timer goes on until nothing is left, and gives way between two batches", async () => {
    const { receiver, clock, pruned } = backlog(200);
    await receiver.start();
    await clock.advance(10 * MINUTE);
    expect(pruned()).toBeLessThan(200);
    await until(() => pruned() === 200);
    await idleTurns();
    expect(pruned()).toBe(200);
    await clock.advance(10 * MINUTE);
    expect(pruned()).toBe(201);
  });

  it("by the timer ends when the receiver stops", async () => {
    const { receiver, clock, pruned } = backlog(Number.POSITIVE_INFINITY);
    await receiver.start();
    await clock.advance(10 * MINUTE);
    await receiver.stop();
    const atStop = pruned();
    await idleTurns();
    expect(pruned()).toBe(atStop);
  });

  it("by a drain takes 20 batches at most", async () => {
    const { receiver, pruned } = backlog(200);
    await receiver.drain();
    expect(pruned()).toBe(20);
  });

  it("by a drain takes no more than what is left of its budget", async () => {
    const { receiver, pruned } = backlog(200, 100);
    await receiver.drain({ budgetMs: 350 });
    expect(pruned()).toBe(4);
  });
});
