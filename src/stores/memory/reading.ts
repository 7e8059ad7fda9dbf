/** Queries of an inbox in memory, its export and its import. It holds few events by design, so they scan. */

import {
  bySequence,
  isPrunedAtCursor,
  type LaneEvent,
  type LaneState,
  toEventSummary,
} from "../../inbox/lane-state.ts";
import type {
  EventBody,
  EventId,
  EventSummary,
  ImportAnswer,
  ImportPage,
  InboxStats,
  LaneSummary,
  QuarantineSummary,
  TransferredEvent,
  TransferredLane,
} from "../../inbox/record.ts";
import type { EventQuery, LaneQuery, Page, QuarantineQuery } from "../../inbox/store.ts";
import { pageOf, withinBytes, withoutLease } from "../../inbox/store-rules.ts";
import { hexText, memoryFull } from "./batch.ts";
import { enterEvent, enterLane, eventRecord, keepWaiting, laneRecord, type MemoryState } from "./state.ts";

export function findInMemory(state: MemoryState, query: EventQuery): Page<EventSummary> {
  const newestFirst = query.order !== "oldest";
  const events = [...state.events.values()].filter((event) => matches(event, query));
  events.sort((a, b) => (newestFirst ? b.id - a.id : a.id - b.id));
  const after = query.after;
  const rest = after === undefined ? events : events.filter((e) => (newestFirst ? e.id < after : e.id > after));
  return pageOf(rest, query.limit, toEventSummary);
}

export function findLanesInMemory(state: MemoryState, query: LaneQuery): Page<LaneSummary> {
  const lanes = [...state.lanes.values()].filter((lane) => laneMatches(lane, query)).sort((a, b) => b.id - a.id);
  return pageOf(lanes, query.limit, summaryOf);
}

function laneMatches(lane: LaneState, query: LaneQuery): boolean {
  const { id, status, key, peer, events } = lane;
  return (
    id < (query.after ?? Number.POSITIVE_INFINITY) &&
    allows(query.statuses, status) &&
    equals(query.order, key.order) &&
    equals(query.source, key.source) &&
    equals(query.tenant, key.tenant) &&
    (query.peer === undefined || query.peer === peer) &&
    isWithout(lane, query.without ?? []) &&
    events.every(({ acceptedAt }) => acceptedAt <= (query.quietSince ?? Number.POSITIVE_INFINITY))
  );
}

function isWithout(lane: LaneState, types: readonly string[]): boolean {
  if (types.length === 0) return true;
  return !isPrunedAtCursor(lane) && !lane.events.some(({ eventType }) => types.includes(eventType));
}

/** A lane is removed with its last event, so it always has one. */
function summaryOf({
  token: _token,
  holder: _holder,
  leased: _leased,
  gaps: _gaps,
  attempts: _attempts,
  ...lane
}: LaneState): LaneSummary {
  const { events, ...facts } = lane;
  const { id, ownId, eventType, sequence, acceptedAt, state } = events.reduce((a, b) => (b.id > a.id ? b : a));
  return { ...facts, newest: { id, ownId, eventType, sequence, acceptedAt, state } };
}

export function findQuarantinedInMemory(state: MemoryState, query: QuarantineQuery): Page<QuarantineSummary> {
  const rows = [...state.quarantine.values()].sort((a, b) => b.id - a.id);
  const rest = rows.filter(
    (row) => allows(query.states, row.state) && (query.after === undefined || row.id < query.after),
  );
  return pageOf(rest, query.limit, ({ raw, head: _head, ...row }) => ({ ...row, bytes: raw?.byteLength ?? null }));
}

export function bodiesInMemory({ bodies }: MemoryState, events: readonly EventId[], maxBytes: number) {
  const read = new Map<EventId, EventBody>();
  let bytes = 0;
  for (const id of events) {
    const body = bodies.get(id);
    if (body === undefined || bytes >= maxBytes) continue;
    read.set(id, { raw: body.raw, head: body.head });
    bytes += body.raw.byteLength;
  }
  return read;
}

function matches(event: LaneEvent, query: EventQuery): boolean {
  const { lane } = event;
  return (
    (query.states === undefined || query.states.includes(event.state)) &&
    equals(query.outcome, event.outcome) &&
    equals(query.late, event.late) &&
    equals(query.conflict, event.conflict) &&
    equals(query.eventType, event.eventType) &&
    equals(query.source, lane.key.source) &&
    equals(query.tenant, lane.key.tenant) &&
    equals(query.lane, lane.key.name) &&
    equals(query.id, event.ownId) &&
    equals(query.externalReference, lane.externalReference) &&
    equals(query.peer, lane.peer) &&
    equals(query.errorCode, event.errorCode) &&
    event.acceptedAt >= (query.acceptedFrom ?? Number.NEGATIVE_INFINITY) &&
    event.acceptedAt <= (query.acceptedTo ?? Number.POSITIVE_INFINITY)
  );
}

function equals<T>(wanted: T | undefined, actual: T | null): boolean {
  return wanted === undefined || wanted === actual;
}

