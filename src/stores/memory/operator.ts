/** Acts of an operator on an inbox in memory, erasing, and pruning. */

import { isShared } from "../../inbox/lane-key.ts";
import { isHeld } from "../../inbox/lane-port.ts";
import type { LaneEvent } from "../../inbox/lane-state.ts";
import type { EventId } from "../../inbox/record.ts";
import type { Act, ActResult, PrunePolicy, PruneResult } from "../../inbox/store.ts";
import { retentionEnds } from "../../inbox/store-rules.ts";
import { createSubjectTest, type Subject } from "../../inbox/subject.ts";
import { acceptInMemory, hexText } from "./batch.ts";
import { type MemoryLanes, type MemoryQuarantine, type MemoryState, removeEvent, removeLane } from "./state.ts";

export function actInMemory(lanes: MemoryLanes, request: Act): ActResult {
  const { state, rules } = lanes;
  switch (request.kind) {
    case "replay":
    case "discard": {
      const event = state.events.get(request.event);
      return rules[request.kind](event?.lane, event, request);
    }
    case "unblock":
      return rules.unblock(state.lanes.get(request.lane));
    case "release_gap":
      return rules.releaseGap(state.lanes.get(request.lane));
    case "erase":
      return erase(lanes, request.subject);
    case "replay_quarantined":
      return replayQuarantined(lanes, request);
    case "discard_quarantined": {
      const row = state.quarantine.get(request.quarantine);
      if (row === undefined) return { ok: false, reason: "not_found" };
      if (row.state !== "held") return { ok: false, reason: "wrong_state" };
      row.state = "discarded";
      return { ok: true, count: 1 };
    }
    case "reveal":
      return there(state.lanes.has(request.lane));
    case "reveal_quarantined":
      return there(state.quarantine.has(request.quarantine));
    default:
      return request satisfies never;
  }
}

function there(isThere: boolean): ActResult {
  return isThere ? { ok: true, count: 1 } : { ok: false, reason: "not_found" };
}

function replayQuarantined(lanes: MemoryLanes, request: Extract<Act, { kind: "replay_quarantined" }>): ActResult {
  const row = lanes.state.quarantine.get(request.quarantine);
  if (row === undefined) return { ok: false, reason: "not_found" };
  if (row.state !== "held") return { ok: false, reason: "wrong_state" };
  if (row.raw === null) return { ok: false, reason: "body_pruned" };
  const acceptance = acceptInMemory(lanes, request.event);
  if (acceptance.outcome === "failed") throw acceptance.error;
  row.state = "replayed";
  row.replayedAs = acceptance.event;
  return { ok: true, event: acceptance.event, count: 1 };
}

function erase({ state, rules, now }: MemoryLanes, subject: Subject): ActResult {
  const { isAbout, isEventAbout, isNamedIn } = createSubjectTest<LaneEvent>(subject, ({ id }) => bodiesOf(state, id));
  const lanes = [...state.lanes.values()].filter(isAbout);
  if (lanes.some((lane) => isHeld(lane, now))) return { ok: false, reason: "in_progress" };
  let count = 0;
  for (const lane of lanes) {
    const about = isShared(lane.key) ? lane.events.filter(isEventAbout) : lane.events;
    count += about.filter((event) => holdsData(state, event)).length;
    rules.erase(lane, about === lane.events ? null : new Set(about.map(({ id }) => id)));
    for (const { id } of about) state.bodies.delete(id);
  }
  for (const row of state.quarantine.values()) {
    if (row.raw === null || !isNamedIn(row.raw)) continue;
    row.raw = null;
    row.head = null;
    if (row.state === "held") row.state = "discarded";
    count++;
  }
  return { ok: true, count };
}

/** Whether the inbox still holds a number, a reference or a text of the event. */
function holdsData({ bodies }: MemoryState, { id, lane, error }: LaneEvent): boolean {
  if (lane.peer !== null || lane.externalReference !== null || error !== null || bodies.has(id)) return true;
  return lane.attempts.some((attempt) => attempt.eventId === id && attempt.error !== "");
}

function bodiesOf(state: MemoryState, event: EventId): Uint8Array[] {
  const bodies = state.bodies.get(event);
  return bodies === undefined ? [] : [bodies.raw, bodies.conflict?.raw].filter((body) => body !== undefined);
}

export function pruneMemory({ state, now }: MemoryLanes, policy: PrunePolicy): PruneResult {
  const ends = retentionEnds(now, state.newestSignedAt);
  const cutOffOf = ({ untimed }: { readonly untimed: boolean }) => (untimed ? ends.untimed : ends.timed);
  const events = [...state.events.values()];
  const bodies = events.filter((event) => hasOldBody(event, policy, cutOffOf(event)));
  const old = events.filter((event) => isOld(event, policy, cutOffOf(event)));
  const rows = [...state.quarantine.values()].filter((row) => isOldRow(row, policy, cutOffOf(row)));
  const more = Math.max(bodies.length, old.length, rows.length) > policy.batch;

  const prunedBodies = bodies.slice(0, policy.batch);
  const prunedEvents = old.slice(0, policy.batch);
  const prunedRows = rows.slice(0, policy.batch);
  for (const event of prunedBodies) {
    event.hasBody = false;
    state.bodies.delete(event.id);
  }
  const lanes = prunedEvents.filter((event) => pruneEvent(state, event)).length;
  for (const row of prunedRows) {
    state.quarantine.delete(row.id);
    state.quarantineDigests.delete(hexText(row.digest));
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

/** The later of two times: the service can repeat an event from its acceptance on, and the clock may have been set back then or at its end. */
function lastTimeOf({ acceptedAt, signedAt, finishedAt }: LaneEvent): number {
  return Math.max(acceptedAt, signedAt, finishedAt ?? acceptedAt);
}

function isOldRow(row: MemoryQuarantine, policy: PrunePolicy, cutOff: number): boolean {
  return Math.max(row.acceptedAt, row.signedAt) < cutOff - (row.state === "held" ? policy.deadMs : policy.identitiesMs);
}

/** Returns true if the lane was removed with its last event. */
function pruneEvent(state: MemoryState, event: LaneEvent): boolean {
  const { lane } = event;
  removeEvent(state, event);
  lane.events = lane.events.filter((other) => other !== event);
  lane.attempts = lane.attempts.filter((attempt) => attempt.eventId !== event.id);
  if (lane.events.length > 0) return false;
  removeLane(state, lane);
  return true;
}
