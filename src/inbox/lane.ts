/** The rules of a lane: how events come into it, which one is leased, how a lease ends, and what an operator does to it. The same for every store. */

import { randomToken } from "../internal/clock.ts";
import {
  type Arming,
  ATTEMPTS_EXHAUSTED,
  arm,
  expectedSequence,
  gapSinceWithout,
  type LanePosition,
  type Missing,
  PLACES,
  readySince,
} from "./gap.ts";
import type { LaneOrder } from "./lane-key.ts";
import { type Heads, isHeld, type Lane, type LaneEntry, type LanePort, type Tally } from "./lane-port.ts";
import type { EventId, EventState, LaneStatus, NewEvent, OnDead, Repeats } from "./record.ts";
import type { ActResult, AsFound, ClaimRequest, Lease, LeaseRef, Settle, SettleResult, Untaken } from "./store.ts";
import { meetsPrecondition } from "./store-rules.ts";

type Refusal = Extract<ActResult, { ok: false }>;
type Settled = Extract<SettleResult, { status: "settled" }>;

/** What a claim did with a due lane's head. */
export type ClaimedHead<E> =
  | Leased<E>
  | { readonly kind: "retired"; readonly event: E }
  | (Pick<Untaken, "state" | "late" | "gapBegins"> & { readonly kind: "untaken"; readonly event: E });

export interface Leased<E> extends Pick<Lease, "late" | "outOfOrder" | "cursorBefore" | "missing"> {
  readonly kind: "leased";
  readonly event: E;
}

/** What a new event is when it arrives. */
export interface Arrival {
  /** Its sequence in its lane. */
  readonly sequence: number;
  /** Its sequence lies below the lane's cursor. */
  readonly below: boolean;
  /** By sequence it is late then. By position that is decided when it is leased: see `isLate`. */
  readonly late: boolean;
  /** `done`: its source's filter refused it. */
  readonly state: Extract<EventState, "pending" | "done">;
}

/** A lane for `arm()`. A class, because one is made several times for each event. */
class PositionOf<L extends Lane, E extends LaneEntry> implements LanePosition {
  readonly order: LaneOrder | null;
  readonly cursor: number | null;
  readonly gapSince: number | null;
  readonly #port: LanePort<L, E>;
  readonly #lane: L;

  constructor(port: LanePort<L, E>, lane: L) {
    this.order = port.order(lane);
    this.cursor = lane.cursor;
    this.gapSince = lane.gapSince;
    this.#port = port;
    this.#lane = lane;
  }

  get firstSequence(): number | "any" {
    return this.#port.sequenceRules(this.#lane).firstSequence;
  }

  get lastRetryMs(): number {
    return this.#port.sequenceRules(this.#lane).lastRetryMs;
  }

  isSettled(sequence: number): boolean {
    return this.#port.isSettledAt(this.#lane, sequence);
  }

  heldSince(): number {
    return this.#port.heldSince(this.#lane);
  }
}

/** The rules, over the lanes of one transaction. Each stores the lane that it has changed, unless it says otherwise. */
export class LaneRules<L extends Lane, E extends LaneEntry> {
  readonly #port: LanePort<L, E>;

  constructor(port: LanePort<L, E>) {
    this.#port = port;
  }

