/** How the story of a message stands. */
import { isTerminal } from "../../events/parse.ts";
import type { EventRecord, LaneRecord } from "../../inbox/record.ts";
import type { DrawnEnd } from "../api.ts";
import { byTurn, isOrdered } from "./scene.ts";

export function endOf(lane: LaneRecord): DrawnEnd {
  const inTurn = [...lane.events].sort(byTurn);
  const newest = [...lane.events].sort((a, b) => a.sequence - b.sequence || a.id - b.id).at(-1);
  const dead = inTurn.filter(({ state }) => state === "dead");
  const pending = inTurn.find(({ state }) => state === "pending");
  const ending = inTurn.filter((event) => ends(lane, event));
  const reached = ending.findLast(({ state }) => state === "done" || state === "late");
  const failed = newest?.state === "dead" ? newest : reached === undefined ? ending.find(isDead) : undefined;
  if (lane.status === "blocked") return { state: "blocked", eventType: (dead.at(-1) ?? pending)?.eventType ?? null };
  if (pending !== undefined) return { state: "waiting", eventType: pending.eventType };
  if (failed !== undefined) return { state: "failed", eventType: failed.eventType };
  if (reached !== undefined) return { state: "ended", eventType: reached.eventType };
  return { state: "open", eventType: null };
}

/** A lane that is not ordered holds one event, and ends with it. */
function ends(lane: LaneRecord, { eventType }: EventRecord): boolean {
  return !isOrdered(lane) || isTerminal(eventType);
}

function isDead({ state }: EventRecord): boolean {
  return state === "dead";
}
