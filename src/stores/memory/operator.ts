/** Does to the memory store what an operator asks. */
import { expectedSequence } from "../../inbox/gap.ts";
import type { EventId, LaneId } from "../../inbox/record.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { accept } from "./accept.ts";
import { erase } from "./erase.ts";
import { moveCursor, rearm } from "./lanes.ts";
import { finish, headOf, isOrdered, type MemoryEvent, type MemoryLane, type Moment } from "./state.ts";

type Refusal = Extract<ActResult, { ok: false }>;

export function act(moment: Moment, request: Act): ActResult {
  switch (request.kind) {
    case "replay":
      return replay(moment, request.event);
    case "discard":
      return discard(moment, request.event);
    case "unblock":
      return unblock(moment, request.lane);
    case "release_gap":
      return releaseGap(moment, request.lane);
    case "erase":
      return erase(moment, request.subject);
    case "replay_quarantined":
      return replayQuarantined(moment, request);
    case "discard_quarantined": {
      const row = moment.state.quarantine.get(request.quarantine);
      if (row === undefined) return refuse("not_found");
      if (row.state !== "held") return refuse("wrong_state");
      row.state = "discarded";
      return { ok: true, count: 1 };
    }
    default:
      return request satisfies never;
  }
}

function replay(moment: Moment, id: EventId): ActResult {
  const event = moment.state.events.get(id);
  if (event === undefined) return refuse("not_found");
  const { lane } = event;
  if (lane.leased === event) return refuse("in_progress");
  if (event.state === "pending" && lane.status !== "backoff" && lane.status !== "blocked") return refuse("wrong_state");
  if (event.raw === null) return refuse("body_pruned");
  event.state = "pending";
  event.outcome = null;
  event.finishedAt = null;
  event.forced = true;
  event.late = false;
  event.attempts = 0;
  // A lane in backoff with another event before this one waits on.
  if (lane.status !== "leased" && (lane.status !== "backoff" || headOf(lane) === event)) rearm(moment, lane);
  return { ok: true, event: id, count: 1 };
}

function discard(moment: Moment, id: EventId): ActResult {
  const event = moment.state.events.get(id);
  if (event === undefined) return refuse("not_found");
  const { lane } = event;
  if (lane.leased === event) return refuse("in_progress");
  if (event.state !== "pending" && event.state !== "dead") return refuse("wrong_state");
  const head = headOf(lane);
  finish(event, "discarded", moment.now);
  moment.state.counters.discarded++;
  const expected = expectedSequence({ cursor: lane.cursor, firstSequence: moment.context.firstSequence });
  if (isOrdered(lane) && event.sequence === expected) moveCursor(lane, event.sequence);
  rearmIfChanged(moment, lane, head);
  return { ok: true, event: id, count: 1 };
}

/** Rearms unless a worker holds the lane, or it is in backoff with the same head: that wait goes on. */
function rearmIfChanged(moment: Moment, lane: MemoryLane, headBefore: MemoryEvent | null): void {
  if (lane.status === "leased" || (lane.status === "backoff" && headOf(lane) === headBefore)) return;
  rearm(moment, lane);
}

function unblock(moment: Moment, id: LaneId): ActResult {
  const lane = moment.state.lanes.get(id);
  if (lane === undefined) return refuse("not_found");
  if (lane.status === "leased") return refuse("in_progress");
  if (lane.status !== "blocked") return refuse("wrong_state");
  rearm(moment, lane);
  return { ok: true, count: 1 };
}

function releaseGap(moment: Moment, id: LaneId): ActResult {
  const lane = moment.state.lanes.get(id);
  if (lane === undefined) return refuse("not_found");
  if (lane.status === "leased") return refuse("in_progress");
  const head = headOf(lane);
  if (lane.status !== "gap" || head === null) return refuse("wrong_state");
  head.gapWaitMs = 0;
  rearm(moment, lane);
  return { ok: true, event: head.id, count: 1 };
}

function replayQuarantined(moment: Moment, request: Extract<Act, { kind: "replay_quarantined" }>): ActResult {
  const row = moment.state.quarantine.get(request.quarantine);
  if (row === undefined) return refuse("not_found");
  if (row.state !== "held") return refuse("wrong_state");
  if (row.raw === null) return refuse("body_pruned");
  const acceptance = accept(moment, request.event, request.lateEvents);
  if (acceptance.outcome === "failed") throw acceptance.error;
  row.state = "replayed";
  row.replayedAs = acceptance.event;
  return { ok: true, event: acceptance.event, count: 1 };
}

function refuse(reason: Refusal["reason"]): Refusal {
  return { ok: false, reason };
}
