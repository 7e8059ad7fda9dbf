/** Gives the memory store's lanes to another store. */
import { bySequence, type LaneEvent, type LaneState } from "../../inbox/lanes/state.ts";
import type { TransferredEvent, TransferredLane } from "../../inbox/record.ts";
import { withoutLease } from "../../inbox/store-rules.ts";
import { eventRecord, laneRecord, type MemoryState } from "./state.ts";

export function exportLanes(state: MemoryState, after: number, limit: number): TransferredLane[] {
  const lanes = [...state.lanes.values()].filter(({ id }) => id > after).sort((a, b) => a.id - b.id);
  return lanes.slice(0, limit).map((lane) => toTransferred(state, lane));
}

function toTransferred(state: MemoryState, lane: LaneState): TransferredLane {
  const events = lane.events.toSorted(bySequence).map((event) => eventOf(state, event));
  return { ...laneRecord(state, lane), ...withoutLease(lane, lane.leased), events };
}

function eventOf(state: MemoryState, event: LaneEvent): TransferredEvent {
  const { laneId: _laneId, lane: _lane, ...facts } = eventRecord(state, event);
  return { ...facts, gapWaitMs: event.gapWaitMs, conflicting: state.bodies.get(event.id)?.conflict ?? null };
}
