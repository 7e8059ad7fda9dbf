/** Arms and claims lanes of the memory store. */
import { ATTEMPTS_EXHAUSTED } from "../../inbox/backoff.ts";
import { type Arming, arm } from "../../inbox/gap.ts";
import type { OnDead } from "../../inbox/record.ts";
import type { ClaimRequest, Lease } from "../../inbox/store.ts";
import {
  finish,
  isOrdered,
  laneIsDue,
  lowestPending,
  type MemoryEvent,
  type MemoryLane,
  type Moment,
  schedule,
} from "./state.ts";

function armingOf(moment: Moment, lane: MemoryLane): Arming<MemoryEvent> {
  const { cursor, gapSince } = lane;
  const isSettled = (sequence: number) =>
    lane.events.some((event) => event.sequence === sequence && event.state !== "pending");
  const position = {
    ordered: isOrdered(lane),
    cursor,
    gapSince,
    firstSequence: moment.context.firstSequence,
    isSettled,
  };
  return arm(position, lowestPending(lane, false), lowestPending(lane, true), moment.now);
}

/** Decides anew what a lane does next. A lane that was ready keeps its place among the ready ones. */
export function rearm(moment: Moment, lane: MemoryLane): void {
  const { state, now } = moment;
  const arming = armingOf(moment, lane);
  lane.gapSince = arming.gapSince;
  if (arming.status === "idle") schedule(state, lane, "idle", null);
  else if (arming.status === "gap") schedule(state, lane, "gap", arming.dueAt);
  else schedule(state, lane, "ready", lane.status === "ready" ? lane.readyAt : now);
}

/** A dead letter behind which its lane goes on or is parked. */
export function goOnAfterDead(moment: Moment, lane: MemoryLane, onDead: OnDead): void {
  if (onDead === "block") schedule(moment.state, lane, "blocked", null);
  else rearm(moment, lane);
}

/** What a scan for due lanes found. */
export interface Claimed {
  readonly leases: Lease[];
  readonly retired: MemoryEvent[];
}

/** Claims what `request` asks for. With `recover` it is one expired lease, else due lanes, oldest first. */
export function claimDue(moment: Moment, request: ClaimRequest, claimed: Claimed): void {
  const recovering = request.mode === "recover";
  const limit = recovering ? Math.min(1, request.limit) : request.limit;
  while (claimed.leases.length < limit) {
    const due = dueLanes(moment, recovering, request.lane);
    if (due.length === 0) return;
    for (const lane of due) {
      if (claimed.leases.length >= limit) return;
      claimLane(moment, lane, request, claimed);
    }
  }
}

/** True while an expired lease is due. */
export function recoveryDue(moment: Moment): boolean {
  for (const lane of moment.state.waiting) if (lane.status === "leased" && laneIsDue(lane, moment.now)) return true;
  return false;
}

function dueLanes(moment: Moment, leased: boolean, only: number | undefined): MemoryLane[] {
  const due: MemoryLane[] = [];
  for (const lane of moment.state.waiting) {
    if ((lane.status === "leased") !== leased || !laneIsDue(lane, moment.now)) continue;
    if (only === undefined || lane.id === only) due.push(lane);
  }
  return due.sort((a, b) => (a.readyAt ?? 0) - (b.readyAt ?? 0) || a.id - b.id);
}

/** Leases a due lane's head, or retires it, or finds that there is none to take yet; the lane is not left due in vain. */
export function claimLane(moment: Moment, lane: MemoryLane, request: ClaimRequest, claimed: Claimed): void {
  const head = lane.leased === null ? takeUp(moment, lane) : lane.leased;
  if (head?.state !== "pending") rearm(moment, lane);
  else if (head.attempts >= request.maxAttempts) claimed.retired.push(retire(moment, head, request.onDead));
  else claimed.leases.push(lease(moment, head, request.leaseMs));
}

/** The head that a lane's turn has come for; null when it has none, or must wait after all. */
function takeUp(moment: Moment, lane: MemoryLane): MemoryEvent | null {
  const arming = armingOf(moment, lane);
  if (arming.status !== "ready") return null;
  lane.gapSince = arming.gapSince;
  if (arming.missing !== null) {
    lane.gaps.push({ ...arming.missing, skippedAt: moment.now, filledAt: null });
    moment.state.counters.gapsSkipped++;
  }
  return arming.head;
}

function lease(moment: Moment, event: MemoryEvent, leaseMs: number): Lease {
  const { state, now, context } = moment;
  const { lane } = event;
  const outOfPlace = event.late || event.forced;
  const outOfOrder = outOfPlace && lane.cursor !== null && event.sequence < lane.cursor;
  if (!outOfPlace) moveCursor(lane, event.sequence);
  event.attempts++;
  event.startedAt ??= now;
  schedule(state, lane, "leased", now + leaseMs);
  lane.epoch++;
  lane.holder = context.instance.id;
  lane.leased = event;
  return toLease(event, outOfOrder);
}

function retire(moment: Moment, event: MemoryEvent, onDead: OnDead): MemoryEvent {
  finish(event, "dead", moment.now);
  event.errorCode = ATTEMPTS_EXHAUSTED.code;
  event.error = ATTEMPTS_EXHAUSTED.message;
  moment.state.counters.deadLettered++;
  goOnAfterDead(moment, event.lane, onDead);
  return event;
}

/** Moves the cursor up to `sequence`; a gap that it reaches is no longer waited for. */
export function moveCursor(lane: MemoryLane, sequence: number): void {
  if (lane.cursor !== null && lane.cursor >= sequence) return;
  lane.cursor = sequence;
  lane.gapSince = null;
}

function toLease(event: MemoryEvent, outOfOrder: boolean): Lease {
  const lane = event.lane;
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
    missing: missingBefore(event),
    trace: event.trace,
    // A pending event always has its body: pruning and erasing finish it first.
    raw: event.raw ?? new Uint8Array(),
    acceptIndex: null,
  };
}

function missingBefore(event: MemoryEvent): Lease["missing"] {
  const gap = event.lane.gaps.findLast((row) => row.to === event.sequence - 1);
  return gap === undefined ? null : { from: gap.from, to: gap.to };
}
