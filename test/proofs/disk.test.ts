/** What is held against the windows of a fault. */
import { describe, expect, it } from "vitest";
import { shortcomings } from "./disk.ts";

function outcome(...refused: readonly number[]) {
  const windows = refused.map((count) => ({ refused: count, recoveredMs: 10, stallMs: 10 }));
  return { windows, breaches: [], acknowledged: 1, problems: [] };
}

describe("shortcomings()", () => {
  it("wants a fault to be in the way, but for one window in ten", () => {
    expect(shortcomings(outcome(5, 5, 5, 5, 5, 5, 5, 5, 5, 0), null)).toEqual([]);
    expect(shortcomings(outcome(5, 5, 5, 5, 5, 5, 5, 5, 0), null)).toHaveLength(1);
    expect(shortcomings(outcome(0), null)).toEqual(["1 windows refused nothing: the fault was in nobody's way"]);
  });

  it("wants each window to end within its time, and no long stall where that is judged", () => {
    const slow = { ...outcome(5, 5), windows: [{ refused: 5, recoveredMs: 5_001, stallMs: 251 }] };
    expect(shortcomings(slow, null)).toEqual(["window 1: took events again only after 5001 ms"]);
    expect(shortcomings(slow, 250)).toHaveLength(2);
  });
});
