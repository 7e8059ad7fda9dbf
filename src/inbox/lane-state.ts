/** Lanes as objects with all their events, as memory and Postgres hold them. */
import { type Missing, PLACES } from "./gap.ts";
import {
  type Arrival,
  acceptedAs,
  countDuplicates,
  isLate,
  LaneRules,
  type Leased,
  leaseOf,
  repeatsWith,
  untakenOf,
} from "./lane.ts";
import type { LaneOrder } from "./lane-key.ts";
import type { Heads, Lane, LanePort, Moment, Tally } from "./lane-port.ts";
import type {
  AttemptRecord,
  EventId,
  EventRecord,
  EventState,
  EventSummary,
  GapRecord,
  LaneKey,
  LaneRecord,
  NewEvent,
  Outcome,
} from "./record.ts";
import type { SequenceBook } from "./sequence-rules.ts";
import type { Acceptance, ClaimRequest, Failure, Lease, SequenceRules, Untaken } from "./store.ts";
import { EVENTS_BESIDE_CURSOR } from "./store-rules.ts";

/** A record of the contract that its store may write to. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** An event of a lane, without its body. */
export interface LaneEvent extends Mutable<Omit<EventRecord, "laneId" | "lane" | "raw" | "head">> {
  readonly lane: LaneState;
  /** How long a gap before it is waited for, in milliseconds; an operator can set it to 0. */
  gapWaitMs: number;
  /** False once the body is pruned or erased. */
  hasBody: boolean;
}

/** A lane with its events. A store that reads it from a database reads everything that the rules look at. */
export interface LaneState extends Mutable<Omit<LaneRecord, "events" | "more" | "gaps" | "attempts">>, Lane {
  readonly id: LaneRecord["id"];
  events: LaneEvent[];
  gaps: Mutable<GapRecord>[];
  attempts: Mutable<AttemptRecord>[];
}

/** Its number and reference come with the first event that is kept in it: a delivery that only made it may differ from that one. */
export function newLane(id: number, key: LaneKey): LaneState {
  return {
    id,
    key: { ...key },
    cursor: null,
    status: "idle",
    readyAt: null,
    gapSince: null,
    token: 0,
    peer: null,
    externalReference: null,
    holder: null,
    leased: null,
    events: [],
    gaps: [],
    attempts: [],
  };
}

export function bySequence(a: Pick<LaneEvent, "sequence" | "id">, b: Pick<LaneEvent, "sequence" | "id">): number {
  return a.sequence - b.sequence || a.id - b.id;
}

type LanePast = Pick<LaneRecord, "cursor"> & { readonly events: readonly Pick<LaneEvent, "sequence">[] };

/**
 * Whether the event at the lane's cursor was pruned. Then it had been settled: pending and dead events stay, except a dead letter on
 * which nobody acted in all the time that those are kept.
 */
export function isPrunedAtCursor({ cursor, events }: LanePast): boolean {
  return cursor !== null && !events.some((event) => event.sequence === cursor);
}

type WholePast = Pick<LaneRecord, "key" | "cursor" | "gaps"> & {
  readonly events: readonly Pick<LaneEvent, "sequence" | "late">[];
};

/**
 * Whether an event behind `sequence` was pruned, wherever in the lane: since it began, there was one for each sequence up to its cursor,
 * except those of recorded gaps. Where sequences are not contiguous, only the event at the cursor can be missed.
 */
export function isPrunedBehind({ key, cursor, events, gaps }: WholePast, sequence: number): boolean {
  if (cursor === null) return false;
  if (key.order !== "sequence") return sequence < cursor && isPrunedAtCursor({ cursor, events });
  const kept = events.map(({ sequence, late }) => ({ from: sequence, to: sequence, late }));
  const given = gaps.map(({ from, to }) => ({ from, to, late: false }));
  const known = [...kept, ...given].toSorted((a, b) => a.from - b.from);
  const begun = known.find(({ late }) => !late)?.from ?? cursor;
  let next = Math.max(sequence + 1, begun);
  for (const { from, to } of known) if (from <= next) next = Math.max(next, to + 1);
  return next <= cursor;
}

