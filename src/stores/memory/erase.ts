/** Removes a person's data from the memory store; what identifies an event stays. */
import { createMentionTest } from "../../inbox/mention.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { rearm } from "./lanes.ts";
import { finish, headOf, type MemoryEvent, type MemoryLane, type Moment } from "./state.ts";

type Subject = Extract<Act, { kind: "erase" }>["subject"];

export function erase(moment: Moment, subject: Subject): ActResult {
  const { state } = moment;
  const isNamedIn = createMentionTest("peer" in subject ? subject.peer : subject.messageId);
  const lanes = [...state.lanes.values()].filter(
    (lane) => isTold(lane, subject) || (isSilent(lane, subject) && bodiesOf(lane).some(isNamedIn)),
  );
  if (lanes.some((lane) => lane.leased !== null)) return { ok: false, reason: "in_progress" };
  let count = 0;
  for (const lane of lanes) {
    count += lane.events.length;
    eraseLane(moment, lane);
  }
  for (const row of state.quarantine.values()) {
    if (row.raw === null || !isNamedIn(row.raw)) continue;
    row.raw = null;
    row.state = "discarded";
    count++;
  }
  return { ok: true, count };
}

function isTold(lane: MemoryLane, subject: Subject): boolean {
  return "peer" in subject ? lane.peer === subject.peer : lane.key.messageId === subject.messageId;
}

/** Whether only the bodies of a lane can tell: its events are of types that are not known. */
function isSilent(lane: MemoryLane, subject: Subject): boolean {
  return lane.key.tag === "unlaned" || ("peer" in subject && lane.peer === null);
}

function bodiesOf(lane: MemoryLane): Uint8Array[] {
  return lane.events.flatMap(({ raw, conflictRaw }) => [raw, conflictRaw]).filter((body) => body !== null);
}

function eraseLane(moment: Moment, lane: MemoryLane): void {
  const head = headOf(lane);
  lane.peer = null;
  lane.externalReference = null;
  for (const attempt of lane.attempts) attempt.error = "";
  for (const event of lane.events) eraseEvent(moment, event);
  if (lane.status !== "blocked" && !(lane.status === "backoff" && headOf(lane) === head)) rearm(moment, lane);
}

function eraseEvent(moment: Moment, event: MemoryEvent): void {
  event.raw = null;
  event.conflictRaw = null;
  event.error = null;
  if (event.state !== "pending") return;
  finish(event, "discarded", moment.now);
  moment.state.counters.discarded++;
}
