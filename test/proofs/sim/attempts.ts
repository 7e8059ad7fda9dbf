/** Whether attempts went as the documentation says: each is recorded as its handler ended, and the next one comes in its time. */
import type { EventSummary, LaneRecord } from "../../../src/index.ts";
import { laneOf } from "../history.ts";
import { ASKED_MS } from "./handlers.ts";
import type { HandOut, World } from "./world.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** As docs/inbox.md lists them, and not as the code does: after each failed attempt, between half of the wait and all of it. */
const WAITS_MS = [
  ...[SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE],
  ...[HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 8 * HOUR],
];

/** How much later an attempt may come where nothing keeps it back. */
const PROMPT_MS = SECOND;

/** What a world knows of its attempts. */
export interface Attempts {
  readonly world: World;
  readonly events: readonly EventSummary[];
  readonly lanes: readonly LaneRecord[];
  /** What operators acted on, as the audit names it. */
  readonly acted: ReadonlySet<string>;
}

/** A failed attempt that the inbox recorded. */
interface Failure {
  readonly event: EventSummary;
  readonly lane: LaneRecord;
  readonly attempt: number;
  readonly at: number;
}

/** One that was recorded otherwise than its handler ended: the lease of another attempt was settled in its place. */
export function recordedOtherwise(attempts: Attempts): string[] {
  const { world, events, acted } = attempts;
  const { handlerTimeoutMs } = world.course.receiver;
  const failed = failuresIn(attempts).flatMap((failure) => {
    const handOuts = handOutsOf(world, failure.event, failure.attempt);
    const mayHaveFailed = handOuts.some(
      ({ ended }) => ended === null || !ended.isWell || ended.afterMs >= handlerTimeoutMs,
    );
    return mayHaveFailed ? [] : [`${nameOf(failure)} was recorded as failed, ${insteadOf(handOuts)}`];
  });
  const handled = events.flatMap((event) => {
    if (event.outcome !== "handled" || acted.has(`event ${event.id}`)) return [];
    const handOuts = handOutsOf(world, event, event.attempts);
    if (handOuts.some((one) => hadEnded(one, event, world))) return [];
    return [`${nameOf({ event, attempt: event.attempts })} was recorded as handled, ${insteadOf(handOuts)}`];
  });
  return [...failed, ...handled];
}

function hadEnded({ ended }: HandOut, { finishedAt }: EventSummary, { course: { jumps } }: World): boolean {
  return ended?.isWell === true && (jumps.length > 0 || ended.at <= Number(finishedAt));
}

function insteadOf(handOuts: readonly HandOut[]): string {
  if (handOuts.length === 0) return "and no handler saw it";
  return `and its handler ${handOuts.some(({ ended }) => ended !== null) ? "ended otherwise or later" : "had not ended"}`;
}

/** A number that two hand-outs of an event have, or none: then nothing bounds how often it is tried (I7). */
export function miscounted({ world }: Attempts): string[] {
  const seen = new Set<string>();
  return world.handOuts.flatMap(({ event, attempt, replay, lane, sequence }) => {
    const key = `${event} ${attempt}`;
    const isWrong = attempt < 1 || (seen.has(key) && !replay);
    if (!replay) seen.add(key);
    return isWrong ? [`${lane} ${sequence}: attempt ${attempt} was passed to a handler, and is not a new one`] : [];
  });
}

/** Attempts that came before their time, or after it though nothing kept them back. By a clock that jumps nothing can be said. */
export function mistimed(attempts: Attempts): string[] {
  const { world } = attempts;
  if (world.course.jumps.length > 0) return [];
  const mayWait = !isUndisturbed(attempts);
  return uninterrupted(attempts).flatMap(({ failure, next }) => {
    const [least, most] = waitAfter(world, failure);
    const waited = next.at - failure.at;
    const isLate = !mayWait && next.attempt === failure.attempt + 1 && waited > most + PROMPT_MS;
    if (waited >= least && !isLate) return [];
    const came = `${laneOf(failure.event)} ${failure.event.sequence}: attempt ${next.attempt} came`;
    return [
      `${came} ${waited / SECOND} s after the failure of attempt ${failure.attempt}, not within ${least / SECOND}–${most / SECOND} s`,
    ];
  });
}

