/** What counts as too slow after a kill. */
import { describe, expect, it } from "vitest";
import { recoveryOf, tooSlow } from "./crash-recovery.ts";

const LIMIT_MS = 1_000;
const SLOW_MS = 1_001;

/** `count` openings, of which the first `slow` take too long by the clock. */
function openings(count: number, slow: number) {
  return Array.from({ length: count }, (_, index) => ({ recoveryMs: index < slow ? SLOW_MS : 30, processorMs: 20 }));
}

describe("tooSlow()", () => {
  it("lets one opening of each 50 wait for the disk, and no second one", () => {
    expect(tooSlow(recoveryOf(openings(10, 1)), LIMIT_MS)).toEqual([]);
    expect(tooSlow(recoveryOf(openings(50, 1)), LIMIT_MS)).toEqual([]);
    expect(tooSlow(recoveryOf(openings(50, 2)), LIMIT_MS)).toHaveLength(1);
    expect(tooSlow(recoveryOf(openings(51, 2)), LIMIT_MS)).toEqual([]);
    expect(tooSlow(recoveryOf(openings(51, 3)), LIMIT_MS)).toHaveLength(1);
  });

  it("grants no opening more of the processor, the slowest neither", () => {
    const others = openings(49, 0);
    const taking = (processorMs: number) => recoveryOf([...others, { recoveryMs: 600, processorMs }]);
    expect(tooSlow(taking(500), LIMIT_MS)).toEqual([]);
    expect(tooSlow(taking(501), LIMIT_MS)).toHaveLength(1);
  });

  it("tells the slowest one all the same", () => {
    expect(recoveryOf(openings(50, 1))).toEqual({ slowestMs: SLOW_MS, slowestJudgedMs: 30, mostProcessorMs: 20 });
  });
});
