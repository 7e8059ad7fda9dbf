/** The rules of a lane: how events come into it, which one is leased, how a lease ends, and what an operator does to it. */
import { type Arming, ATTEMPTS_EXHAUSTED, arm, expectedSequence, gapSinceWithout } from "./gap.ts";
import {
  bySequence,
  finish,
  headOf,
  isHeld,
  isOrdered,
  type LaneEvent,
  type LaneState,
  lowestPending,
  type Moment,
  schedule,
} from "./lane-state.ts";
import type { NewEvent, OnDead } from "./record.ts";
import type {
  Acceptance,
  ActResult,
  AsFound,
  ClaimRequest,
  Failure,
  Lease,
  LeaseRef,
  Settle,
  SettleResult,
  Turn,
} from "./store.ts";
import { meetsPrecondition } from "./store-rules.ts";

// Arms lanes, and leases the head of a lane whose turn has come.

/** What a claim found so far. */
export interface Claimed {
  readonly leased: Leased[];
  readonly retired: LaneEvent[];
}

/** An event that was leased just now, and what was so at that moment. */
interface Leased {
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
function rearm(moment: Moment, lane: LaneState): boolean {
  const arming = armingOf(moment, lane);
  const beginsToWait = arming.status === "gap" && lane.gapSince === null;
  lane.gapSince = arming.gapSince;
  if (arming.status === "idle") schedule(lane, "idle", null);
  else if (arming.status === "gap") schedule(lane, "gap", arming.dueAt);
  else schedule(lane, "ready", lane.status === "ready" ? lane.readyAt : moment.now);
  return beginsToWait;
}

/** A dead letter behind which its lane goes on or is parked. @returns as `rearm` */
function goOnAfterDead(moment: Moment, lane: LaneState, onDead: OnDead): boolean {
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
function moveCursor(lane: LaneState, sequence: number): void {
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

// Takes an event into its lane, or counts it as a duplicate.

export type LateEvents = Turn<unknown>["lateEvents"];

/** The event of a lane with this identity, if it is known. */
export function knownEvent(lane: LaneState | undefined, incoming: NewEvent): LaneEvent | undefined {
  return lane?.events.find((e) => e.sequence === incoming.sequence && e.eventType === incoming.eventType);
}

/** An event that was added to its lane. */
interface Added {
  readonly event: LaneEvent;
  /** Its lane begins to wait for a missing sequence with it. */
  readonly beginsToWait: boolean;
}

/** Adds an event whose identity is not known, under its new id, and arms its lane. */
export function acceptNew(
  moment: Moment,
  lane: LaneState,
  incoming: NewEvent,
  { id, lateEvents }: { readonly id: number; readonly lateEvents: LateEvents },
): Added {
  moment.tally.signed(incoming.signedAt);
  moment.tally.count("accepted");
  const late = isOrdered(lane) && lane.cursor !== null && incoming.sequence < lane.cursor;
  const event = newEvent(moment, lane, incoming, id, late);
  lane.events.push(event);
  lane.peer ??= incoming.peer;
  lane.externalReference ??= incoming.externalReference;
  if (late) noteLate(moment, event);
  let beginsToWait = false;
  if (late && lateEvents === "record") finish(event, "late", moment.now);
  else if (mayRearm(lane, event)) beginsToWait = rearm(moment, lane);
  return { event, beginsToWait };
}

/** What the core is answered for a new event. */
export function acceptanceOf({ event, beginsToWait }: Added): Extract<Acceptance, { outcome: "accepted" | "late" }> {
  const answer = { outcome: event.late ? "late" : "accepted", event: event.id, lane: event.lane.id } as const;
  return beginsToWait ? { ...answer, gapBegins: true } : answer;
}

/** A known identity again. `conflict`: its content differs from what was accepted. True when it is the first that does. */
export function countDuplicate(moment: Moment, first: LaneEvent, incoming: NewEvent, conflict: boolean): boolean {
  first.duplicates++;
  moment.tally.count("duplicates");
  moment.tally.signed(incoming.signedAt);
  if (incoming.signedAt !== first.signedAt) moment.tally.resigned();
  if (!conflict) return false;
  moment.tally.count("conflicts");
  const isFirst = !first.conflict;
  first.conflict = true;
  return isFirst;
}

export function duplicateOf(first: LaneEvent, conflict: boolean): Extract<Acceptance, { outcome: "duplicate" }> {
  const { id, digest, signedAt, state, lane } = first;
  return { outcome: "duplicate", event: id, lane: lane.id, state, digest, signedAt, conflict };
}

/** A lane in backoff goes on early only for an event that comes before the one it waits with. */
function mayRearm(lane: LaneState, added: LaneEvent): boolean {
  if (lane.status === "backoff") return headOf(lane) === added;
  return lane.status !== "leased" && lane.status !== "blocked";
}

function newEvent(moment: Moment, lane: LaneState, incoming: NewEvent, id: number, late: boolean): LaneEvent {
  const { sequence, eventType, occurredAt, signedAt, gapWaitMs, digest, trace } = incoming;
  return {
    id,
    lane,
    sequence,
    eventType,
    state: "pending",
    outcome: null,
    late,
    forced: false,
    occurredAt,
    signedAt,
    gapWaitMs,
    acceptedAt: moment.now,
    startedAt: null,
    finishedAt: null,
    attempts: 0,
    duplicates: 0,
    conflict: false,
    errorCode: null,
    error: null,
    trace,
    digest: new Uint8Array(digest),
    hasBody: true,
  };
}

/** A gap that was given up shows which of its events came after all. */
function noteLate(moment: Moment, event: LaneEvent): void {
  moment.tally.count("late");
  for (const gap of event.lane.gaps) {
    if (gap.from <= event.sequence && event.sequence <= gap.to) gap.filledAt ??= moment.now;
  }
}

// Ends leases, each only while it is still held.

/** The event under a lease that is still this instance's; null when it is lost. Being expired alone loses nothing. */
export function heldEvent(moment: Moment, lane: LaneState | undefined, ref: LeaseRef): LaneEvent | null {
  if (lane === undefined || lane.leased === null || lane.leased.id !== ref.event || lane.epoch !== ref.epoch)
    return null;
  return lane.holder === moment.holder && lane.leased.state === "pending" ? lane.leased : null;
}

/** Ends the lease on `event` as the core decided; effects are the store's part. */
export function endLease(
  moment: Moment,
  event: LaneEvent,
  request: Settle<never>,
): Extract<SettleResult, { status: "settled" }> {
  return settled(ended(moment, event, request));
}

/** @param beginsToWait - what rearming the lane returned */
export function settled(beginsToWait: boolean): Extract<SettleResult, { status: "settled" }> {
  return beginsToWait ? { status: "settled", gapBegins: true } : { status: "settled" };
}

function ended(moment: Moment, event: LaneEvent, request: Settle<never>): boolean {
  const { lane } = event;
  switch (request.kind) {
    case "complete":
      finish(event, "done", moment.now, request.outcome);
      moment.tally.count(request.outcome);
      return rearm(moment, lane);
    case "retry":
      recordFailure(moment, event, request.failure);
      moment.tally.count("retried");
      schedule(lane, "backoff", moment.now + request.delayMs);
      return false;
    case "dead":
      recordFailure(moment, event, request.failure);
      finish(event, "dead", moment.now);
      moment.tally.count("deadLettered");
      return goOnAfterDead(moment, lane, request.onDead);
    case "release":
      event.attempts--;
      if (request.delayMs === 0) return rearm(moment, lane);
      schedule(lane, "backoff", moment.now + request.delayMs);
      return false;
    default:
      return request satisfies never;
  }
}

function recordFailure(moment: Moment, event: LaneEvent, failure: Failure): void {
  event.errorCode = failure.code;
  event.error = failure.message;
  event.lane.attempts.push({
    eventId: event.id,
    attempt: event.attempts,
    at: moment.now,
    durationMs: failure.durationMs,
    errorCode: failure.code,
    error: failure.message,
  });
}

// Does to a lane what an operator asks.

type Refusal = Extract<ActResult, { ok: false }>;

/** Pending again, whatever its sequence; attempts start anew, the cursor stays. */
export function replay(moment: Moment, event: LaneEvent | undefined, precondition: AsFound): ActResult {
  if (event === undefined) return refuse("not_found");
  const { lane } = event;
  if (lane.leased === event && isHeld(lane, moment.now)) return refuse("in_progress");
  if (!meetsPrecondition(event, precondition)) return refuse("wrong_state");
  if (event.state === "pending" && lane.status !== "backoff" && lane.status !== "blocked") return refuse("wrong_state");
  if (!event.hasBody) return refuse("body_pruned");
  endWaitOf(event);
  event.state = "pending";
  event.outcome = null;
  event.finishedAt = null;
  event.forced = true;
  event.late = false;
  event.attempts = 0;
  // A lane in backoff with another event before this one waits on.
  if (lane.status !== "leased" && (lane.status !== "backoff" || headOf(lane) === event)) rearm(moment, lane);
  return { ok: true, event: event.id, count: 1 };
}

/** Sets an event aside; the cursor moves on if its sequence was the expected one. */
export function discard(moment: Moment, event: LaneEvent | undefined, precondition: AsFound): ActResult {
  if (event === undefined) return refuse("not_found");
  const { lane } = event;
  if (lane.leased === event && isHeld(lane, moment.now)) return refuse("in_progress");
  if (!meetsPrecondition(event, precondition)) return refuse("wrong_state");
  if (event.state !== "pending" && event.state !== "dead") return refuse("wrong_state");
  const head = headOf(lane);
  endWaitOf(event);
  finish(event, "discarded", moment.now);
  moment.tally.count("discarded");
  const expected = expectedSequence({ cursor: lane.cursor, firstSequence: moment.firstSequence });
  if (isOrdered(lane) && event.sequence === expected) moveCursor(lane, event.sequence);
  const goesOn = lane.status === "leased" ? lane.leased !== event : lane.status === "backoff" && headOf(lane) === head;
  if (!goesOn) rearm(moment, lane);
  return { ok: true, event: event.id, count: 1 };
}

/** To be called before the event leaves those in their turn. */
function endWaitOf({ lane, id }: LaneEvent): void {
  const inTurn = lane.events.filter(({ state, late, forced }) => state === "pending" && !late && !forced);
  lane.gapSince = gapSinceWithout(id, lane.gapSince, inTurn.toSorted(bySequence));
}

/** Lets a blocked lane go on. */
export function unblock(moment: Moment, lane: LaneState | undefined): ActResult {
  if (lane === undefined) return refuse("not_found");
  if (isHeld(lane, moment.now)) return refuse("in_progress");
  if (lane.status !== "blocked") return refuse("wrong_state");
  rearm(moment, lane);
  return { ok: true, count: 1 };
}

/** Gives up the gap before a lane's head. */
export function releaseGap(moment: Moment, lane: LaneState | undefined): ActResult {
  if (lane === undefined) return refuse("not_found");
  if (isHeld(lane, moment.now)) return refuse("in_progress");
  const head = headOf(lane);
  if (lane.status !== "gap" || head === null) return refuse("wrong_state");
  head.gapWaitMs = 0;
  rearm(moment, lane);
  return { ok: true, event: head.id, count: 1 };
}

/** Removes a person's data from a lane; the store removes the bodies. What identifies an event stays. */
export function eraseLane(moment: Moment, lane: LaneState): void {
  lane.peer = null;
  lane.externalReference = null;
  // Nothing is pending in it any more, and so nothing waits.
  lane.gapSince = null;
  for (const attempt of lane.attempts) attempt.error = "";
  for (const event of lane.events) eraseEvent(moment, event);
  if (lane.status !== "blocked") rearm(moment, lane);
}

function eraseEvent(moment: Moment, event: LaneEvent): void {
  event.hasBody = false;
  event.error = null;
  if (event.state !== "pending") return;
  finish(event, "discarded", moment.now);
  moment.tally.count("discarded");
}

function refuse(reason: Refusal["reason"]): Refusal {
  return { ok: false, reason };
}
