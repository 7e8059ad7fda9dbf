/** The one clock of a run, which both sides share, moved on. */

import type { Clock } from "../../../src/internal/clock.ts";
import type { Emulator } from "../../../src/messaging/emulator/index.ts";
import type { FakeClock } from "../../../src/tools/testing/index.ts";

/** What is sent within a step arrives at its end. */
const STEP_MS = 30_000;
const SHORT_STEP_MS = 500;
/** A receiver that was seen 90 s ago still counts as living. */
const GRAIN_MS = 60_000;

/**
 * The same time with timers that ring every minute only: late, as timers may be. A receiver looks for other processes ten times a
 * second and says that it lives every ten, and seven hours of that is most of what a run would cost.
 */
export function withCoarseTimers(clock: FakeClock): Clock {
  return {
    now: clock.now,
    monotonic: clock.monotonic,
    setTimeout(callback, ms) {
      const now = clock.monotonic();
      return clock.setTimeout(callback, Math.ceil((now + ms) / GRAIN_MS) * GRAIN_MS - now);
    },
  };
}

export interface Time {
  /** Lets time pass; every attempt that came due in it has ended afterwards. */
  pass(ms: number): Promise<void>;
  /** Lets it pass until `work` has ended. */
  passUntil<T>(work: Promise<T>): Promise<T>;
}

export function timeOf(clock: FakeClock, emulator: Emulator): Time {
  const step = async (ms: number) => {
    await emulator.clock.idle();
    await clock.advance(ms);
  };
  return {
    async pass(ms) {
      const end = clock.now() + ms;
      while (clock.now() < end) await step(Math.min(STEP_MS, end - clock.now()));
      await emulator.clock.idle();
    },
    async passUntil(work) {
      let isUnderWay = true;
      const ended = () => {
        isUnderWay = false;
      };
      work.then(ended, ended);
      while (isUnderWay) await step(SHORT_STEP_MS);
      return work;
    },
  };
}
