/** A lane in a store's hands: its facts as objects that the decisions of `lane.ts` change, and the store then keeps. */
import { isDue } from "./gap.ts";
import type {
  AttemptRecord,
  EventRecord,
  EventState,
  GapRecord,
  InboxStats,
  LaneKey,
  LaneRecord,
  Outcome,
} from "./record.ts";

/** A record of the contract that its store may write to. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** An event of a lane, without its body. */
export interface LaneEvent extends Mutable<Omit<EventRecord, "laneId" | "lane" | "raw">> {
  readonly lane: LaneState;
  /** How long a gap before it is waited for, in milliseconds; an operator can set it to 0. */
  gapWaitMs: number;
  /** False once the body is pruned or erased. */
  hasBody: boolean;
}

/** A lane with its events. A store that reads it from a database reads all that the decision at hand looks at. */
export interface LaneState extends Mutable<Omit<LaneRecord, "events" | "gaps" | "attempts">> {
  /** The instance that holds the lease; null exactly when not leased. */
  holder: string | null;
  /** The event under lease; null exactly when not leased. */
  leased: LaneEvent | null;
  events: LaneEvent[];
  gaps: Mutable<GapRecord>[];
  attempts: Mutable<AttemptRecord>[];
}

/** One operation's view of the inbox. Its decisions run to their end without an `await`. */
export interface Moment {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly firstSequence: number | "any";
  /** The instance that claims and settles. */
  readonly holder: string;
  /** Counts what happens, and when deliveries were signed. */
  readonly tally: Tally;
}

/** What a store counts and keeps beside its rows. */
export interface Tally {
  count(name: keyof InboxStats["counters"], by?: number): void;
  /** A verified timestamp, epoch milliseconds. */
  signed(at: number): void;
  /** A duplicate came with another timestamp. */
  resigned(): void;
}

/** The same for two keys of one lane alone. */
export function laneKeyText({ apiClientId, tag, messageId }: LaneKey): string {
  return `${tag} ${apiClientId.length} ${apiClientId}${messageId}`;
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
    epoch: 0,
    peer: null,
    externalReference: null,
    holder: null,
    leased: null,
    events: [],
    gaps: [],
    attempts: [],
  };
}

/** Sets what a lane does next, and that nobody holds it. `readyAt` is null exactly when it is idle or blocked. */
export function schedule(lane: LaneState, status: LaneState["status"], readyAt: number | null): void {
  lane.status = status;
  lane.readyAt = readyAt;
  lane.holder = null;
  lane.leased = null;
}

/** Ends an event's wait: `state` and when. */
export function finish(
  event: LaneEvent,
  state: Exclude<EventState, "pending">,
  now: number,
  outcome: Outcome | null = null,
): void {
  event.state = state;
  event.outcome = outcome;
  event.finishedAt = now;
}

/** The lane's lowest pending event by (late, sequence, id). */
export function headOf(lane: LaneState): LaneEvent | null {
  return lowestPending(lane, false) ?? lowestPending(lane, true);
}

/** The lane's pending event lowest in (sequence, id) among the late ones or the others. */
export function lowestPending(lane: LaneState, late: boolean): LaneEvent | null {
  let lowest: LaneEvent | null = null;
  for (const event of lane.events) {
    if (event.state !== "pending" || event.late !== late) continue;
    if (lowest === null || bySequence(event, lowest) < 0) lowest = event;
  }
  return lowest;
}

export function bySequence(a: Pick<LaneEvent, "sequence" | "id">, b: Pick<LaneEvent, "sequence" | "id">): number {
  return a.sequence - b.sequence || a.id - b.id;
}

export function isOrdered(lane: Pick<LaneRecord, "key">): boolean {
  return lane.key.tag === "outbound";
}

type LanePlace = Pick<LaneRecord, "status" | "readyAt">;

/** A lane that is ready is due whatever its time: the clock may have been set back since. */
export function laneIsDue(lane: LanePlace, now: number): boolean {
  return lane.status === "ready" || (lane.readyAt !== null && isDue(lane.readyAt, now));
}

type LanePast = Pick<LaneRecord, "cursor"> & { readonly events: readonly Pick<LaneEvent, "sequence">[] };

/**
 * Whether the event at the lane's cursor was pruned. Then it had been settled: what is pending or dead stays, but for a dead letter on
 * which nobody acted in all the time that those are kept.
 */
export function isPrunedAtCursor({ cursor, events }: LanePast): boolean {
  return cursor !== null && !events.some((event) => event.sequence === cursor);
}

type WholePast = Pick<LaneRecord, "cursor" | "gaps"> & {
  readonly events: readonly Pick<LaneEvent, "sequence" | "late">[];
};

/**
 * Whether an event behind `sequence` was pruned, wherever in the lane: since it began, there was one for each sequence up to its cursor,
 * but for what was given up in a gap.
 */
export function isPrunedBehind({ cursor, events, gaps }: WholePast, sequence: number): boolean {
  if (cursor === null) return false;
  const kept = events.map(({ sequence, late }) => ({ from: sequence, to: sequence, late }));
  const given = gaps.map(({ from, to }) => ({ from, to, late: false }));
  const known = [...kept, ...given].toSorted((a, b) => a.from - b.from);
  const begun = known.find(({ late }) => !late)?.from ?? cursor;
  let next = Math.max(sequence + 1, begun);
  for (const { from, to } of known) if (from <= next) next = Math.max(next, to + 1);
  return next <= cursor;
}

/**
 * Whether a worker has the lane's event. A lease that has expired holds nothing back: its holder may be gone, with nobody there to take
 * the event over.
 */
export function isHeld(lane: LanePlace, now: number): boolean {
  return lane.status === "leased" && !laneIsDue(lane, now);
}

/** Field by field: a rest pattern costs ten times as much, and every page of events comes through here. */
export function toEventRecord(event: LaneEvent, raw: Uint8Array | null): EventRecord {
  return {
    id: event.id,
    laneId: event.lane.id,
    lane: event.lane.key,
    sequence: event.sequence,
    eventType: event.eventType,
    state: event.state,
    outcome: event.outcome,
    late: event.late,
    forced: event.forced,
    occurredAt: event.occurredAt,
    signedAt: event.signedAt,
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
    raw,
  };
}