/** The events of a lane that its record shows: see `LaneRecord.more`. */
export function besideCursor<E extends Pick<LaneEvent, "sequence" | "id">>(
  events: readonly E[],
  cursor: number | null,
) {
  const sorted = events.toSorted(bySequence);
  const at = cursor === null ? 0 : sorted.findIndex(({ sequence }) => sequence >= cursor);
  const middle = at < 0 ? sorted.length : at;
  const shown = sorted.slice(Math.max(0, middle - EVENTS_BESIDE_CURSOR), middle + EVENTS_BESIDE_CURSOR);
  return { events: shown, more: shown.length < sorted.length };
}

/** A stored body with the headers kept next to it. */
export type Body = Pick<EventRecord, "raw" | "head">;

/** Pruned or erased. */
export const NO_BODY: Body = { raw: null, head: null };

/** Field by field: a rest pattern costs ten times as much, and every page of events comes through here. */
export function toEventSummary(event: LaneEvent): EventSummary {
  return { ...factsOf(event), hasBody: event.hasBody };
}

export function toEventRecord(event: LaneEvent, { raw, head }: Body): EventRecord {
  return { ...factsOf(event), raw, head };
}

function factsOf(event: LaneEvent) {
  return {
    id: event.id,
    laneId: event.lane.id,
    lane: event.lane.key,
    ownId: event.ownId,
    sequence: event.sequence,
    eventType: event.eventType,
    state: event.state,
    outcome: event.outcome,
    late: event.late,
    forced: event.forced,
    occurredAt: event.occurredAt,
    signedAt: event.signedAt,
    untimed: event.untimed,
    acceptedAt: event.acceptedAt,
    startedAt: event.startedAt,
    finishedAt: event.finishedAt,
    attempts: event.attempts,
    duplicates: event.duplicates,
    conflict: event.conflict,
    errorCode: event.errorCode,
    error: event.error,
    trace: event.trace,
    digest: event.digest,
  };
}

/** What a batch has claimed so far. */
export interface Claimed {
  readonly leased: Leased<LaneEvent>[];
  readonly retired: LaneEvent[];
  readonly untaken: Untaken[];
  /** Of the bodies of what is leased and retired. */
  bytes: number;
}

/** Answers the rules from loaded lanes. What changed is in the objects; the store writes it when all is decided. */
export class LoadedLanes implements LanePort<LaneState, LaneEvent> {
  readonly now: number;
  readonly holder: string | number;
  readonly tally: Tally;
  readonly rules = new LaneRules<LaneState, LaneEvent>(this);
  readonly #sequences: SequenceBook;

  /** @param sequences - has read the entries of all lanes by sequence that are asked about */
  constructor({ now, holder, tally }: Moment, sequences: SequenceBook) {
    this.now = now;
    this.holder = holder;
    this.tally = tally;
    this.#sequences = sequences;
  }

  /** Adds an event that is not known, under its new id, and arms its lane. */
  accept(lane: LaneState, incoming: NewEvent, id: number): AcceptedNew {
    const { rules } = this;
    const arrival = rules.arrivalOf(lane, incoming, id);
    const event = this.add(lane, incoming, id, arrival);
    rules.countArrival(lane, incoming, arrival);
    const answer = { outcome: acceptedAs(arrival), event: id, lane: lane.id };
    return rules.armArrival(lane, event) ? { ...answer, gapBegins: true } : answer;
  }

  protected add(lane: LaneState, incoming: NewEvent, id: number, arrival: Arrival): LaneEvent {
    const event = newEvent(lane, incoming, id, arrival, this.now);
    lane.events.push(event);
    lane.peer ??= incoming.peer;
    lane.externalReference ??= incoming.externalReference;
    return event;
  }

