/** What is worked out once of a message before it is drawn: the two orders of its events, and which of them came late. */
import type { AttemptRecord, EventId, EventRecord, LaneRecord } from "../../inbox/record.ts";

export interface Scene {
  readonly lane: LaneRecord;
  /** In the order of their arrival. */
  readonly arrivals: readonly EventRecord[];
  /** In the order in which they were handed out first. */
  readonly handOuts: readonly EventRecord[];
  /** Those that were below the cursor when they arrived, also after a replay. */
  readonly late: ReadonlySet<EventRecord>;
  /** Failed attempts by event, ascending. */
  readonly failures: ReadonlyMap<EventId, readonly AttemptRecord[]>;
}

export function sceneOf(lane: LaneRecord): Scene {
  const { events } = lane;
  return {
    lane,
    arrivals: [...events].sort((a, b) => a.id - b.id),
    handOuts: events.filter(wasHandedOut).sort((a, b) => a.startedAt - b.startedAt || byTurn(a, b)),
    late: new Set(events.filter((event) => cameLate(lane, event))),
    failures: failuresOf(lane.attempts),
  };
}

export function isOrdered({ key }: LaneRecord): boolean {
  return key.tag === "outbound";
}

/** Who is handed out first of those that wait: late ones last, the others by sequence. */
export function byTurn(a: EventRecord, b: EventRecord): number {
  return Number(a.late) - Number(b.late) || a.sequence - b.sequence || a.id - b.id;
}

/** When it was no longer waited with; null while it is. */
export function waitedUntil({ startedAt, finishedAt }: EventRecord): number | null {
  return startedAt ?? finishedAt;
}

/** It is to be handed out, and never was. */
export function isWaiting({ state, startedAt }: EventRecord): boolean {
  return state === "pending" && startedAt === null;
}

function wasHandedOut(event: EventRecord): event is EventRecord & { readonly startedAt: number } {
  return event.startedAt !== null;
}

/** A replay takes the mark away: then the gap that was given up tells it, or what had been handed out before it came. */
function cameLate(lane: LaneRecord, event: EventRecord): boolean {
  if (event.late || event.state === "late") return true;
  if (!event.forced || !isOrdered(lane)) return false;
  const { sequence, acceptedAt, startedAt } = event;
  return lane.events.some((other) => {
    if (other.sequence <= sequence || other.startedAt === null) return false;
    // What fills a gap is often accepted in the millisecond in which the one behind it starts; then it started first.
    const startedAfter = startedAt === null || startedAt > other.startedAt;
    return other.startedAt < acceptedAt || (other.startedAt === acceptedAt && startedAfter);
  });
}

function failuresOf(attempts: readonly AttemptRecord[]): ReadonlyMap<EventId, readonly AttemptRecord[]> {
  const failures = new Map<EventId, AttemptRecord[]>();
  for (const attempt of attempts) {
    const known = failures.get(attempt.eventId);
    if (known === undefined) failures.set(attempt.eventId, [attempt]);
    else known.push(attempt);
  }
  for (const list of failures.values()) list.sort((a, b) => a.at - b.at);
  return failures;
}
