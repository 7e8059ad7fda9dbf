import { describe, expect, it } from "vitest";
import type { Sample } from "../../../src/inspector/api.ts";
import { merged } from "../../../src/inspector/page/live.ts";

const MINUTE_MS = 60_000;

function sampleAt(at: number): Sample {
  return {
    at,
    pending: 0,
    oldestWaitingMs: 0,
    dead: 0,
    quarantined: 0,
    accepted: 0,
    handled: 0,
    late: 0,
    gapsSkipped: 0,
    rejected: 0,
  };
}

function timesOf(before: readonly number[], after: readonly number[]): number[] {
  return merged(before.map(sampleAt), after.map(sampleAt)).map(({ at }) => at);
}

describe("merged()", () => {
  it("puts what came after behind what was before, without twins", () => {
    expect(timesOf([1, 2, 3], [3, 4])).toEqual([1, 2, 3, 4]);
    expect(timesOf([], [1])).toEqual([1]);
    expect(timesOf([1], [])).toEqual([1]);
  });

  it("keeps 15 minutes", () => {
    expect(timesOf([0, 1, 5 * MINUTE_MS], [15 * MINUTE_MS + 1])).toEqual([1, 5 * MINUTE_MS, 15 * MINUTE_MS + 1]);
  });
});
