/** When a failed event is tried again, and how long a gap is waited for. */

import type { Random } from "../internal/clock.ts";
import { invalidOption } from "../internal/options.ts";
import { LONGEST_WAIT_MS } from "./gap.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Eleven waits between twelve attempts: 12 to 24 hours, so that a night's outage of a dependency costs nothing. */
const WAITS = [
  SECOND,
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  4 * HOUR,
  8 * HOUR,
  8 * HOUR,
] as const;

/** Attempts before an event becomes a dead letter. */
export const DEFAULT_MAX_ATTEMPTS = WAITS.length + 1;

/** Milliseconds to wait after failed attempt `attempt` (1 or more): between half of the scheduled wait and all of it. */
export function backoffMs(attempt: number, random: Random): number {
  const wait = WAITS[Math.min(Math.max(attempt, 1), WAITS.length) - 1] ?? HOUR;
  return Math.round(wait / 2 + (random() * wait) / 2);
}

/** Bounds a wait that a user's function gave. */
export function boundedWait(name: string, ms: unknown): number {
  if (typeof ms === "number" && ms >= 0 && ms <= LONGEST_WAIT_MS) return Math.round(ms);
  throw invalidOption(name, `must give 0 to ${LONGEST_WAIT_MS} ms (24 h)`, ms);
}

/** What a store keeps of an event that is retired at claim, since a claim would be one attempt too many. */
export const ATTEMPTS_EXHAUSTED = {
  code: "attempts_exhausted",
  message: "Its attempts were used up without being settled: its process died or lost the lease each time.",
} as const;
