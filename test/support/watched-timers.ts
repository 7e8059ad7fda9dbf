/** A clock that tells how many of its timers run: what has ended must leave none behind. */
import type { Clock, Timer } from "../../src/internal/clock.ts";

export interface Watched<C extends Clock> {
  readonly clock: C;
  running(): number;
  /** Those of them that keep the process. */
  keeping(): number;
}

/** The clock, with a count of what was set on it and has neither fired nor been cancelled. */
export function watchedTimers<C extends Clock>(clock: C): Watched<C> {
  const timers = new Map<Timer, boolean>();
  const setTimeout: Clock["setTimeout"] = (callback, ms) => {
    const fired = () => {
      timers.delete(watched);
      callback();
    };
    const timer = clock.setTimeout(fired, ms);
    const watched: Timer = {
      cancel: () => {
        timers.delete(watched);
        timer.cancel();
      },
      keepAlive: () => {
        if (timers.has(watched)) timers.set(watched, true);
      },
    };
    timers.set(watched, false);
    return watched;
  };
  return {
    clock: { ...clock, setTimeout },
    running: () => timers.size,
    keeping: () => [...timers.values()].filter((isKeeping) => isKeeping).length,
  };
}
