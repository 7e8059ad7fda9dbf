/** The content of an inbox in memory, and how its rows are found, made and shown. */
import type { Arrival } from "../../inbox/lane.ts";
import { eventRefText, isNamed, laneKeyText } from "../../inbox/lane-key.ts";
import type { Tally } from "../../inbox/lane-port.ts";
import {
  besideCursor,
  knownInLane,
  type LaneEvent,
  type LaneState,
  LoadedLanes,
  type Mutable,
  NO_BODY,
  newLane,
  toEventRecord,
  toEventSummary,
} from "../../inbox/lane-state.ts";
import type {
  AuditRecord,
  ConflictRecord,
  EventId,
  EventRecord,
  EventRef,
  InboxStats,
  InstanceRecord,
  LaneId,
  LaneKey,
  LaneRecord,
  NewEvent,
  QuarantineRecord,
} from "../../inbox/record.ts";
import { SequenceBook } from "../../inbox/sequence-rules.ts";
import type { InboxRules, LaneRef, OpenContext } from "../../inbox/store.ts";

export type MemoryQuarantine = Mutable<QuarantineRecord>;

/** The body of an event, and the first delivery of it that differed. */
export interface Bodies {
  raw: Uint8Array;
  readonly head: string | null;
  conflict: ConflictRecord | null;
}

/** The receiver that has it open, and the rules of that receiver. */
export interface Opened {
  readonly context: OpenContext;
  readonly rules: InboxRules;
}

/** One inbox. Every operation runs without an `await`, so it is a transaction. */
export interface MemoryState {
  readonly maxEvents: number;
  opened: Opened | null;
  /** As recorded by the receiver that opened it last. */
  rules: InboxRules | null;
  readonly events: Map<EventId, LaneEvent>;
  /** Only of events whose body is kept. */
  readonly bodies: Map<EventId, Bodies>;
  readonly lanes: Map<LaneId, LaneState>;
  /** Of lanes with a name. */
  readonly laneIds: Map<string, LaneId>;
  /** Events by the id that their source gives them. */
  readonly ownIds: Map<string, LaneEvent>;
  /** Lanes with a `readyAt`. */
  readonly waiting: Set<LaneState>;
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
  /** The location of the store that it was copied from, and whether that copy is finished. */
  copiedFrom: string | null;
  copyFinished: boolean;
  /** The location of the store that it was moved to. */
  movedTo: string | null;
  /** The recorded facts of each entry, by its name. */
  readonly entries: Map<string, string>;
  readonly sequences: SequenceBook;
  readonly notes: Map<string, { readonly value: string; readonly until: number }>;
}

export function createMemoryState(maxEvents: number): MemoryState {
  return {
    maxEvents,
    opened: null,
    rules: null,
    events: new Map(),
    bodies: new Map(),
    lanes: new Map(),
    waiting: new Set(),
    laneIds: new Map(),
    ownIds: new Map(),
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
      filtered: 0,
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
    copiedFrom: null,
    copyFinished: false,
    movedTo: null,
    entries: new Map(),
    sequences: new SequenceBook(),
    notes: new Map(),
  };
}

/** One operation's view of the state. */
export class MemoryLanes extends LoadedLanes {
  readonly state: MemoryState;

  constructor(state: MemoryState, { context }: Opened) {
    super({ now: context.clock.now(), holder: context.instance.id, tally: tallyOf(state) }, state.sequences);
    this.state = state;
  }

  protected override add(lane: LaneState, incoming: NewEvent, id: EventId, arrival: Arrival): LaneEvent {
    const event = super.add(lane, incoming, id, arrival);
    enterEvent(this.state, event);
    if (!event.hasBody) return event;
    // A copy: a request body is often a view of a buffer that is used again.
    this.state.bodies.set(id, { raw: new Uint8Array(incoming.raw), head: incoming.head ?? null, conflict: null });
    return event;
  }

  override save(lane: LaneState): void {
    keepWaiting(this.state, lane);
  }
}

function tallyOf(state: MemoryState): Tally {
  return {
    count(name, by = 1) {
      state.counters[name] += by;
    },
    signed(at) {
      state.newestSignedAt = Math.max(state.newestSignedAt ?? at, at);
    },
    resigned() {
      state.serviceResigns = true;
    },
  };
}

/** Call it when a lane has changed: a claim looks only at lanes that wait. */
export function keepWaiting(state: MemoryState, lane: LaneState): void {
  if (lane.readyAt === null) state.waiting.delete(lane);
  else state.waiting.add(lane);
}

export function laneByKey(state: MemoryState, key: LaneKey): LaneState | undefined {
  const id = isNamed(key) ? state.laneIds.get(laneKeyText(key)) : undefined;
  return id === undefined ? undefined : state.lanes.get(id);
}

export function laneByRef(state: MemoryState, ref: LaneRef): LaneState | undefined {
  if (typeof ref === "number") return state.lanes.get(ref);
  return "id" in ref ? state.ownIds.get(eventRefText(ref))?.lane : laneByKey(state, ref);
}

/** The event that this is a delivery of. */
export function knownEvent(state: MemoryState, incoming: NewEvent): LaneEvent | undefined {
  const { lane, ownId } = incoming;
  if (ownId === undefined) return knownInLane(laneByKey(state, lane), incoming);
  return state.ownIds.get(refTextOf(lane, ownId));
}

export function enterEvent(state: MemoryState, event: LaneEvent): void {
  state.events.set(event.id, event);
  if (event.ownId !== null) state.ownIds.set(refTextOf(event.lane.key, event.ownId), event);
}

export function removeEvent(state: MemoryState, event: LaneEvent): void {
  state.events.delete(event.id);
  state.bodies.delete(event.id);
  if (event.ownId !== null) state.ownIds.delete(refTextOf(event.lane.key, event.ownId));
}

function refTextOf({ source, tenant }: LaneKey, id: EventRef["id"]): string {
  return eventRefText({ source, tenant, id });
}

export function addLane(state: MemoryState, event: NewEvent): LaneState {
  return enterLane(state, newLane(++state.lastLaneId, event.lane));
}

export function enterLane(state: MemoryState, lane: LaneState): LaneState {
  state.lanes.set(lane.id, lane);
  if (isNamed(lane.key)) state.laneIds.set(laneKeyText(lane.key), lane.id);
  return lane;
}

export function removeLane(state: MemoryState, lane: LaneState): void {
  state.lanes.delete(lane.id);
  if (isNamed(lane.key)) state.laneIds.delete(laneKeyText(lane.key));
  state.waiting.delete(lane);
}

/** JSON keeps the parts apart, whatever characters they contain. */
export function eventRecord(state: MemoryState, event: LaneEvent): EventRecord {
  return toEventRecord(event, state.bodies.get(event.id) ?? NO_BODY);
}

export function laneRecord(lane: LaneState): LaneRecord {
  const { token: _token, holder: _holder, leased: _leased, gaps, attempts, ...facts } = lane;
  const { events, more } = besideCursor(lane.events, lane.cursor);
  const shown = new Set(events.map(({ id }) => id));
  return {
    ...facts,
    events: events.map(toEventSummary),
    more,
    gaps: gaps.map((gap) => ({ ...gap })),
    attempts: attempts.filter(({ eventId }) => shown.has(eventId)).map((attempt) => ({ ...attempt })),
  };
}
