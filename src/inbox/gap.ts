/** What a lane does next, and how long it waits: for a missing sequence, or for the next attempt. Pure, and the same for every store. */
import type { Random } from "../internal/clock.ts";
import { invalidOption } from "../internal/options.ts";
import type { LaneOrder } from "./lane-key.ts";
import type { SequenceRules } from "./store.ts";

/** The sequences of one position in a `position` lane. */
export const PLACES = 1_000;

/** No wait is ever longer. */
export const LONGEST_WAIT_MS = 24 * 3_600_000;

/**
 * A `readyAt` further ahead means that the clock was set back, and counts as due. An hour more than any wait: otherwise the smallest
 * clock step would end the longest wait at its beginning (I6).
 */
export const TOO_FAR_AHEAD_MS = LONGEST_WAIT_MS + 3_600_000;

/** An event is fresh for so long after its acceptance: see `ClaimRequest.fresh`. */
export const FRESH_MS = 60_000;

/** Whether an event came in the last minute, and is not a replay. */
export function isFreshEvent({ forced, acceptedAt }: Pick<Candidate, "forced" | "acceptedAt">, now: number): boolean {
  return !forced && acceptedAt > now - FRESH_MS;
}

/** Since when a lane that becomes ready waits to be claimed: a head that is not fresh, such as a replay, comes behind those that are. */
export function readySince({ acceptedAt }: Pick<Candidate, "acceptedAt">, now: number): number {
  return Math.min(now, Math.max(acceptedAt, now - FRESH_MS));
}

/** What the decision needs to know of a lane. The rules of its entry are asked for only by sequence. */
export interface LanePosition extends SequenceRules {
  readonly order: LaneOrder | null;
  readonly cursor: number | null;
  readonly gapSince: number | null;
  /** An event at this sequence has ended, as after a replay or a discard: nothing is missing there. */
  isSettled(sequence: number): boolean;
  /** When the first of the events was accepted that are pending, not late and not forced. */
  heldSince(): number;
}

/** What the decision needs to know of a pending event. */
export interface Candidate {
  readonly sequence: number;
  readonly forced: boolean;
  readonly gapWaitMs: number;
  readonly occurredAt: number;
  readonly acceptedAt: number;
}

/** What a lane does next. `missing` is the gap whose wait ends when `head` is taken now. */
export type Arming<C extends Candidate> =
  | { readonly status: "idle"; readonly gapSince: null }
  | { readonly status: "ready"; readonly head: C; readonly missing: Missing | null; readonly gapSince: number | null }
  | { readonly status: "gap"; readonly head: C; readonly dueAt: number; readonly gapSince: number };

export interface Missing {
  readonly from: number;
  readonly to: number;
}

/**
 * Decides what a lane does next: the core of the ordering.
 *
 * @param head - the pending event lowest in (sequence, id) that is not late
 * @param late - the lowest late event: taken while the head waits for its gap
 */
export function arm<C extends Candidate>(lane: LanePosition, head: C | null, late: C | null, now: number): Arming<C> {
  if (head === null) {
    return late === null
      ? { status: "idle", gapSince: null }
      : { status: "ready", head: late, missing: null, gapSince: null };
  }
  // A replay has no place in the sequence: a wait that continues behind it keeps its start.
  if (head.forced) return { status: "ready", head, missing: null, gapSince: lane.gapSince };
  if (lane.order === "position" && head.gapWaitMs > 0) return armHeldBack(lane, head, late, now);
  const missing = gapBefore(lane, head);
  if (missing === null) return { status: "ready", head, missing: null, gapSince: null };
  const gapSince = lane.gapSince ?? now;
  const dueAt = gapDueAt(head, gapSince, lane.lastRetryMs);
  // A wait of 0 was ended by an operator. It is due even if the clock was set back behind its start.
  if (head.gapWaitMs === 0 || isDue(dueAt, now)) return { status: "ready", head, missing, gapSince };
  if (late !== null) return { status: "ready", head: late, missing: null, gapSince };
  return { status: "gap", head, dueAt, gapSince };
}

/**
 * Events that are held back are due when any of them has waited so long: otherwise falling positions would delay each other without an end.
 * The lowest is then taken first.
 */
function armHeldBack<C extends Candidate>(lane: LanePosition, head: C, late: C | null, now: number): Arming<C> {
  const gapSince = lane.heldSince();
  const dueAt = gapSince + head.gapWaitMs;
  if (isDue(dueAt, now)) return { status: "ready", head, missing: null, gapSince: null };
  if (late !== null) return { status: "ready", head: late, missing: null, gapSince };
  return { status: "gap", head, dueAt, gapSince };
}

/**
 * The start of a lane's wait without the event `gone`. The lowest event in order waits for the gap; the next one has waited since it
 * arrived at most (I6).
 *
 * @param inTurn - the pending events that are neither late nor forced, by (sequence, id). The first two are enough
 */
export function gapSinceWithout(
  gone: number,
  gapSince: number | null,
  inTurn: readonly { readonly id: number; readonly acceptedAt: number }[],
): number | null {
  const [waiting, next] = inTurn;
  if (gapSince === null || waiting?.id !== gone) return gapSince;
  return next === undefined ? null : Math.max(gapSince, next.acceptedAt);
}

/** The sequence that a lane expects. Null if it accepts any. */
export function expectedSequence(lane: Pick<LanePosition, "cursor" | "firstSequence">): number | null {
  if (lane.cursor !== null) return lane.cursor + 1;
  return lane.firstSequence === "any" ? null : lane.firstSequence;
}

/** True if `readyAt` has passed, or lies so far ahead that the clock must have been set back. */
export function isDue(readyAt: number, now: number): boolean {
  return readyAt <= now || readyAt > now + TOO_FAR_AHEAD_MS;
}

/** The sequences that are missing between a lane's cursor and its head. */
export function gapBefore(
  lane: Omit<LanePosition, "gapSince" | "heldSince" | "lastRetryMs">,
  head: Pick<Candidate, "sequence">,
): Missing | null {
  if (lane.order !== "sequence") return null;
  const expected = expectedSequence(lane);
  if (expected === null || head.sequence <= expected) return null;
  let from = expected;
  while (from < head.sequence && lane.isSettled(from)) from++;
  return from === head.sequence ? null : { from, to: head.sequence - 1 };
}

/** The provider does not retry after `lastRetryMs`. If the head itself arrived later, a backlog delays everything, so that bound does not apply. */
function gapDueAt(head: Candidate, gapSince: number, lastRetryMs: number): number {
  const waitedOut = gapSince + head.gapWaitMs;
  const lastRetry = head.occurredAt + lastRetryMs;
  return head.acceptedAt <= lastRetry ? Math.min(waitedOut, lastRetry) : waitedOut;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Eleven waits between twelve attempts: 12 to 24 hours, so that events survive a dependency that is down overnight. */
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

/** Checks a wait that a user's function returned. */
export function boundedWait(name: string, ms: unknown): number {
  if (typeof ms === "number" && ms >= 0 && ms <= LONGEST_WAIT_MS) return Math.round(ms);
  throw invalidOption(name, `must return 0 to ${LONGEST_WAIT_MS} ms (24 h)`, ms);
}

/** The error of an event that a claim retires, because it would be one attempt too many. */
export const ATTEMPTS_EXHAUSTED = {
  code: "attempts_exhausted",
  message: "Its attempts were used up without an end: each time its process died or lost the lease.",
} as const;
