/** Removes a person's data from the memory store; what identifies an event stays. */
import { eraseLane } from "../../inbox/lanes/acting.ts";
import { isHeld, type LaneEvent, type LaneState } from "../../inbox/lanes/state.ts";
import type { ActResult } from "../../inbox/store.ts";
import { createSubjectTest, type Subject } from "../../inbox/subject.ts";
import { keep, type MemoryMoment, type MemoryState } from "./state.ts";

export function erase(moment: MemoryMoment, subject: Subject): ActResult {
  const { state } = moment;
  const { isAbout, isNamedIn } = createSubjectTest(subject);
  const lanes = [...state.lanes.values()].filter((lane) => isAbout(lane, () => bodiesOf(state, lane)));
  if (lanes.some((lane) => isHeld(lane, moment.now))) return { ok: false, reason: "in_progress" };
  let count = 0;
  for (const lane of lanes) {
    count += lane.events.filter((event) => holdsData(state, event)).length;
    eraseLane(moment, lane);
    for (const { id } of lane.events) state.bodies.delete(id);
    keep(state, lane);
  }
  for (const row of state.quarantine.values()) {
    if (row.raw === null || !isNamedIn(row.raw)) continue;
    row.raw = null;
    if (row.state === "held") row.state = "discarded";
    count++;
  }
  return { ok: true, count };
}

/** Whether a number, a reference or a text of the event is still held. */
function holdsData({ bodies }: MemoryState, { id, lane, error }: LaneEvent): boolean {
  if (lane.peer !== null || lane.externalReference !== null || error !== null || bodies.has(id)) return true;
  return lane.attempts.some((attempt) => attempt.eventId === id && attempt.error !== "");
}

function bodiesOf(state: MemoryState, lane: LaneState): Uint8Array[] {
  return lane.events.flatMap(({ id }) => {
    const bodies = state.bodies.get(id);
    return bodies === undefined ? [] : [bodies.raw, bodies.conflict?.raw].filter((body) => body !== undefined);
  });
}
