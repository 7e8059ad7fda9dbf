/** Whether something grows, or only goes up and down: the judge of a soak. */

import { median } from "../support/statistics.ts";

/** When it was looked, ms, and what was seen. */
export type Point = readonly [atMs: number, value: number];

/** Growth over the steady part that is no drift yet: the larger of the two. */
export interface Tolerance {
  /** Of the median. */
  readonly share: number;
  /** In the unit of the values. */
  readonly least: number;
}

export interface Drift {
  /** Over the steady part, by the slope. */
  readonly growth: number;
  readonly allowed: number;
  readonly median: number;
}

/** Caches fill and code is compiled until then. */
const WARM_UP = 1 / 3;
/** With fewer points in the steady part one that is off would decide. */
const LEAST_POINTS = 5;

/**
 * The growth by the median of the slopes between all pairs of points (Theil and Sen), which more than a quarter of the points can
 * be off without changing.
 *
 * @throws when the steady part has too few points to tell
 */
export function driftOf(points: readonly Point[], { share, least }: Tolerance): Drift {
  const steady = points.slice(Math.floor(points.length * WARM_UP));
  const [first, last] = [steady[0], steady.at(-1)];
  if (first === undefined || last === undefined || steady.length < LEAST_POINTS)
    throw new Error(`${steady.length} points are too few to see a drift.`);
  const slopes = steady.flatMap(([at, value], index) =>
    steady.slice(index + 1).map(([laterAt, laterValue]) => (laterValue - value) / (laterAt - at)),
  );
  const middle = median(steady.map(([, value]) => value));
  return {
    growth: median(slopes) * (last[0] - first[0]),
    allowed: Math.max(least, share * Math.abs(middle)),
    median: middle,
  };
}

export function isDrift({ growth, allowed }: Drift): boolean {
  return growth > allowed;
}
