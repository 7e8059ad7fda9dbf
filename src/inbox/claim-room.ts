/** How far a claim goes within one turn. */

/**
 * Events that a turn retires at most: while it does, nothing else is written, and an embedded store holds up the event loop.
 * Lowering the number of attempts can leave any number of them due at once. The core asks again.
 */
export const RETIRED_PER_TURN = 256;

interface Found {
  readonly leased: readonly unknown[];
  readonly retired: readonly unknown[];
}

/** How many more lanes a claim of up to `limit` may look at, after what it found; none left is 0 or less. */
export function roomLeft({ leased, retired }: Found, limit: number): number {
  return Math.min(limit - leased.length, RETIRED_PER_TURN - retired.length);
}
