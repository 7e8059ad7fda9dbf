/** A fake clock for worlds with real input and output: time stands still until what is asked of a server is answered. */
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { FakeClock } from "../../../src/tools/testing/index.ts";

/** A server that others ask too. */
export interface AskedServer {
  /** Nobody waits for an answer now. */
  isQuiet(): boolean;
  /** Resolves when nobody does. */
  answered(): Promise<void>;
  /** Whether it works on nothing, so that what is open waits for time to pass: behind another's lock, or for a connection. */
  rests(): Promise<boolean>;
}

const QUIET_ROUNDS = 5;
const LOOK_EVERY_MS = 50;
/** One look can fall between two statements, or before one that a busy machine has not delivered yet. */
const LOOKS = 3;

export function patientClock(clock: FakeClock, server: AskedServer): FakeClock {
  const dues = new Set<{ readonly at: number }>();
  const settled = async () => {
    for (let rounds = 0; rounds < QUIET_ROUNDS; ) {
      if (!server.isQuiet() && !(await isAnswered(server))) return;
      await setImmediate();
      rounds = server.isQuiet() ? rounds + 1 : 0;
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

/** False when no answer comes before time passes. */
async function isAnswered(server: AskedServer): Promise<boolean> {
  const answered = server.answered().then(() => true);
  for (let rested = 0; rested < LOOKS; ) {
    if (await Promise.race([answered, sleep(LOOK_EVERY_MS, false)])) return true;
    rested = (await server.rests()) ? rested + 1 : 0;
  }
  return false;
}