  /** @param bytesOf - the size of an event's body */
  claim(lane: LaneState, request: ClaimRequest, claimed: Claimed, bytesOf: (event: LaneEvent) => number): void {
    const claim = this.rules.claim(lane, request);
    if (claim === null) return;
    const { event } = claim;
    if (claim.kind === "untaken")
      return void claimed.untaken.push(untakenOf(lane, claim, { ...this.names(lane, event), ownId: event.ownId }));
    if (claim.kind === "leased") claimed.leased.push(claim);
    else claimed.retired.push(event);
    claimed.bytes += bytesOf(event);
  }

  order({ key }: LaneState): LaneOrder | null {
    return key.order;
  }

  sequenceRules({ key }: LaneState): SequenceRules {
    return this.#sequences.of(key.source);
  }

  heads(lane: LaneState): Heads<LaneEvent> {
    let [head, late]: [LaneEvent | null, LaneEvent | null] = [null, null];
    const order = this.order(lane);
    for (const event of lane.events) {
      if (event.state !== "pending") continue;
      if (isLate(order, lane, event)) late = lower(event, late);
      else head = lower(event, head);
    }
    return { head, late };
  }

  event(lane: LaneState, id: EventId): LaneEvent | null {
    return lane.events.find((event) => event.id === id) ?? null;
  }

  names({ key }: LaneState, { eventType }: LaneEvent) {
    return { key, eventType };
  }

  isSettledAt(lane: LaneState, sequence: number): boolean {
    return lane.events.some((event) => event.sequence === sequence);
  }

  gapEndingAt(lane: LaneState, sequence: number): Missing | null {
    const gap = lane.gaps.findLast((row) => row.to === sequence);
    return gap === undefined ? null : { from: gap.from, to: gap.to };
  }

  heldSince(lane: LaneState): number {
    return Math.min(...this.inTurn(lane).map(({ acceptedAt }) => acceptedAt));
  }

  highest({ events }: LaneState, from: number): number | null {
    const there = events.map(({ sequence }) => sequence).filter((at) => at >= from && at < from + PLACES);
    return there.length === 0 ? null : Math.max(...there);
  }

  inTurn(lane: LaneState): readonly LaneEvent[] {
    const order = this.order(lane);
    const isInTurn = (event: LaneEvent) => event.state === "pending" && !event.forced && !isLate(order, lane, event);
    return lane.events.filter(isInTurn).sort(bySequence);
  }

  save(_lane: LaneState): void {
    // Nothing to do until all is decided.
  }

  addGap(lane: LaneState, { from, to }: Missing): void {
    lane.gaps.push({ from, to, skippedAt: this.now, filledAt: null });
  }

  fillGaps(lane: LaneState, sequence: number): void {
    for (const gap of lane.gaps) if (gap.from <= sequence && sequence <= gap.to) gap.filledAt ??= this.now;
  }

  markLate(_lane: LaneState, event: LaneEvent): void {
    event.late = true;
  }

  start(_lane: LaneState, event: LaneEvent): void {
    event.attempts++;
    event.startedAt ??= this.now;
  }

  takeBackAttempt(_lane: LaneState, event: LaneEvent): void {
    event.attempts--;
  }

  addAttempt(lane: LaneState, event: LaneEvent, { code, message, durationMs }: Failure): void {
    const { id, attempts } = event;
    lane.attempts.push({ eventId: id, attempt: attempts, at: this.now, durationMs, errorCode: code, error: message });
  }

  fail(_lane: LaneState, event: LaneEvent, { code, message }: Pick<Failure, "code" | "message">): void {
    event.errorCode = code;
    event.error = message;
  }

  finish(_lane: LaneState, event: LaneEvent, state: Exclude<EventState, "pending">, outcome: Outcome | null): void {
    event.state = state;
    event.outcome = outcome;
    event.finishedAt = this.now;
  }

