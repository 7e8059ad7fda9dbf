/** The end of the process when its reader has stalled: Node would wait for them for ever. */
import { type Clock, systemClock } from "../../internal/clock.ts";

/** For a reader that is only slow. */
const GRACE_MS = 1_000;

/**
 * Ends a process that only waits for its output to be taken, with the exit code that it has by then. What is dropped are remarks, and
 * lines of events that are not marked as handled: those come again.
 */
export function leaveUntaken(clock: Clock = systemClock): void {
  // The timer keeps nothing alive: where all was taken, the process has ended before.
  clock.setTimeout(() => {
    if ([process.stdout, process.stderr].some(({ writableLength }) => writableLength > 0)) process.exit();
  }, GRACE_MS);
}
