/** Draws the story of a message: what arrived when, what was handed out when, and what lay between. Pure. */
import type { EventRecord, LaneRecord } from "../../inbox/record.ts";
import type { Drawing, DrawnEvent, DrawnGap } from "../api.ts";
import { endOf } from "./end.ts";
import { drawGaps, type Gaps, gapsOf } from "./gaps.ts";
import { holdOf } from "./holds.ts";
import { type Scene, sceneOf } from "./scene.ts";

/** @param now - epoch milliseconds: what is still going on reaches to it */
export function drawMessage(lane: LaneRecord, now: number): Drawing {
  const scene = sceneOf(lane);
  const gaps = gapsOf(scene);
  const places = new Map(scene.handOuts.map((event, index) => [event, index + 1]));
  const events = scene.arrivals.map((event, index) => ({
    ...drawEvent(scene, gaps, event),
    arrival: index + 1,
    handling: places.get(event) ?? null,
  }));
  const drawnGaps = drawGaps(scene, gaps);
  const goesOn = gaps.open !== null || events.some(({ state }) => state === "pending");
  const moments = [...momentsOf(events, drawnGaps), ...(goesOn ? [now] : [])];
  // A clock that was set back since must not turn the picture over.
  const first = moments[0] ?? now;
  return {
    from: moments.reduce((a, b) => Math.min(a, b), first),
    to: moments.reduce((a, b) => Math.max(a, b), first),
    now,
    events,
    gaps: drawnGaps,
    end: endOf(lane),
  };
}

function drawEvent(scene: Scene, gaps: Gaps, event: EventRecord): Omit<DrawnEvent, "arrival" | "handling"> {
  const { id, sequence, eventType, state, outcome, forced, conflict, duplicates } = event;
  const { acceptedAt, startedAt, finishedAt } = event;
  const attempts = (scene.failures.get(id) ?? []).map(({ eventId: _, ...attempt }) => attempt);
  return {
    ...{ id, sequence, eventType, state, outcome, late: scene.late.has(event), replayed: forced, conflict, duplicates },
    ...{ acceptedAt, startedAt, finishedAt, held: holdOf(scene, gaps, event), attempts },
    // A replay counts anew; its failures and those before it are kept all the same.
    attemptCount: Math.max(event.attempts, attempts.length + (state === "done" ? 1 : 0)),
  };
}

function momentsOf(events: readonly DrawnEvent[], gaps: readonly DrawnGap[]): readonly number[] {
  const all = [
    ...events.flatMap(({ acceptedAt, startedAt, finishedAt, held, attempts }) => [
      ...[acceptedAt, startedAt, finishedAt, held?.until ?? null],
      ...attempts.map(({ at }) => at),
    ]),
    ...gaps.flatMap(({ since, until, filledAt }) => [since, until, filledAt]),
  ];
  return all.filter((at) => at !== null);
}