/** How many failures were followed by an attempt whose time was looked at, with both bounds. */
export function timedRetries(attempts: Attempts): number {
  if (attempts.world.course.jumps.length > 0 || !isUndisturbed(attempts)) return 0;
  return uninterrupted(attempts).length;
}

/** Failures with the attempt that came next, where nothing between the two ended or lengthened the wait. */
function uninterrupted(attempts: Attempts): readonly { readonly failure: Failure; readonly next: HandOut }[] {
  return failuresIn(attempts).flatMap((failure) => {
    const next = nextOf(attempts.world, failure);
    return next === undefined || isInterrupted(attempts, failure, next) ? [] : [{ failure, next }];
  });
}

/** Whether operators acted on the lane or on an event in it. */
export function isActedOn({ acted }: Pick<Attempts, "acted">, lane: LaneRecord): boolean {
  return acted.has(`lane ${lane.id}`) || lane.events.some(({ id }) => acted.has(`event ${id}`));
}

/** Whether a failed event is claimed as soon as it is due: every process has its source and a handler for it, and nothing befalls any. */
function isUndisturbed({ world: { course }, lanes }: Attempts): boolean {
  const { mishaps, troubles, sources, receiver, rate, each } = course;
  if (rate !== null || each !== null) return false;
  return mishaps.length + troubles.length === 0 && sources.length === 1 && receiver.concurrency >= lanes.length;
}

/** What an operator does, or another event of the lane, ends a wait early or makes it longer. */
function isInterrupted(attempts: Attempts, { event, lane, at }: Failure, next: HandOut): boolean {
  const { world, events } = attempts;
  if (isActedOn(attempts, lane)) return true;
  const isBetween = (time: number) => at <= time && time <= next.at;
  const others = events.filter(({ laneId, id }) => laneId === lane.id && id !== event.id);
  const handed = new Set(others.map(({ id }) => id));
  return (
    others.some(({ acceptedAt }) => isBetween(acceptedAt)) ||
    world.handOuts.some((one) => handed.has(one.event) && isBetween(one.at))
  );
}

function waitAfter({ handOuts }: World, { event, attempt }: Failure): readonly [least: number, most: number] {
  const failed = handOuts.find((one) => one.event === event.id && one.attempt === attempt);
  const askedMs = failed === undefined ? undefined : ASKED_MS[failed.manner];
  if (askedMs !== undefined) return [askedMs, askedMs];
  const wait = WAITS_MS[attempt - 1] ?? Number.NaN;
  return [wait / 2, wait];
}

/** The attempt at the same event that came next, whether one was lost between the two or not. */
function nextOf({ handOuts }: World, { event, attempt }: Failure): HandOut | undefined {
  const later = handOuts.filter((one) => one.event === event.id && !one.replay && one.attempt > attempt);
  return later.toSorted((a, b) => a.attempt - b.attempt)[0];
}

function failuresIn({ events, lanes }: Attempts): readonly Failure[] {
  const byId = new Map(events.map((event) => [event.id, event]));
  return lanes.flatMap((lane) =>
    lane.attempts.flatMap(({ eventId, attempt, at }) => {
      const event = byId.get(eventId);
      return event === undefined ? [] : [{ event, lane, attempt, at }];
    }),
  );
}

function handOutsOf({ handOuts }: World, { id }: EventSummary, attempt: number): readonly HandOut[] {
  return handOuts.filter((one) => one.event === id && one.attempt === attempt);
}

function nameOf({ event, attempt }: Pick<Failure, "event" | "attempt">): string {
  return `${laneOf(event)} ${event.sequence}: attempt ${attempt}`;
}
