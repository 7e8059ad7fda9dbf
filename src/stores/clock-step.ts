/** How far a clock must have gone back for a store to look at its lanes. */

/**
 * A smaller step is not worth looking at all lanes that wait: what is ready waits as long as the step at most. And answers of one
 * clock that were asked for at the same time may be told in another order.
 */
const SMALLEST_STEP_MS = 1000;

/** @param latest - the latest time known to have been written by */
export function wentBack(now: number, latest: number): boolean {
  return now < latest - SMALLEST_STEP_MS;
}
