/** Removes a person's data from the memory store; what identifies an event stays. */
import type { Act, ActResult } from "../../inbox/store.ts";
import { rearm } from "./lanes.ts";
import { finish, headOf, type MemoryEvent, type MemoryLane, type Moment } from "./state.ts";

type Subject = Extract<Act, { kind: "erase" }>["subject"];

export function erase(moment: Moment, subject: Subject): ActResult {
  const { state } = moment;
  const lanes = [...state.lanes.values()].filter((lane) =>
    "peer" in subject ? lane.peer === subject.peer : lane.key.messageId === subject.messageId,
  );
  if (lanes.some((lane) => lane.leased !== null)) return { ok: false, reason: "in_progress" };
  let count = 0;
  for (const lane of lanes) {
    count += lane.events.length;
    eraseLane(moment, lane);
  }
  const text = Buffer.from("peer" in subject ? subject.peer : subject.messageId);
  for (const row of state.quarantine.values()) {
    if (row.raw === null || !Buffer.from(row.raw).includes(text)) continue;
    row.raw = null;
    row.state = "discarded";
    count++;
  }
  return { ok: true, count };
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
