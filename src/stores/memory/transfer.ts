/** Exports an inbox in memory to another store, and imports another store's. */
import { bySequence, type LaneEvent, type LaneState } from "../../inbox/lane-state.ts";
import type { ImportAnswer, ImportPage, TransferredEvent, TransferredLane } from "../../inbox/record.ts";
import { withoutLease } from "../../inbox/store-rules.ts";
import { hexText, memoryFull } from "./batch.ts";
import { enterLane, eventRecord, keepWaiting, laneByKey, laneRecord, type MemoryState } from "./state.ts";

export function exportFromMemory(state: MemoryState, after: number, limit: number): TransferredLane[] {
  const lanes = [...state.lanes.values()].filter(({ id }) => id > after).sort((a, b) => a.id - b.id);
  return lanes.slice(0, limit).map((lane) => toTransferred(state, lane));
}

function toTransferred(state: MemoryState, lane: LaneState): TransferredLane {
  const events = lane.events.toSorted(bySequence).map((event) => eventOf(state, event));
  const leased = lane.events.find(({ id }) => id === lane.leased);
  return { ...laneRecord(state, lane), ...withoutLease(lane, leased), events };
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
  const fresh = lanes.filter(({ key }) => laneByKey(state, key) === undefined);
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

function takeEvent(state: MemoryState, lane: LaneState, { raw, conflicting, ...facts }: TransferredEvent): void {
  const event: LaneEvent = { ...facts, lane, hasBody: raw !== null };
  lane.events.push(event);
  state.events.set(event.id, event);
  if (raw !== null) state.bodies.set(event.id, { raw, conflict: conflicting });
  state.lastEventId = Math.max(state.lastEventId, event.id);
}
