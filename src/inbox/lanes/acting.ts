/** Does to a lane what an operator asks. */
import { expectedSequence, gapSinceWithout } from "../gap.ts";
import type { ActResult, AsFound } from "../store.ts";
import { isAsFound } from "../store-rules.ts";
import { moveCursor, rearm } from "./claiming.ts";
import { bySequence, finish, headOf, isHeld, isOrdered, type LaneEvent, type LaneState, type Moment } from "./state.ts";

type Refusal = Extract<ActResult, { ok: false }>;

/** Pending again, whatever its sequence; attempts start anew, the cursor stays. */
export function replay(moment: Moment, event: LaneEvent | undefined, asFound: AsFound): ActResult {
  if (event === undefined) return refuse("not_found");
  const { lane } = event;
  if (lane.leased === event && isHeld(lane, moment.now)) return refuse("in_progress");
  if (!isAsFound(event, asFound)) return refuse("wrong_state");
  if (event.state === "pending" && lane.status !== "backoff" && lane.status !== "blocked") return refuse("wrong_state");
  if (!event.hasBody) return refuse("body_pruned");
  endWaitOf(event);
  event.state = "pending";
  event.outcome = null;
  event.finishedAt = null;
  event.forced = true;
  event.late = false;
  event.attempts = 0;
  // A lane in backoff with another event before this one waits on.
  if (lane.status !== "leased" && (lane.status !== "backoff" || headOf(lane) === event)) rearm(moment, lane);
  return { ok: true, event: event.id, count: 1 };
}

/** Sets an event aside; the cursor moves on if its sequence was the expected one. */
export function discard(moment: Moment, event: LaneEvent | undefined, asFound: AsFound): ActResult {
  if (event === undefined) return refuse("not_found");
  const { lane } = event;
  if (lane.leased === event && isHeld(lane, moment.now)) return refuse("in_progress");
  if (!isAsFound(event, asFound)) return refuse("wrong_state");
  if (event.state !== "pending" && event.state !== "dead") return refuse("wrong_state");
  const head = headOf(lane);
  endWaitOf(event);
  finish(event, "discarded", moment.now);
  moment.tally.count("discarded");
  const expected = expectedSequence({ cursor: lane.cursor, firstSequence: moment.firstSequence });
  if (isOrdered(lane) && event.sequence === expected) moveCursor(lane, event.sequence);
  const goesOn = lane.status === "leased" ? lane.leased !== event : lane.status === "backoff" && headOf(lane) === head;
  if (!goesOn) rearm(moment, lane);
  return { ok: true, event: event.id, count: 1 };
}

/** To be called before the event leaves those in their turn. */
function endWaitOf({ lane, id }: LaneEvent): void {
  const inTurn = lane.events.filter(({ state, late, forced }) => state === "pending" && !late && !forced);
  lane.gapSince = gapSinceWithout(id, lane.gapSince, inTurn.toSorted(bySequence));
}

/** Lets a blocked lane go on. */
export function unblock(moment: Moment, lane: LaneState | undefined): ActResult {
  if (lane === undefined) return refuse("not_found");
  if (isHeld(lane, moment.now)) return refuse("in_progress");
  if (lane.status !== "blocked") return refuse("wrong_state");
  rearm(moment, lane);
  return { ok: true, count: 1 };
}

/** Gives up the gap before a lane's head. */
export function releaseGap(moment: Moment, lane: LaneState | undefined): ActResult {
  if (lane === undefined) return refuse("not_found");
  if (isHeld(lane, moment.now)) return refuse("in_progress");
  const head = headOf(lane);
  if (lane.status !== "gap" || head === null) return refuse("wrong_state");
  head.gapWaitMs = 0;
  rearm(moment, lane);
  return { ok: true, event: head.id, count: 1 };
}

/** Removes a person's data from a lane; the store removes the bodies. What identifies an event stays. */
export function eraseLane(moment: Moment, lane: LaneState): void {
  lane.peer = null;
  lane.externalReference = null;
  // Nothing is pending in it any more, and so nothing waits.
  lane.gapSince = null;
  for (const attempt of lane.attempts) attempt.error = "";
  for (const event of lane.events) eraseEvent(moment, event);
  if (lane.status !== "blocked") rearm(moment, lane);
}

function eraseEvent(moment: Moment, event: LaneEvent): void {
  event.hasBody = false;
  event.error = null;
  if (event.state !== "pending") return;
  finish(event, "discarded", moment.now);
  moment.tally.count("discarded");
}

function refuse(reason: Refusal["reason"]): Refusal {
  return { ok: false, reason };
}
