/** What happened in a lane, in sentences that say what the drawing shows. */
import type { Drawing, DrawnEnd, DrawnEvent, DrawnGap, DrawnHold, LaneDetail } from "../api.ts";
import { formatClock, formatDuration } from "./format.ts";

interface Ending {
  readonly word: string;
  /** As a report, for an event that the application has not handled. */
  readonly report: string;
}

/** What the events that end a message say. A Map, because an event type may have the name of an object's own property. */
const ENDS: ReadonlyMap<string, Ending> = new Map([
  ["message.delivery", { word: "Delivered", report: "The service reported it delivered" }],
  ["message.failed", { word: "Not delivered", report: "The service reported that it failed" }],
  ["message.inbound", { word: "Received", report: "Received" }],
]);

/** `2`, or `2–4` */
export function rangeOf({ from, to }: { readonly from: number | null; readonly to: number | null }): string {
  return from === to ? `${from}` : `${from}–${to}`;
}

/** An event outside of a sequence has the number 0. */
function nameOf({ eventType, sequence }: DrawnEvent): string {
  return sequence === 0 ? eventType : `${eventType} (${sequence})`;
}

function openGapOf({ gaps }: Drawing): DrawnGap | undefined {
  return gaps.find(({ until }) => until === null);
}

/** Did the customer get that message? If not, why? `code` is the reason of a failure, `readyAt` the end of a wait. */
export function summaryOf(
  drawing: Drawing,
  { code = null, readyAt = null }: { readonly code?: string | null; readonly readyAt?: number | null } = {},
): string {
  const { events, now } = drawing;
  const newestFirst = events.toSorted((a, b) => b.sequence - a.sequence || b.id - a.id);
  const end = newestFirst.find(({ eventType }) => ENDS.has(eventType));
  const shown = end ?? newestFirst.find(({ state }) => state === "dead") ?? newestFirst[0];
  if (shown === undefined) return "Its events are no longer kept.";
  const state = `${nameOf(shown)} ${fateOf(shown, now)}.`;
  const ending = end && ENDS.get(end.eventType);
  if (end && ending) {
    const isHandled = end.state === "done" && end.outcome === "handled";
    const why = code !== null && end.eventType === "message.failed" ? `: ${code}` : "";
    const next = end.state === "pending" ? `Not handled yet: ${delayOf(end, { readyAt, now })}.` : state;
    return `${isHandled ? ending.word : ending.report}${why}. ${next}`;
  }
  const gap = openGapOf(drawing);
  if (gap !== undefined) {
    const verb = gap.from === gap.to ? "is" : "are";
    return `Not known yet: ${sequencesOf(gap)} ${verb} missing, waiting since ${formatClock(gap.since, now)}.`;
  }
  return drawing.order === "sequence" && shown.sequence > 0 ? `Its end is not reported yet. ${state}` : state;
}

/** Why an event is not handled yet. */
function delayOf(event: DrawnEvent, { readyAt, now }: { readonly readyAt: number | null; readonly now: number }) {
  const { held } = event;
  if (held?.reason !== "gap" || held.until !== null || readyAt === null) return `it ${fateOf(event, now)}`;
  return `waiting for ${sequencesOf(held)} until ${formatClock(readyAt, now)}`;
}

/** `sequence 2`, `sequences 2–4` */
function sequencesOf(range: Pick<DrawnHold, "from" | "to">): string {
  return `${range.from === range.to ? "sequence" : "sequences"} ${rangeOf(range)}`;
}

/** The status of a lane. */
export function statusOf({ status, readyAt, drawing }: Pick<LaneDetail, "status" | "readyAt" | "drawing">): string {
  const gap = openGapOf(drawing);
  const at = readyAt === null ? "soon" : formatClock(readyAt, drawing.now);
  const cause = gap === undefined ? "a missing event" : sequencesOf(gap);
  const texts = {
    gap: drawing.order === "position" ? `Held back until ${at}` : `Waits for ${cause} until ${at}`,
    blocked: "Blocked behind a dead letter",
    leased: "Is being handled",
    backoff: hasFailed(drawing) ? `Failed, next attempt at ${at}` : `Waits for its turn until ${at}`,
    ready: "About to be handled",
    idle: idleStatus(drawing),
  };
  return texts[status];
}

/** Otherwise an event was put off: by a rate, or because no process had its source. */
function hasFailed({ events }: Drawing): boolean {
  return events.some(({ state, attempts }) => state === "pending" && attempts.length > 0);
}

