/**
 * What the rules of `lane.ts` read and write of a lane. Memory and Postgres answer from lanes that they hold as objects, SQLite from
 * prepared statements. Nothing here waits: a rule runs to its end within one transaction.
 */
import { type Candidate, FRESH_MS, isDue, type Missing } from "./gap.ts";
import type { EventId, EventState, InboxStats, LaneId, LaneKey, LaneOrder, LaneStatus, Outcome } from "./record.ts";
import type { ClaimRequest, Failure, SequenceRules } from "./store.ts";

/** A lane's own facts. The rules change them; its port stores them. */
export interface Lane {
  readonly id: LaneId;
  cursor: number | null;
  status: LaneStatus;
  /** Null exactly when the lane is idle or blocked. */
  readyAt: number | null;
  gapSince: number | null;
  /** Of the lease, or of the last one. 0 before the first. */
  token: number;
  /** The instance that holds the lease; null exactly when not leased. */
  holder: string | number | null;
  /** The event under lease; null exactly when not leased. */
  leased: EventId | null;
}

/** What the rules read of an event. Only a port changes it. */
export interface LaneEntry extends Candidate {
  readonly id: EventId;
  readonly state: EventState;
  /** By sequence: it came late. By position: it was late when it was leased. */
  readonly late: boolean;
  readonly finishedAt: number | null;
  readonly attempts: number;
  /** False once the body is pruned or erased. */
  readonly hasBody: boolean;
}

/** One operation's view of the inbox. */
export interface Moment {
  /** Epoch milliseconds. */
  readonly now: number;
  /** The instance that claims and settles. */
  readonly holder: string | number;
  /** Counts what happens, and when deliveries were signed. */
  readonly tally: Tally;
}

/** What a store counts and keeps next to its rows. */
export interface Tally {
  count(name: keyof InboxStats["counters"], by?: number): void;
  /** A verified timestamp, epoch milliseconds. */
  signed(at: number): void;
  /** A duplicate came with another timestamp. */
  resigned(): void;
}

/** A lane's lowest pending events, by (sequence, id). */
export interface Heads<E> {
  /** The lowest one that is not late: see `isLate`. */
  readonly head: E | null;
  readonly late: E | null;
}

/** The lanes of one transaction. */
export interface LanePort<L extends Lane, E extends LaneEntry> extends Moment {
  /** The order of its events. Null for a lane of one event. */
  order(lane: L): LaneOrder | null;
  /** The rules of the lane's entry. Asked only about lanes by sequence. */
  sequenceRules(lane: L): SequenceRules;
  heads(lane: L): Heads<E>;
  event(lane: L, id: EventId): E | null;
  /** What decides whether a handler takes the event. */
  names(lane: L, event: E): { readonly key: LaneKey; readonly eventType: string };
  /** Whether an event at this sequence has ended. Only asked about sequences without a pending event. */
  isSettledAt(lane: L, sequence: number): boolean;
  /** The recorded gap that ends with this sequence. */
  gapEndingAt(lane: L, sequence: number): Missing | null;
  /** The pending events that are neither late nor replayed, by (sequence, id): at least the first two. */
  inTurn(lane: L): readonly Pick<E, "id" | "acceptedAt">[];
  /** When the first of those was accepted that are in turn. Asked only where there is one. */
  heldSince(lane: L): number;
  /** The highest sequence of the lane's events, ended or not, among the `PLACES` from `from` on. Null if there is none. */
  highest(lane: L, from: number): number | null;

  /** Stores the lane's own facts. */
  save(lane: L): void;
  addGap(lane: L, gap: Missing): void;
  /** An event of a recorded gap arrived after all. */
  fillGaps(lane: L, sequence: number): void;
  /** It is late as it is leased, or ends. */
  markLate(lane: L, event: E): void;
  /** Begins an attempt. */
  start(lane: L, event: E): void;
  /** Takes back an attempt that did not begin. */
  takeBackAttempt(lane: L, event: E): void;
  addAttempt(lane: L, event: E, failure: Failure): void;
  fail(lane: L, event: E, error: Pick<Failure, "code" | "message">): void;
  finish(lane: L, event: E, state: Exclude<EventState, "pending">, outcome: Outcome | null): void;
  /** Pending again, as a replay, with new attempts. */
  reopen(lane: L, event: E): void;
  /** The event waits for no missing sequence any more. */
  endGapWait(lane: L, event: E): void;
  /** Removes texts and numbers, and discards pending events. `events`: of these alone; null for the whole lane. Returns how many. */
  erase(lane: L, events: ReadonlySet<EventId> | null): number;
}

type LanePlace = Pick<Lane, "status" | "readyAt">;

/** A lane that is ready is due whatever its time: the clock may have been set back since. */
export function laneIsDue(lane: LanePlace, now: number): boolean {
  return lane.status === "ready" || (lane.readyAt !== null && isDue(lane.readyAt, now));
}

/** Whether the head of a due lane is fresh: see `ClaimRequest.fresh`. One that failed before is not. */
export function isFresh({ status, readyAt }: LanePlace, now: number): boolean {
  return status !== "backoff" && readyAt !== null && readyAt > now - FRESH_MS && readyAt <= now;
}

/** Due lanes in the order in which a claim takes them. */
export function claimOrder<L extends LanePlace & Pick<Lane, "id">>(
  due: readonly L[],
  { fresh = 0 }: Pick<ClaimRequest, "fresh">,
  now: number,
): readonly L[] {
  const oldest = due.toSorted((a, b) => (a.readyAt ?? 0) - (b.readyAt ?? 0) || a.id - b.id);
  if (fresh === 0) return oldest;
  const first = oldest.filter((lane) => isFresh(lane, now)).slice(0, fresh);
  return [...first, ...oldest.filter((lane) => !first.includes(lane))];
}

/**
 * Whether a worker has the lane's event. An expired lease holds nothing back: its holder may be gone, and no other worker may be there to
 * take the event over.
 */
export function isHeld(lane: LanePlace, now: number): boolean {
  return lane.status === "leased" && !laneIsDue(lane, now);
}
