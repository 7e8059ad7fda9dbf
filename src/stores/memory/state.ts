/** What the memory store keeps, and how its rows are found, made and shown. */
import { isDue } from "../../inbox/gap.ts";
import type {
  AttemptRecord,
  AuditRecord,
  EventId,
  EventRecord,
  EventState,
  GapRecord,
  LaneId,
  LaneKey,
  LaneRecord,
  NewEvent,
  Outcome,
  QuarantineRecord,
} from "../../inbox/record.ts";
import type { InboxStats, InstanceRecord, OpenContext } from "../../inbox/store.ts";

/** A record of the contract that its store may write to. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface MemoryEvent extends Mutable<Omit<EventRecord, "laneId" | "lane">> {
  readonly lane: MemoryLane;
  /** How long a gap before it is waited for, in milliseconds; an operator can set it to 0. */
  gapWaitMs: number;
  /** The first differing body of this identity. */
  conflictRaw: Uint8Array | null;
}

export interface MemoryLane extends Mutable<Omit<LaneRecord, "events" | "gaps" | "attempts">> {
  /** The instance that holds the lease; null exactly when not leased. */
  holder: string | null;
  /** The event under lease; null exactly when not leased. */
  leased: MemoryEvent | null;
  events: MemoryEvent[];
  gaps: Mutable<GapRecord>[];
  attempts: Mutable<AttemptRecord>[];
}

export type MemoryQuarantine = Mutable<QuarantineRecord>;

/** All of one inbox. Every operation runs to its end without an `await`, and so is a transaction. */
export interface MemoryState {
  readonly maxEvents: number;
  context: OpenContext | null;
  /** Recorded at the first open. */
  name: string | null;
  readonly events: Map<EventId, MemoryEvent>;
  readonly lanes: Map<LaneId, MemoryLane>;
  readonly laneIds: Map<string, LaneId>;
  /** Lanes with a `readyAt`: a claim looks at these alone. */
  readonly waiting: Set<MemoryLane>;
  readonly quarantine: Map<number, MemoryQuarantine>;
  readonly quarantineDigests: Set<string>;
  readonly audit: AuditRecord[];
  readonly instances: Map<string, InstanceRecord>;
  readonly counters: Mutable<InboxStats["counters"]>;
  newestSignedAt: number | null;
  serviceResigns: boolean;
  lastEventId: number;
  lastLaneId: number;
  lastQuarantineId: number;
}

export function createState(maxEvents: number): MemoryState {
  return {
    maxEvents,
    context: null,
    name: null,
    events: new Map(),
    lanes: new Map(),
    laneIds: new Map(),
    waiting: new Set(),
    quarantine: new Map(),
    quarantineDigests: new Set(),
    audit: [],
    instances: new Map(),
    counters: {
      accepted: 0,
      duplicates: 0,
      conflicts: 0,
      late: 0,
      handled: 0,
      unhandled: 0,
      retried: 0,
      deadLettered: 0,
      discarded: 0,
      gapsSkipped: 0,
      quarantined: 0,
    },
    newestSignedAt: null,
    serviceResigns: false,
    lastEventId: 0,
    lastLaneId: 0,
    lastQuarantineId: 0,
  };
}

/** One operation's view: the state, its moment, and what `open` said. */
export interface Moment {
  readonly state: MemoryState;
  readonly now: number;
  readonly context: OpenContext;
}

export function laneByKey(state: MemoryState, key: LaneKey): MemoryLane | undefined {
  const id = state.laneIds.get(keyText(key));
  return id === undefined ? undefined : state.lanes.get(id);
}

export function addLane(state: MemoryState, event: NewEvent): MemoryLane {
  const lane: MemoryLane = {
    id: ++state.lastLaneId,
    key: { ...event.lane },
    cursor: null,
    status: "idle",
    readyAt: null,
    gapSince: null,
    epoch: 0,
    peer: event.peer,
    externalReference: event.externalReference,
    holder: null,
    leased: null,
    events: [],
    gaps: [],
    attempts: [],
  };
  state.lanes.set(lane.id, lane);
  state.laneIds.set(keyText(lane.key), lane.id);
  return lane;
}

export function removeLane(state: MemoryState, lane: MemoryLane): void {
  state.lanes.delete(lane.id);
  state.laneIds.delete(keyText(lane.key));
  state.waiting.delete(lane);
}

/** JSON keeps parts apart whatever characters they hold. */
function keyText(key: LaneKey): string {
  return JSON.stringify([key.apiClientId, key.tag, key.messageId]);
}

/** Sets what a lane does next. `readyAt` is null exactly when it is idle or blocked. */
export function schedule(
  state: MemoryState,
  lane: MemoryLane,
  status: MemoryLane["status"],
  readyAt: number | null,
): void {
  lane.status = status;
  lane.readyAt = readyAt;
  if (status !== "leased") {
    lane.holder = null;
    lane.leased = null;
  }
  if (readyAt === null) state.waiting.delete(lane);
  else state.waiting.add(lane);
}

/** Ends an event's wait: `state` and when. */
export function finish(
  event: MemoryEvent,
  state: Exclude<EventState, "pending">,
  now: number,
  outcome: Outcome | null = null,
): void {
  event.state = state;
  event.outcome = outcome;
  event.finishedAt = now;
}

/** The lane's lowest pending event by (late, sequence, id). */
export function headOf(lane: MemoryLane): MemoryEvent | null {
  return lowestPending(lane, false) ?? lowestPending(lane, true);
}

/** The lane's pending event lowest in (sequence, id) among the late ones or the others. */
export function lowestPending(lane: MemoryLane, late: boolean): MemoryEvent | null {
  let lowest: MemoryEvent | null = null;
  for (const event of lane.events) {
    if (event.state !== "pending" || event.late !== late) continue;
    if (lowest === null || bySequence(event, lowest) < 0) lowest = event;
  }
  return lowest;
}

function bySequence(a: MemoryEvent, b: MemoryEvent): number {
  return a.sequence - b.sequence || a.id - b.id;
}

export function isOrdered(lane: MemoryLane): boolean {
  return lane.key.tag === "outbound";
}

/** A lane that is ready is due whatever its time: the clock may have been set back since. */
export function laneIsDue(lane: MemoryLane, now: number): boolean {
  return lane.status === "ready" || (lane.readyAt !== null && isDue(lane.readyAt, now));
}

export function noteSigned(state: MemoryState, signedAt: number): void {
  state.newestSignedAt = Math.max(state.newestSignedAt ?? signedAt, signedAt);
}

/** Field by field: a rest pattern costs ten times as much, and every page of events comes through here. */
export function toEventRecord(event: MemoryEvent): EventRecord {
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
    raw: event.raw,
  };
}

export function toLaneRecord(lane: MemoryLane): LaneRecord {
  const { holder: _holder, leased: _leased, events, gaps, attempts, ...facts } = lane;
  return {
    ...facts,
    events: events.toSorted(bySequence).map(toEventRecord),
    gaps: gaps.map((gap) => ({ ...gap })),
    attempts: attempts.map((attempt) => ({ ...attempt })),
  };
}
