/** Does to the memory store what an operator asks. */
import { discard, releaseGap, replay, unblock } from "../../inbox/lanes/acting.ts";
import type { LaneState } from "../../inbox/lanes/state.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { accept } from "./accept.ts";
import { erase } from "./erase.ts";
import { keep, type MemoryMoment } from "./state.ts";

export function act(moment: MemoryMoment, request: Act): ActResult {
  const { state } = moment;
  switch (request.kind) {
    case "replay":
    case "discard": {
      const event = state.events.get(request.event);
      const result = (request.kind === "replay" ? replay : discard)(moment, event, request);
      return kept(moment, event?.lane, result);
    }
    case "unblock":
    case "release_gap": {
      const lane = state.lanes.get(request.lane);
      const result = request.kind === "unblock" ? unblock(moment, lane) : releaseGap(moment, lane);
      return kept(moment, lane, result);
    }
    case "erase":
      return erase(moment, request.subject);
    case "replay_quarantined":
      return replayQuarantined(moment, request);
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

function kept({ state }: MemoryMoment, lane: LaneState | undefined, result: ActResult): ActResult {
  if (lane !== undefined) keep(state, lane);
  return result;
}

function replayQuarantined(moment: MemoryMoment, request: Extract<Act, { kind: "replay_quarantined" }>): ActResult {
  const row = moment.state.quarantine.get(request.quarantine);
  if (row === undefined) return { ok: false, reason: "not_found" };
  if (row.state !== "held") return { ok: false, reason: "wrong_state" };
  if (row.raw === null) return { ok: false, reason: "body_pruned" };
  const acceptance = accept(moment, request.event, request.lateEvents);
  if (acceptance.outcome === "failed") throw acceptance.error;
  row.state = "replayed";
  row.replayedAs = acceptance.event;
  return { ok: true, event: acceptance.event, count: 1 };
}