  /**
   * Decides anew what a lane does next.
   *
   * @returns whether it begins to wait for a missing sequence
   */
  rearm(lane: L): boolean {
    const beginsToWait = this.apply(lane, this.arm(lane, this.#port.heads(lane)));
    this.#port.save(lane);
    return beginsToWait;
  }

  arm(lane: L, { head, late }: Heads<E>): Arming<E> {
    return arm(new PositionOf(this.#port, lane), head, late, this.#port.now);
  }

  /** Sets what `arming` says, without storing it. A lane that was ready keeps its place among the ready ones. @returns as `rearm` */
  apply(lane: L, arming: Arming<E>): boolean {
    const beginsToWait = arming.status === "gap" && lane.gapSince === null && this.#port.order(lane) === "sequence";
    lane.gapSince = arming.gapSince;
    if (arming.status === "idle") schedule(lane, "idle", null);
    else if (arming.status === "gap") schedule(lane, "gap", arming.dueAt);
    else schedule(lane, "ready", lane.status === "ready" ? lane.readyAt : readySince(arming.head, this.#port.now));
    return beginsToWait;
  }

  /** Leases a due lane's head or retires it. Null if it must wait after all: then the lane is armed for that. */
  claim(lane: L, request: ClaimRequest): ClaimedHead<E> | null {
    if (lane.leased !== null) {
      const event = this.#port.event(lane, lane.leased);
      if (event?.state === "pending") return this.#take(lane, event, null, request);
      this.rearm(lane);
      return null;
    }
    const arming = this.arm(lane, this.#port.heads(lane));
    if (arming.status !== "ready") {
      this.apply(lane, arming);
      this.#port.save(lane);
      return null;
    }
    lane.gapSince = arming.gapSince;
    return this.#take(lane, arming.head, arming.missing, request);
  }

  /** The event that `claim` would lease or retire. Null if the lane waits, or no handler takes its head. Changes nothing. */
  claimable(lane: L, { maxAttempts, takes }: ClaimRequest): E | null {
    const port = this.#port;
    const event = lane.leased === null ? this.#dueHead(lane) : port.event(lane, lane.leased);
    if (event?.state !== "pending") return null;
    if (event.attempts >= maxAttempts) return event;
    const { key, eventType } = port.names(lane, event);
    return takes(key, eventType, isLate(port.order(lane), lane, event)) ? event : null;
  }

  #dueHead(lane: L): E | null {
    const arming = this.arm(lane, this.#port.heads(lane));
    return arming.status === "ready" ? arming.head : null;
  }

  #take(lane: L, event: E, missing: Missing | null, request: ClaimRequest): ClaimedHead<E> {
    if (event.attempts >= request.maxAttempts) return this.#retire(lane, event, request.onDead);
    const { key, eventType } = this.#port.names(lane, event);
    const late = isLate(this.#port.order(lane), lane, event);
    if (!request.takes(key, eventType, late)) {
      return this.#passOver(lane, event, missing, late && request.takes(key, eventType, false));
    }
    const leased = this.lease(lane, event, missing, request.leaseMs);
    this.#port.start(lane, event);
    this.#port.save(lane);
    return leased;
  }

  /** Sets the lease of `event` and records the gap that ends with it. Stores neither the lane nor the attempt. */
  lease(lane: L, event: E, missing: Missing | null, leaseMs: number): Leased<E> {
    const port = this.#port;
    const late = isLate(port.order(lane), lane, event);
    const cursorBefore = lane.cursor;
    const outOfOrder = (late || event.forced) && cursorBefore !== null && event.sequence < cursorBefore;
    const before = missing ?? port.gapEndingAt(lane, event.sequence - 1);
    if (late) this.#markLate(lane, event);
    if (!late) this.#pass(lane, event, missing);
    schedule(lane, "leased", port.now + leaseMs);
    lane.token = randomToken();
    lane.holder = port.holder;
    lane.leased = event.id;
    return { kind: "leased", event, late, outOfOrder, cursorBefore, missing: before };
  }

  /** Moves the cursor to an event that comes in its turn, over the missing ones before it. A replay has no place in a sequence. */
  #pass(lane: L, event: E, missing: Missing | null): void {
    const port = this.#port;
    if (missing !== null) {
      port.addGap(lane, missing);
      port.tally.count("gapsSkipped");
    }
    if (!event.forced || port.order(lane) !== "sequence") moveCursor(lane, event.sequence);
  }

  #markLate(lane: L, event: E): void {
    if (event.late) return;
    this.#port.markLate(lane, event);
    this.#port.tally.count("late");
  }

  /**
   * Ends an event that no handler takes. It makes no other one late: only by sequence the cursor passes it, because its place is the expected
   * one.
   *
   * @param marked - it is late, and a handler would have taken it in its turn
   */
  #passOver(lane: L, event: E, missing: Missing | null, marked: boolean): ClaimedHead<E> {
    const port = this.#port;
    const isBySequence = port.order(lane) === "sequence";
    const late = isLate(port.order(lane), lane, event);
    if (marked) this.#markLate(lane, event);
    if (isBySequence && !late) this.#pass(lane, event, missing);
    const state = late && isBySequence ? "late" : "done";
    port.finish(lane, event, state, state === "done" ? "unhandled" : null);
    if (state === "done") port.tally.count("unhandled");
    return { kind: "untaken", event, state, late, gapBegins: this.rearm(lane) };
  }

  #retire(lane: L, event: E, onDead: OnDead): ClaimedHead<E> {
    this.#port.fail(lane, event, ATTEMPTS_EXHAUSTED);
    this.#die(lane, event, onDead);
    return { kind: "retired", event };
  }

  /** The event becomes a dead letter. Its lane continues or is blocked. @returns as `rearm` */
  #die(lane: L, event: E, onDead: OnDead): boolean {
    this.#port.finish(lane, event, "dead", null);
    this.#port.tally.count("deadLettered");
    if (onDead === "continue") return this.rearm(lane);
    this.#park(lane, "blocked", null);
    return false;
  }

  #park(lane: L, status: LaneStatus, readyAt: number | null): void {
    schedule(lane, status, readyAt);
    this.#port.save(lane);
  }

  /** How a new event arrives in its lane, before it is added. */
  arrivalOf(lane: L, { sequence: given, filtered }: Pick<NewEvent, "sequence" | "filtered">, id: number): Arrival {
    const order = this.#port.order(lane);
    const sequence = order === "arrival" ? id : order === "position" ? this.#sequenceAt(lane, given) : given;
    const below = order !== null && lane.cursor !== null && sequence < lane.cursor;
    return { sequence, below, late: below && order === "sequence", state: filtered ? "done" : "pending" };
  }

  /**
   * The sequence of an event at a position: the position × 1,000, plus a number that grows with each arrival at it, so that equal positions
   * are passed to handlers as they came. More than 1,000 at one position go on behind it.
   */
  #sequenceAt(lane: L, position: number): number {
    for (let from = position * PLACES; ; from += PLACES) {
      const to = from + PLACES - 1;
      const passed = lane.cursor !== null && lane.cursor >= from && lane.cursor <= to ? lane.cursor : from - 1;
      const last = Math.max(this.#port.highest(lane, from) ?? passed, passed);
      if (last < to) return last + 1;
    }
  }

  /** Counts an event that was added to its lane just now. */
  countArrival(lane: L, incoming: NewEvent, { sequence, below, late, state }: Arrival): void {
    const { tally } = this.#port;
    if (!incoming.untimed) tally.signed(incoming.signedAt);
    if (incoming.repeats !== undefined) countDuplicates(tally, incoming, incoming.repeats, incoming.lane.order);
    tally.count("accepted");
    if (state === "done") tally.count("filtered");
    if (late) tally.count("late");
    if (below) this.#port.fillGaps(lane, sequence);
  }

  /** Arms the lane of an event that was added just now. @returns as `rearm` */
  armArrival(lane: L, event: E): boolean {
    if (event.state === "pending" && this.#mayRearm(lane, event)) return this.rearm(lane);
    if (event.state === "done") {
      this.#passIfExpected(lane, event);
      // The head may have waited for this sequence alone.
      if (lane.status === "gap") return this.rearm(lane);
    }
    this.#port.save(lane);
    return false;
  }

  /** The cursor passes an event that no handler gets. Otherwise its sequence would be missing once its row is pruned. */
  #passIfExpected(lane: L, { sequence }: E): void {
    const port = this.#port;
    if (port.order(lane) !== "sequence") return;
    const { firstSequence } = port.sequenceRules(lane);
    if (sequence === expectedSequence({ cursor: lane.cursor, firstSequence })) moveCursor(lane, sequence);
  }

  /** A lane in backoff continues early only for an event that comes before the one that failed. */
  #mayRearm(lane: L, added: E): boolean {
    if (lane.status === "backoff") return this.#headOf(lane)?.id === added.id;
    return lane.status !== "leased" && lane.status !== "blocked";
  }

