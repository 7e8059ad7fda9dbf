/** Queries of an inbox in memory. It holds few events by design, so they scan. */
import { isPrunedAtCursor, type LaneEvent, type LaneState } from "../../inbox/lane-state.ts";
import type { EventRecord, InboxStats, LaneSummary, QuarantineRecord } from "../../inbox/record.ts";
import type { EventQuery, LaneQuery, Page, QuarantineQuery } from "../../inbox/store.ts";
import { pageOf } from "../../inbox/store-rules.ts";
import { eventRecord, type MemoryState } from "./state.ts";

export function findInMemory(state: MemoryState, query: EventQuery): Page<EventRecord> {
  const newestFirst = query.order !== "oldest";
  const events = [...state.events.values()].filter((event) => matches(event, query));
  events.sort((a, b) => (newestFirst ? b.id - a.id : a.id - b.id));
  const after = query.after;
  const rest = after === undefined ? events : events.filter((e) => (newestFirst ? e.id < after : e.id > after));
  return pageOf(rest, query.limit, (event) => eventRecord(state, event));
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
    equals(query.tag, key.tag) &&
    equals(query.apiClientId, key.apiClientId) &&
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
  holder: _holder,
  leased: _leased,
  gaps: _gaps,
  attempts: _attempts,
  ...lane
}: LaneState): LaneSummary {
  const { events, ...facts } = lane;
  const { id, eventType, sequence, acceptedAt, state } = events.reduce((a, b) => (b.id > a.id ? b : a));
  return { ...facts, newest: { id, eventType, sequence, acceptedAt, state } };
}

export function findQuarantinedInMemory(state: MemoryState, query: QuarantineQuery): Page<QuarantineRecord> {
  const rows = [...state.quarantine.values()].sort((a, b) => b.id - a.id);
  const rest = rows.filter(
    (row) => allows(query.states, row.state) && (query.after === undefined || row.id < query.after),
  );
  return pageOf(rest, query.limit, (row) => ({ ...row }));
}

function matches(event: LaneEvent, query: EventQuery): boolean {
  const { lane } = event;
  return (
    (query.states === undefined || query.states.includes(event.state)) &&
    equals(query.outcome, event.outcome) &&
    equals(query.late, event.late) &&
    equals(query.conflict, event.conflict) &&
    equals(query.eventType, event.eventType) &&
    equals(query.apiClientId, lane.key.apiClientId) &&
    equals(query.messageId, lane.key.messageId) &&
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
