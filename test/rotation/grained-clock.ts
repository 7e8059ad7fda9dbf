/** A clock whose timers ring late, together: a receiver that looks around ten times a second would be most of what hours cost. */
import type { Clock } from "../../src/internal/clock.ts";

export interface GrainedClock extends Clock {
  /** Timers that are set from now on ring at multiples of it, milliseconds. */
  grainMs: number;
}

export function grained(clock: Clock, grainMs: number): GrainedClock {
  return {
    grainMs,
    now: clock.now,
    monotonic: clock.monotonic,
    setTimeout(callback, ms) {
      const now = clock.monotonic();
      return clock.setTimeout(callback, Math.ceil((now + ms) / this.grainMs) * this.grainMs - now);
    },
  };
}
