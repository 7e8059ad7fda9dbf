/** Removes from the memory store what is past its retention. */
import type { LaneEvent } from "../../inbox/lanes/state.ts";
import type { PrunePolicy, PruneResult } from "../../inbox/store.ts";
import { hex } from "./accept.ts";
import { type MemoryMoment, type MemoryQuarantine, type MemoryState, removeLane } from "./state.ts";

export function prune(moment: MemoryMoment, policy: PrunePolicy): PruneResult {
  const { state, now } = moment;
  // A clock that jumped ahead of the service's timestamps must not delete anything.
  const cutOff = Math.min(now, state.newestSignedAt ?? now);
  const events = [...state.events.values()];
  const bodies = events.filter((event) => hasOldBody(event, policy, cutOff));
  const old = events.filter((event) => isOld(event, policy, cutOff));
  const rows = [...state.quarantine.values()].filter((row) => isOldRow(row, policy, cutOff));
  const more = Math.max(bodies.length, old.length, rows.length) > policy.batch;

  const prunedBodies = bodies.slice(0, policy.batch);
  const prunedEvents = old.slice(0, policy.batch);
  const prunedRows = rows.slice(0, policy.batch);
  for (const event of prunedBodies) {
    event.hasBody = false;
    state.bodies.delete(event.id);
  }
  const lanes = prunedEvents.filter((event) => removeEvent(state, event)).length;
  for (const row of prunedRows) {
    state.quarantine.delete(row.id);
    state.quarantineDigests.delete(hex(row.digest));
  }
  return {
    bodies: prunedBodies.length,
    events: prunedEvents.length,
    lanes,
    quarantined: prunedRows.length,
    more,
  };
}

function hasOldBody(event: LaneEvent, policy: PrunePolicy, cutOff: number): boolean {
  if (!event.hasBody || event.finishedAt === null) return false;
  if (event.state === "late" || event.state === "discarded") return lastTimeOf(event) < cutOff - policy.otherBodiesMs;
  if (event.state !== "done") return false;
  const age = event.outcome === "handled" ? policy.handledBodiesMs : policy.otherBodiesMs;
  return lastTimeOf(event) < cutOff - age;
}

function isOld(event: LaneEvent, policy: PrunePolicy, cutOff: number): boolean {
  if (event.finishedAt === null) return false;
  return lastTimeOf(event) < cutOff - (event.state === "dead" ? policy.deadMs : policy.identitiesMs);
}

/** The service might repeat it since it was accepted, and the clock may have been set back then, or when it ended. */
function lastTimeOf({ acceptedAt, signedAt, finishedAt }: LaneEvent): number {
  return Math.max(acceptedAt, signedAt, finishedAt ?? acceptedAt);
}

function isOldRow(row: MemoryQuarantine, policy: PrunePolicy, cutOff: number): boolean {
  return Math.max(row.acceptedAt, row.signedAt) < cutOff - (row.state === "held" ? policy.deadMs : policy.identitiesMs);
}

/** True when the lane went with its last event. */
function removeEvent(state: MemoryState, event: LaneEvent): boolean {
  const { lane } = event;
  state.events.delete(event.id);
  state.bodies.delete(event.id);
  lane.events = lane.events.filter((other) => other !== event);
  lane.attempts = lane.attempts.filter((attempt) => attempt.eventId !== event.id);
  if (lane.events.length > 0) return false;
  removeLane(state, lane);
  return true;
}