  /** The lane's lowest pending event: in its turn first, then late. */
  #headOf(lane: L): E | null {
    const { head, late } = this.#port.heads(lane);
    return head ?? late;
  }

  /** The event of a lease that this instance still holds. Null if it is lost. An expired lease is not lost for that. */
  heldEvent(lane: L | undefined, ref: LeaseRef): E | null {
    const { holder } = this.#port;
    if (lane === undefined || lane.leased !== ref.event || lane.token !== ref.token || lane.holder !== holder)
      return null;
    const event = this.#port.event(lane, ref.event);
    return event?.state === "pending" ? event : null;
  }

  /** Ends the lease on `event` as the core decided. The store runs the effects. */
  endLease(lane: L, event: E, request: Settle<never>): Settled {
    const gapBegins = this.#ended(lane, event, request);
    return gapBegins ? { status: "settled", gapBegins } : { status: "settled" };
  }

  #ended(lane: L, event: E, request: Settle<never>): boolean {
    const port = this.#port;
    switch (request.kind) {
      case "complete":
        port.finish(lane, event, "done", request.outcome);
        port.tally.count(request.outcome);
        return this.rearm(lane);
      case "retry":
        port.fail(lane, event, request.failure);
        port.addAttempt(lane, event, request.failure);
        port.tally.count("retried");
        this.#park(lane, "backoff", port.now + request.delayMs);
        return false;
      case "dead":
        port.fail(lane, event, request.failure);
        port.addAttempt(lane, event, request.failure);
        return this.#die(lane, event, request.onDead);
      case "release":
        port.takeBackAttempt(lane, event);
        if (!request.ran) this.#takeBackMove(lane, event, request.lease.cursorBefore);
        if (request.delayMs === 0) return this.rearm(lane);
        this.#park(lane, "backoff", port.now + request.delayMs);
        return false;
      default:
        return request satisfies never;
    }
  }

  /** By sequence the gap before it is given up, and recorded. */
  #takeBackMove(lane: L, event: E, cursorBefore: number | null): void {
    if (this.#port.order(lane) !== "position" || event.attempts > 0) return;
    if (lane.cursor === event.sequence) lane.cursor = cursorBefore;
  }

  /** Pending again, whatever its sequence. Attempts start anew; the cursor stays. */
  replay(lane: L | undefined, event: E | undefined, precondition: AsFound): ActResult {
    if (lane === undefined || event === undefined) return refuse("not_found");
    const obstacle = this.#obstacle(lane, event, precondition);
    if (obstacle !== null) return refuse(obstacle);
    if (event.state === "pending" && lane.status !== "backoff" && lane.status !== "blocked")
      return refuse("wrong_state");
    if (!event.hasBody) return refuse("body_pruned");
    this.#endWaitOf(lane, event);
    this.#port.reopen(lane, event);
    // A lane in backoff with another event before this one keeps waiting.
    const mayRearm = lane.status !== "leased" && (lane.status !== "backoff" || this.#headOf(lane)?.id === event.id);
    if (mayRearm) this.rearm(lane);
    else this.#port.save(lane);
    return { ok: true, event: event.id, count: 1 };
  }

  /** Sets an event aside. The cursor advances if its sequence was the expected one. */
  discard(lane: L | undefined, event: E | undefined, precondition: AsFound): ActResult {
    if (lane === undefined || event === undefined) return refuse("not_found");
    const obstacle = this.#obstacle(lane, event, precondition);
    if (obstacle !== null) return refuse(obstacle);
    if (event.state !== "pending" && event.state !== "dead") return refuse("wrong_state");
    const port = this.#port;
    const head = this.#headOf(lane)?.id;
    this.#endWaitOf(lane, event);
    port.finish(lane, event, "discarded", null);
    port.tally.count("discarded");
    this.#passIfExpected(lane, event);
    const continues =
      lane.status === "leased"
        ? lane.leased !== event.id
        : lane.status === "backoff" && this.#headOf(lane)?.id === head;
    if (continues) port.save(lane);
    else this.rearm(lane);
    return { ok: true, event: event.id, count: 1 };
  }

  /** Why an operator cannot act on the event now. */
  #obstacle(lane: L, event: E, precondition: AsFound): Refusal["reason"] | null {
    if (lane.leased === event.id && isHeld(lane, this.#port.now)) return "in_progress";
    return meetsPrecondition(event, precondition) ? null : "wrong_state";
  }

  /** Call it before the event leaves those in their turn. */
  #endWaitOf(lane: L, { id }: E): void {
    if (lane.gapSince !== null) lane.gapSince = gapSinceWithout(id, lane.gapSince, this.#port.inTurn(lane));
  }

  /** A blocked lane continues. */
  unblock(lane: L | undefined): ActResult {
    if (lane === undefined) return refuse("not_found");
    if (isHeld(lane, this.#port.now)) return refuse("in_progress");
    if (lane.status !== "blocked") return refuse("wrong_state");
    this.rearm(lane);
    return { ok: true, count: 1 };
  }

  /** The lane's head stops waiting for the missing sequences. */
  releaseGap(lane: L | undefined): ActResult {
    if (lane === undefined) return refuse("not_found");
    if (isHeld(lane, this.#port.now)) return refuse("in_progress");
    const head = this.#headOf(lane);
    if (lane.status !== "gap" || head === null) return refuse("wrong_state");
    this.#port.endGapWait(lane, head);
    this.rearm(lane);
    return { ok: true, event: head.id, count: 1 };
  }

  /**
   * Removes a person's data from a lane. What identifies an event stays.
   *
   * @param events - those of a lane of several that are about the person. Null: all of the lane
   */
  erase(lane: L, events: ReadonlySet<EventId> | null): void {
    const head = this.#headOf(lane)?.id;
    this.#port.tally.count("discarded", this.#port.erase(lane, events));
    // Without a pending event nothing waits.
    if (events === null) lane.gapSince = null;
    // A blocked lane stays parked behind its dead letter, and one that retries an event of somebody else goes on with that.
    const retries = lane.status === "backoff" && head !== undefined && this.#headOf(lane)?.id === head;
    const stays = lane.status === "blocked" || retries;
    if (stays) this.#port.save(lane);
    else this.rearm(lane);
  }
}

/**
 * The lease as the core gets it, with what the rules do not read.
 *
 * @param acceptIndex - the event's place in the batch that leased it, if it came in it
 */
export function leaseOf(
  lane: Lane,
  { event, late, outOfOrder, cursorBefore, missing }: Leased<LaneEntry>,
  {
    key,
    eventType,
    signedAt,
    trace,
    raw,
    head,
    ownId,
  }: Pick<Lease, "key" | "ownId" | "eventType" | "signedAt" | "trace" | "raw" | "head">,
  acceptIndex: number | null,
): Lease {
  return {
    lane: lane.id,
    token: lane.token,
    event: event.id,
    key,
    ownId,
    sequence: event.sequence,
    eventType,
    attempt: event.attempts,
    acceptedAt: event.acceptedAt,
    signedAt,
    late,
    forced: event.forced,
    outOfOrder,
    cursorBefore,
    missing,
    trace,
    raw,
    head,
    acceptIndex,
  };
}

/** Whether the lane of an event keeps a row for it. A filtered event without an order leaves nothing that a later one could wait for. */
export function keepsRow({ lane, filtered }: Pick<NewEvent, "lane" | "filtered">): boolean {
  return !filtered || lane.order !== null;
}

/** How a store reports an event that is new to it. */
export function acceptedAs({ below, state }: Arrival): "accepted" | "late" | "filtered" {
  if (state === "done") return "filtered";
  return below ? "late" : "accepted";
}

/**
 * Whether an event comes late: behind one that a handler got, or may have got. A replay does not. By sequence that is so when it arrives
 * (RCV-7), because the cursor also passes events that no handler gets. By position it is so when it is leased.
 */
export function isLate(
  order: LaneOrder | null,
  { cursor }: Pick<Lane, "cursor">,
  { late, forced, sequence }: Pick<LaneEntry, "late" | "forced" | "sequence">,
): boolean {
  if (order !== "position") return late && !forced;
  return !forced && cursor !== null && sequence < cursor;
}

/** An event that a claim ended, as the core gets it. */
export function untakenOf(
  { id: lane }: Lane,
  { event, state, late, gapBegins }: Extract<ClaimedHead<LaneEntry>, { kind: "untaken" }>,
  { key, ownId, eventType }: Pick<Untaken, "key" | "ownId" | "eventType">,
): Untaken {
  const { id, sequence, forced, acceptedAt } = event;
  return { event: id, lane, key, ownId, sequence, eventType, late, forced, acceptedAt, state, gapBegins };
}

/** Sets what a lane does next, and that nobody holds it. */
function schedule(lane: Lane, status: LaneStatus, readyAt: number | null): void {
  lane.status = status;
  lane.readyAt = readyAt;
  lane.holder = null;
  lane.leased = null;
}

/** Moves the cursor up to `sequence`. The lane no longer waits for a gap that it passes. */
function moveCursor(lane: Lane, sequence: number): void {
  if (lane.cursor !== null && lane.cursor >= sequence) return;
  lane.cursor = sequence;
  lane.gapSince = null;
}

/** A delivery of a known event, with those that were joined to it. */
export function repeatsWith(incoming: NewEvent, repeats = incoming.repeats): Repeats {
  const signedAt = incoming.untimed ? null : incoming.signedAt;
  if (repeats === undefined) return { count: 1, signedAt };
  const newest = Math.max(signedAt ?? Number.NEGATIVE_INFINITY, repeats.signedAt ?? Number.NEGATIVE_INFINITY);
  return { count: 1 + repeats.count, signedAt: Number.isFinite(newest) ? newest : null };
}

/** Counts deliveries of a known event. */
export function countDuplicates(
  tally: Tally,
  first: { readonly signedAt: number },
  { signedAt, count }: Repeats,
  order: LaneOrder | null,
): void {
  tally.count("duplicates", count);
  if (signedAt === null) return;
  tally.signed(signedAt);
  // Other sources sign each repeat anew, which says nothing of the messaging service.
  if (signedAt !== first.signedAt && order === "sequence") tally.resigned();
}

function refuse(reason: Refusal["reason"]): Refusal {
  return { ok: false, reason };
}