function allows<T>(wanted: readonly T[] | undefined, actual: T): boolean {
  return wanted === undefined || wanted.includes(actual);
}

export function statsOfMemory(state: MemoryState): InboxStats {
  const gauges = { pending: 0, dead: 0, quarantined: 0, quarantinedBytes: 0, blockedLanes: 0 };
  let oldestPendingAt: number | null = null;
  for (const event of state.events.values()) {
    if (event.state === "dead") gauges.dead++;
    if (event.state !== "pending") continue;
    gauges.pending++;
    oldestPendingAt = Math.min(oldestPendingAt ?? event.acceptedAt, event.acceptedAt);
  }
  for (const row of state.quarantine.values()) {
    if (row.state !== "held") continue;
    gauges.quarantined++;
    gauges.quarantinedBytes += row.raw?.byteLength ?? 0;
  }
  for (const lane of state.lanes.values()) if (lane.status === "blocked") gauges.blockedLanes++;
  const { newestSignedAt, serviceResigns } = state;
  return {
    gauges,
    counters: { ...state.counters },
    oldestPendingAt,
    newestSignedAt,
    serviceResigns,
    instances: [...state.instances.values()],
  };
}

export function exportFromMemory(state: MemoryState, after: number, limit: number): TransferredLane[] {
  const lanes = [...state.lanes.values()].filter(({ id }) => id > after).sort((a, b) => a.id - b.id);
  const page = lanes.slice(0, limit).map((lane) => toTransferred(state, lane));
  return [...withinBytes(page, ({ events }) => events.reduce((sum, event) => sum + bytesOf(event), 0))];
}

function bytesOf({ raw, conflicting }: TransferredEvent): number {
  return (raw?.byteLength ?? 0) + (conflicting?.raw.byteLength ?? 0);
}

function toTransferred(state: MemoryState, lane: LaneState): TransferredLane {
  const events = lane.events.toSorted(bySequence).map((event) => eventOf(state, event));
  const leased = lane.events.find(({ id }) => id === lane.leased);
  const { more: _more, ...record } = laneRecord(lane);
  const attempts = lane.attempts.map((attempt) => ({ ...attempt }));
  return { ...record, attempts, ...withoutLease(lane, leased), events };
}

function eventOf(state: MemoryState, event: LaneEvent): TransferredEvent {
  const { laneId: _laneId, lane: _lane, ...facts } = eventRecord(state, event);
  return { ...facts, gapWaitMs: event.gapWaitMs, conflicting: state.bodies.get(event.id)?.conflict ?? null };
}

export function importToMemory(state: MemoryState, page: ImportPage): ImportAnswer {
  if (!isFrom(state, page.source)) return { ok: false };
  state.copiedFrom = page.source;
  if (!state.copyFinished) take(state, page);
  return { ok: true, lastLane: state.lastLaneId, finished: state.copyFinished };
}

function isFrom(state: MemoryState, source: string): boolean {
  if (state.copiedFrom !== null) return state.copiedFrom === source;
  return state.lastLaneId === 0 && state.lastQuarantineId === 0 && state.audit.length === 0;
}

function take(state: MemoryState, { lanes, quarantined, audit, totals }: ImportPage): void {
  const fresh = lanes.filter(({ id }) => !state.lanes.has(id));
  const size = fresh.reduce((sum, { events }) => sum + events.length, state.events.size);
  if (size > state.maxEvents) throw memoryFull(state.maxEvents);
  for (const lane of fresh) takeLane(state, lane);
  for (const row of quarantined) {
    if (state.quarantine.has(row.id)) continue;
    state.quarantine.set(row.id, { ...row });
    state.quarantineDigests.add(hexText(row.digest));
    state.lastQuarantineId = Math.max(state.lastQuarantineId, row.id);
  }
  const known = new Set(state.audit.map(({ id }) => id));
  for (const row of audit) if (!known.has(row.id)) state.audit.push(row);
  state.audit.sort((a, b) => a.id - b.id);
  if (totals === null) return;
  Object.assign(state.counters, totals.counters);
  state.newestSignedAt = totals.newestSignedAt;
  state.serviceResigns = totals.serviceResigns;
  state.copyFinished = true;
}

function takeLane(state: MemoryState, { events, gaps, attempts, ...facts }: TransferredLane): void {
  const lane: LaneState = {
    ...facts,
    token: 0,
    holder: null,
    leased: null,
    events: [],
    gaps: gaps.map((gap) => ({ ...gap })),
    attempts: attempts.map((attempt) => ({ ...attempt })),
  };
  for (const event of events) takeEvent(state, lane, event);
  state.lastLaneId = Math.max(state.lastLaneId, lane.id);
  keepWaiting(state, enterLane(state, lane));
}

function takeEvent(state: MemoryState, lane: LaneState, { raw, head, conflicting, ...facts }: TransferredEvent): void {
  const event: LaneEvent = { ...facts, lane, hasBody: raw !== null };
  lane.events.push(event);
  enterEvent(state, event);
  if (raw !== null) state.bodies.set(event.id, { raw, head, conflict: conflicting });
  state.lastEventId = Math.max(state.lastEventId, event.id);
}
