/** A fake clock for worlds with real input and output: time stands still until what is asked of a server is answered. */
import { setImmediate } from "node:timers/promises";
import type { FakeClock } from "../../src/testing/index.ts";

/** Something in the store may itself wait for time to pass: then it is given some. */
const LONGEST_WAIT_MS = 50;
const QUIET_ROUNDS = 5;

/** @param isQuiet - nobody waits for an answer now */
export function patientClock(clock: FakeClock, isQuiet: () => boolean): FakeClock {
  const dues = new Set<{ readonly at: number }>();
  const settled = async () => {
    const deadline = performance.now() + LONGEST_WAIT_MS;
    for (let rounds = 0; rounds < QUIET_ROUNDS && performance.now() < deadline; ) {
      rounds = isQuiet() ? rounds + 1 : 0;
      await setImmediate();
    }
  };
  return {
    ...clock,
    setTimeout(callback, ms) {
      const due = { at: clock.monotonic() + Math.max(0, ms) };
      dues.add(due);
      const timer = clock.setTimeout(() => {
        dues.delete(due);
        callback();
      }, ms);
      const cancel = () => {
        dues.delete(due);
        timer.cancel();
      };
      return { ...timer, cancel };
    },
    async advance(ms) {
      const end = clock.monotonic() + ms;
      for (;;) {
        await settled();
        const next = Math.min(end, ...[...dues].map(({ at }) => at));
        await clock.advance(Math.max(0, next - clock.monotonic()));
        if (next >= end) return settled();
      }
    },
  };
}