  reopen(_lane: LaneState, event: LaneEvent): void {
    event.state = "pending";
    event.outcome = null;
    event.finishedAt = null;
    event.forced = true;
    event.late = false;
    event.attempts = 0;
  }

  endGapWait(_lane: LaneState, event: LaneEvent): void {
    event.gapWaitMs = 0;
  }

  erase(lane: LaneState, events: ReadonlySet<EventId> | null): number {
    const isErased = (id: EventId) => events?.has(id) ?? true;
    if (events === null) {
      lane.peer = null;
      lane.externalReference = null;
    }
    for (const attempt of lane.attempts) if (isErased(attempt.eventId)) attempt.error = "";
    let discarded = 0;
    for (const event of lane.events.filter(({ id }) => isErased(id))) {
      event.hasBody = false;
      event.error = null;
      if (event.state !== "pending") continue;
      this.finish(lane, event, "discarded", null);
      discarded++;
    }
    return discarded;
  }
}

type AcceptedNew = Extract<Acceptance, { outcome: "accepted" | "late" | "filtered" }>;

function lower(event: LaneEvent, than: LaneEvent | null): LaneEvent {
  return than === null || bySequence(event, than) < 0 ? event : than;
}

/** Field by field, like every object of which there are many: see decision 22. */
function newEvent(lane: LaneState, incoming: NewEvent, id: number, arrival: Arrival, now: number): LaneEvent {
  const { sequence, late, state } = arrival;
  const isFiltered = state === "done";
  const {
    ownId = null,
    eventType,
    occurredAt,
    signedAt,
    untimed = false,
    gapWaitMs,
    digest,
    trace,
    repeats,
  } = incoming;
  return {
    id,
    lane,
    ownId,
    sequence,
    eventType,
    state,
    outcome: isFiltered ? "filtered" : null,
    late,
    forced: false,
    occurredAt,
    signedAt,
    untimed,
    gapWaitMs,
    acceptedAt: now,
    startedAt: null,
    finishedAt: state === "pending" ? null : now,
    attempts: 0,
    duplicates: repeats?.count ?? 0,
    conflict: false,
    errorCode: null,
    error: null,
    trace,
    digest: new Uint8Array(digest),
    hasBody: !isFiltered,
  };
}

/** The event of a lane by sequence that this is a delivery of. */
export function knownInLane(
  lane: LaneState | undefined,
  { sequence, eventType }: Pick<NewEvent, "sequence" | "eventType">,
): LaneEvent | undefined {
  return lane?.events.find((event) => event.sequence === sequence && event.eventType === eventType);
}

/** Counts deliveries of a known event. `isConflict`: their content differs. Returns true for the first that differs. */
export function countDuplicate(tally: Tally, first: LaneEvent, incoming: NewEvent, isConflict: boolean): boolean {
  const repeats = repeatsWith(incoming);
  first.duplicates += repeats.count;
  countDuplicates(tally, first, repeats, incoming.lane.order);
  if (!isConflict) return false;
  tally.count("conflicts");
  const isFirst = !first.conflict;
  first.conflict = true;
  return isFirst;
}

export function duplicateOf(first: LaneEvent, conflict: boolean): Extract<Acceptance, { outcome: "duplicate" }> {
  const { id, digest, signedAt, state, lane } = first;
  const reference = lane.key.order === null ? lane.externalReference : null;
  return { outcome: "duplicate", event: id, lane: lane.id, state, digest, signedAt, conflict, reference };
}

/** @param acceptIndex - as `leaseOf` */
export function toLease(claim: Leased<LaneEvent>, { raw, head }: Body, acceptIndex: number | null): Lease {
  const { lane, ownId, eventType, signedAt, trace } = claim.event;
  return leaseOf(
    lane,
    claim,
    { key: lane.key, ownId, eventType, signedAt, trace, raw: raw ?? new Uint8Array(), head },
    acceptIndex,
  );
}
