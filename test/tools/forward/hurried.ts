/** A clock that runs faster than the system's. */
import type { Clock } from "../../../src/index.ts";
import { systemClock } from "../../../src/internal/clock.ts";

export function hurried(rate: number): Clock {
  const startedAt = systemClock.now();
  const start = systemClock.monotonic();
  return {
    now: () => Math.round(startedAt + (systemClock.monotonic() - start) * rate),
    monotonic: () => systemClock.monotonic() * rate,
    setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms / rate),
  };
}
