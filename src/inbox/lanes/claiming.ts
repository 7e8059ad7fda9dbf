/** Arms lanes, and leases the head of a lane whose turn has come. */
import { type Arming, ATTEMPTS_EXHAUSTED, arm } from "../gap.ts";
import type { OnDead } from "../record.ts";
import type { ClaimRequest, Lease } from "../store.ts";
import { finish, isOrdered, type LaneEvent, type LaneState, lowestPending, type Moment, schedule } from "./state.ts";

/** What a claim found so far. */
export interface Claimed {
  readonly leased: Leased[];
  readonly retired: LaneEvent[];
}

/** An event that was leased just now, and what was so at that moment. */
export interface Leased {
  readonly event: LaneEvent;
  readonly outOfOrder: boolean;
  readonly missing: Lease["missing"];
}

function armingOf(moment: Moment, lane: LaneState): Arming<LaneEvent> {
  const { cursor, gapSince } = lane;
  // It is asked of what lies between the cursor and the head, where nothing is pending.
  const isSettled = (sequence: number) => lane.events.some((event) => event.sequence === sequence);
  const position = { ordered: isOrdered(lane), cursor, gapSince, firstSequence: moment.firstSequence, isSettled };
  return arm(position, lowestPending(lane, false), lowestPending(lane, true), moment.now);
}

/**
 * Decides anew what a lane does next. A lane that was ready keeps its place among the ready ones.
 *
 * @returns whether it begins to wait for a missing sequence with that
 */
export function rearm(moment: Moment, lane: LaneState): boolean {
  const arming = armingOf(moment, lane);
  const beginsToWait = arming.status === "gap" && lane.gapSince === null;
  lane.gapSince = arming.gapSince;
  if (arming.status === "idle") schedule(lane, "idle", null);
  else if (arming.status === "gap") schedule(lane, "gap", arming.dueAt);
  else schedule(lane, "ready", lane.status === "ready" ? lane.readyAt : moment.now);
  return beginsToWait;
}

/** A dead letter behind which its lane goes on or is parked. @returns as `rearm` */
export function goOnAfterDead(moment: Moment, lane: LaneState, onDead: OnDead): boolean {
  if (onDead === "continue") return rearm(moment, lane);
  schedule(lane, "blocked", null);
  return false;
}

/** Leases a due lane's head, or retires it, or finds that there is none to take yet; the lane is not left due in vain. */
export function claimLane(moment: Moment, lane: LaneState, request: ClaimRequest, claimed: Claimed): void {
  const head = lane.leased === null ? takeUp(moment, lane) : lane.leased;
  if (head?.state !== "pending") rearm(moment, lane);
  else if (head.attempts >= request.maxAttempts) claimed.retired.push(retire(moment, head, request.onDead));
  else claimed.leased.push(lease(moment, head, request.leaseMs));
}

/** The head that a lane's turn has come for; null when it has none, or must wait after all. */
function takeUp(moment: Moment, lane: LaneState): LaneEvent | null {
  const arming = armingOf(moment, lane);
  if (arming.status !== "ready") return null;
  lane.gapSince = arming.gapSince;
  if (arming.missing !== null) {
    lane.gaps.push({ ...arming.missing, skippedAt: moment.now, filledAt: null });
    moment.tally.count("gapsSkipped");
  }
  return arming.head;
}

function lease(moment: Moment, event: LaneEvent, leaseMs: number): Leased {
  const { lane } = event;
  const outOfPlace = event.late || event.forced;
  const outOfOrder = outOfPlace && lane.cursor !== null && event.sequence < lane.cursor;
  if (!outOfPlace) moveCursor(lane, event.sequence);
  event.attempts++;
  event.startedAt ??= moment.now;
  schedule(lane, "leased", moment.now + leaseMs);
  lane.epoch++;
  lane.holder = moment.holder;
  lane.leased = event;
  return { event, outOfOrder, missing: missingBefore(event) };
}

function retire(moment: Moment, event: LaneEvent, onDead: OnDead): LaneEvent {
  finish(event, "dead", moment.now);
  event.errorCode = ATTEMPTS_EXHAUSTED.code;
  event.error = ATTEMPTS_EXHAUSTED.message;
  moment.tally.count("deadLettered");
  goOnAfterDead(moment, event.lane, onDead);
  return event;
}

/** Moves the cursor up to `sequence`; a gap that it reaches is no longer waited for. */
export function moveCursor(lane: LaneState, sequence: number): void {
  if (lane.cursor !== null && lane.cursor >= sequence) return;
  lane.cursor = sequence;
  lane.gapSince = null;
}

/** The lease as the core gets it. `acceptIndex` is the place of the event in the turn that leased it, if it came in it. */
export function toLease({ event, outOfOrder, missing }: Leased, raw: Uint8Array, acceptIndex: number | null): Lease {
  const { lane } = event;
  return {
    lane: lane.id,
    epoch: lane.epoch,
    event: event.id,
    key: lane.key,
    sequence: event.sequence,
    eventType: event.eventType,
    attempt: event.attempts,
    acceptedAt: event.acceptedAt,
    signedAt: event.signedAt,
    late: event.late,
    forced: event.forced,
    outOfOrder,
    missing,
    trace: event.trace,
    raw,
    acceptIndex,
  };
}

function missingBefore({ lane, sequence }: LaneEvent): Lease["missing"] {
  const gap = lane.gaps.findLast((row) => row.to === sequence - 1);
  return gap === undefined ? null : { from: gap.from, to: gap.to };
}
