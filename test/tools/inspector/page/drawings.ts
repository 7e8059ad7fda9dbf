/** Drawings for the tests of the page: of an event that was handled at once, unless a test says otherwise. */
import type { Drawing, DrawnEvent, Sample } from "../../../../src/tools/inspector/api.ts";

export function event(facts: Partial<DrawnEvent> = {}): DrawnEvent {
  const { id = 1, acceptedAt = 1_000 } = facts;
  return {
    ...{ id, sequence: id, eventType: "message.sent", state: "done", outcome: "handled" },
    ...{ late: false, replayed: false, conflict: false, duplicates: 0, acceptedAt, arrival: id, handling: id },
    ...{ startedAt: acceptedAt, finishedAt: acceptedAt + 20, held: null, attempts: [], attemptCount: 1 },
    ...facts,
  };
}

/** From the first of their moments to the last, at which it is now. */
export function drawing(events: readonly DrawnEvent[], order: Drawing["order"] = "sequence"): Drawing {
  const moments = events.flatMap(({ acceptedAt, startedAt, finishedAt, attempts }) => [
    ...[acceptedAt, startedAt ?? acceptedAt, finishedAt ?? acceptedAt],
    ...attempts.map(({ at }) => at),
  ]);
  const [from, to] = [Math.min(...moments), Math.max(...moments)];
  return { from, to, now: to, order, events, gaps: [], end: { state: "open", eventType: null } };
}

/** What one look told, of an inbox in which nothing happens. */
export function sampleAt(at: number, accepted = 0): Sample {
  return {
    ...{ at, accepted, pending: 0, oldestWaitingMs: 0, dead: 0, quarantined: 0, handled: 0, late: 0 },
    ...{ gapsSkipped: 0, rejected: 0 },
  };
}
