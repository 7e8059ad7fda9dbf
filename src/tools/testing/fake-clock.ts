/** A clock that stands still until a test moves it. */
import { SetupError } from "../../errors.ts";
import type { Clock } from "../../internal/clock.ts";

/** A `Clock` under a test's control. */
export interface FakeClock extends Clock {
  /**
   * Moves both clocks on by `ms` milliseconds, at least 0, and fires the timers that come due, in order. Between them it
   * lets promises and `setImmediate` callbacks settle, so that a timer set by one of them fires in the same call. It does not wait for
   * real input or output.
   */
  advance(ms: number): Promise<void>;
  /** Makes the wall clock jump to `epochMs`, back or ahead. The monotonic clock and the timers do not notice. */
  set(epochMs: number): void;
}

interface PendingTimer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** Code that checks again after another `setImmediate` needs a few turns of the event loop. */
const SETTLE_ROUNDS = 5;

/**
 * Makes a clock for tests. Two made with the same start behave the same.
 *
 * @param start - the wall clock's first reading in epoch milliseconds; default 1,760,000,000,000 (9 October 2025)
 *
 * @example
 * const clock = createFakeClock();
 * let rang = false;
 * clock.setTimeout(() => { rang = true; }, 60_000);
 * await clock.advance(60_000);
 * console.log(rang); // true
 */
export function createFakeClock(start = 1_760_000_000_000): FakeClock {
  const timers = new Set<PendingTimer>();
  let wall = start;
  let monotonic = 0;

  const moveTo = (instant: number) => {
    wall += instant - monotonic;
    monotonic = instant;
  };
  return {
    now: () => wall,
    monotonic: () => monotonic,
    setTimeout(callback, ms) {
      const timer = { dueAt: dueAfter(monotonic, ms), callback };
      timers.add(timer);
      // A test moves the clock, so no process waits for it.
      return { cancel: () => void timers.delete(timer), keepAlive: () => {} };
    },
    async advance(ms) {
      if (!(ms >= 0)) throw new SetupError("invalid_option", `advance() takes milliseconds from 0 up, not ${ms}.`);
      const end = monotonic + ms;
      await settle();
      for (let next = earliest(timers, end); next !== null; next = earliest(timers, end)) {
        timers.delete(next);
        moveTo(Math.max(monotonic, next.dueAt));
        next.callback();
        await settle();
      }
      moveTo(Math.max(monotonic, end));
    },
    set(epochMs) {
      wall = epochMs;
    },
  };
}

/** A wait too short to change the sum takes a millisecond, as in Node. Otherwise time stands still for a timer that is set again. */
function dueAfter(now: number, ms: number): number {
  const dueAt = now + Math.max(0, ms);
  return ms > 0 && dueAt === now ? now + 1 : dueAt;
}

/** The timer that is due first, among equals the one set first; null when none is due by `end`. */
function earliest(timers: ReadonlySet<PendingTimer>, end: number): PendingTimer | null {
  let first: PendingTimer | null = null;
  for (const timer of timers) {
    if (timer.dueAt <= end && (first === null || timer.dueAt < first.dueAt)) first = timer;
  }
  return first;
}

async function settle(): Promise<void> {
  for (let round = 0; round < SETTLE_ROUNDS; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}
