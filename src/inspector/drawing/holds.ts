/** Why an event was not handed out as it came. */
import type { EventRecord } from "../../inbox/record.ts";
import type { DrawnHold } from "../api.ts";
import { type Gaps, waitedFor, waitedThrough } from "./gaps.ts";
import { byTurn, isWaiting, type Scene, waitedUntil } from "./scene.ts";

/** What still holds it, else what did. */
export function holdOf(scene: Scene, gaps: Gaps, event: EventRecord): DrawnHold | null {
  return presentHold(scene, gaps, event) ?? gapHold(scene, gaps, event) ?? turnHold(scene, event);
}

function presentHold({ lane, late }: Scene, { open }: Gaps, event: EventRecord): DrawnHold | null {
  if (!isWaiting(event)) return null;
  const since = event.acceptedAt;
  if (lane.status === "blocked") return { reason: "blocked", from: null, to: null, since, until: null };
  if (open !== null && open.to < event.sequence && !late.has(event))
    return { reason: "gap", from: open.from, to: open.to, since, until: null };
  const isBehind = lane.status === "leased" || lane.status === "backoff";
  const hasBefore = lane.events.some((other) => other.state === "pending" && byTurn(other, event) < 0);
  return isBehind || hasBefore ? { reason: "turn", from: null, to: null, since, until: null } : null;
}

/** All that was missing before it, until the last of it came or was given up. */
function gapHold({ late }: Scene, { fillings, skipped }: Gaps, event: EventRecord): DrawnHold | null {
  if (late.has(event)) return null;
  const filled = fillings.filter((filling) => waitedFor(event, filling.event)).map((filling) => filling.event);
  const givenUp = skipped.filter((gap) => waitedThrough(event, gap));
  if (filled.length + givenUp.length === 0) return null;
  const since = event.acceptedAt;
  return {
    reason: "gap",
    from: Math.min(...filled.map(({ sequence }) => sequence), ...givenUp.map(({ from }) => from)),
    to: Math.max(...filled.map(({ sequence }) => sequence), ...givenUp.map(({ to }) => to)),
    since,
    until: Math.max(since, ...filled.map(({ acceptedAt }) => acceptedAt), ...givenUp.map(({ skippedAt }) => skippedAt)),
  };
}

/** Those that were handed out before it, and were done with only after it had come. */
function turnHold(scene: Scene, event: EventRecord): DrawnHold | null {
  const { acceptedAt: since } = event;
  const end = waitedUntil(event);
  if (end === null) return null;
  let until = since;
  for (const other of scene.handOuts) {
    if (other === event) break;
    if (event.startedAt === null && byTurn(other, event) > 0) continue;
    until = Math.max(until, endedBy(scene, other, end) ?? since);
  }
  return until > since ? { reason: "turn", from: null, to: null, since, until } : null;
}

/** A replay hides when an event had ended before: its last failure tells, if it had one. */
function endedBy({ failures }: Scene, { id, finishedAt }: EventRecord, by: number): number | null {
  if (finishedAt !== null && finishedAt <= by) return finishedAt;
  return failures.get(id)?.findLast(({ at }) => at <= by)?.at ?? null;
}
