/** Removes a person's data from the memory store; what identifies an event stays. */
import { eraseLane } from "../../inbox/lanes/acting.ts";
import type { LaneState } from "../../inbox/lanes/state.ts";
import { createMentionTest } from "../../inbox/mention.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { keep, type MemoryMoment, type MemoryState } from "./state.ts";

type Subject = Extract<Act, { kind: "erase" }>["subject"];

export function erase(moment: MemoryMoment, subject: Subject): ActResult {
  const { state } = moment;
  const isNamedIn = createMentionTest("peer" in subject ? subject.peer : subject.messageId);
  const lanes = [...state.lanes.values()].filter(
    (lane) => isTold(lane, subject) || (isSilent(lane, subject) && bodiesOf(state, lane).some(isNamedIn)),
  );
  if (lanes.some((lane) => lane.leased !== null)) return { ok: false, reason: "in_progress" };
  let count = 0;
  for (const lane of lanes) {
    count += lane.events.length;
    eraseLane(moment, lane);
    for (const { id } of lane.events) state.bodies.delete(id);
    keep(state, lane);
  }
  for (const row of state.quarantine.values()) {
    if (row.raw === null || !isNamedIn(row.raw)) continue;
    row.raw = null;
    row.state = "discarded";
    count++;
  }
  return { ok: true, count };
}

function isTold(lane: LaneState, subject: Subject): boolean {
  return "peer" in subject ? lane.peer === subject.peer : lane.key.messageId === subject.messageId;
}

/** Whether only the bodies of a lane can tell: its events are of types that are not known. */
function isSilent(lane: LaneState, subject: Subject): boolean {
  return lane.key.tag === "unlaned" || ("peer" in subject && lane.peer === null);
}

function bodiesOf(state: MemoryState, lane: LaneState): Uint8Array[] {
  return lane.events.flatMap(({ id }) => {
    const bodies = state.bodies.get(id);
    return bodies === undefined ? [] : [bodies.raw, bodies.conflict?.raw].filter((body) => body !== undefined);
  });
}