function idleStatus({ events }: Drawing): string {
  const dead = events.filter(({ state }) => state === "dead").length;
  const finished = events.every(({ outcome }) => outcome === "handled") ? "All handled" : "All finished";
  if (dead > 1) return `${finished}, with ${dead} dead letters`;
  return dead === 1 ? `${finished}, with a dead letter` : finished;
}

/** How far a lane has come; null without sequences. */
export function progressOf({ order, cursor }: Pick<LaneDetail, "order" | "cursor">): string | null {
  if (order !== "sequence") return null;
  return cursor === null ? "nothing yet" : `sequence ${cursor}`;
}

export function endOf({ state, eventType }: DrawnEnd): string {
  const words = {
    ended: "Ended",
    open: "All finished",
    waiting: "Waiting",
    blocked: "Blocked",
    failed: "Dead letter",
  };
  return (state === "ended" && ENDS.get(eventType ?? "")?.word) || words[state];
}

/** What became of an event, as the end of a sentence. */
export function fateOf(event: DrawnEvent, now: number): string {
  const { state, outcome, late, replayed, held, attempts, attemptCount } = event;
  const code = attempts.at(-1)?.errorCode;
  const finished = `at ${formatClock(event.finishedAt, now)}`;
  const attempt = attemptCount > 1 ? `, at attempt ${attemptCount}` : "";
  if (state === "late") return "came late, and was recorded but not handled";
  if (state === "discarded") return `was discarded ${finished}`;
  if (state === "dead") return `is a dead letter: its handler failed ${finished}${attempt}${code ? `, ${code}` : ""}`;
  if (outcome === "filtered") return `was filtered ${finished}`;
  if (outcome === "unhandled")
    return `came at ${formatClock(event.acceptedAt, now)}, and the application has no handler for it`;
  if (state === "done")
    return `${late ? "came late, and " : ""}was handled ${finished}${replayed ? " by a replay" : attempt}`;
  if (held?.until === null) {
    const cause = held.reason === "gap" ? `for ${sequencesOf(held)}` : waitCause(held);
    return `has waited ${cause} since ${formatClock(held.since, now)}`;
  }
  if (code) return `failed with ${code}, and will be tried again`;
  return event.startedAt === null || replayed ? "waits to be handled" : "is being handled";
}

/** `waited 2.1 s for 2` */
export function holdOf(hold: DrawnHold, now: number): string {
  const cause = waitCause(hold);
  if (hold.until === null) return `has waited ${cause} since ${formatClock(hold.since, now)}`;
  return `waited ${formatDuration(hold.until - hold.since)} ${cause}`;
}

/** The same with its outcome: `waited 2.1 s for 2: skipped` */
export function holdWords(hold: DrawnHold, { gaps, now }: Drawing): string {
  const { reason, from, to } = hold;
  const isSkipped =
    reason === "gap" && gaps.some((gap) => gap.skipped && gap.from <= (to ?? 0) && (from ?? 0) <= gap.to);
  return isSkipped ? `${holdOf(hold, now)}: skipped` : holdOf(hold, now);
}

export function waitCause(hold: Pick<DrawnHold, "reason" | "from" | "to">): string {
  const causes = { held_back: "for earlier events", turn: "in line", blocked: "behind a dead letter" };
  return hold.reason === "gap" ? `for ${rangeOf(hold)}` : causes[hold.reason];
}

/** Everything that the picture shows of an event. */
export function eventWords(event: DrawnEvent, { events, now }: Drawing): string {
  const { arrival, held } = event;
  const place = ["first", "second", "third"][arrival - 1] ?? `number ${arrival}`;
  return [
    `${event.sequence} ${event.eventType}`,
    `arrived ${formatClock(event.acceptedAt, now)} ${place} of ${events.length}`,
    ...marksOf(event),
    ...(held !== null && held.until !== null ? [holdOf(held, now)] : []),
    fateOf(event, now),
  ].join(", ");
}

export function marksOf(event: DrawnEvent): string[] {
  const { duplicates } = event;
  if (duplicates === 0) return flagsOf(event);
  return [`${duplicates} duplicate${duplicates === 1 ? "" : "s"}`, ...flagsOf(event)];
}

export function flagsOf({ conflict, late, replayed }: DrawnEvent): string[] {
  return Object.entries({ conflict, late, replayed }).flatMap(([flag, isSet]) => (isSet ? [flag] : []));
}
