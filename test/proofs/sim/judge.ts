/** What became of a world: the history checker's verdict, and what only a world that stands still at its end can show. */
import type { EventSummary, LaneRecord } from "../../../src/index.ts";
import { breachesOf, breachLines, type History, laneOf, type StoredEvent, storedEventOf } from "../history.ts";
import { type Attempts, isActedOn, miscounted, mistimed, recordedOtherwise } from "./attempts.ts";
import { markerIn } from "./handlers.ts";
import type { HandOut, World } from "./world.ts";

/** The service retries for no longer (docs/inbox.md). */
const LAST_RETRY_MS = 85 * 60_000;
/** What a `PermanentError` is recorded as. */
const GIVEN_UP = "permanent_failure";

/** What became of a world's attempts. */
export async function attemptsIn(world: World): Promise<Attempts> {
  const events = await world.events();
  const lanes = await Promise.all(
    [...new Set(events.map(({ laneId }) => laneId))].map((id) => world.observer.lane(id)),
  );
  const audit = await world.observer.audit(1_000);
  const acted = new Set(audit.map(({ detail }) => detail));
  return { world, events, lanes: lanes.filter((lane) => lane !== null), acted };
}

/** Lines for what must not be; none is what is hoped for. */
export async function problemsOf(attempts: Attempts): Promise<string[]> {
  const { world, events, lanes, acted } = attempts;
  const audit = await world.observer.audit(1_000);
  const replayed = audit.flatMap(({ act, detail }) => (act === "replay" ? [detail] : []));
  return [
    ...breachLines(breachesOf(await historyOf(world, events, replayed))),
    ...world.service.strange.map((answer) => `answered ${answer}`),
    ...world.wrong,
    ...world.said.wrong,
    ...(world.isStuck ? ["stuck: something waits, and nothing comes, or it is tried without an end"] : []),
    ...(await misgauged(world, events)),
    ...unhandled(events),
    ...overtried(world, events),
    ...untried(world, events),
    ...triedAfterTheEnd(lanes, events, new Set(replayed)),
    ...miscounted(attempts),
    ...recordedOtherwise(attempts),
    ...mistimed(attempts),
    ...handOutsDown(world),
    ...(isCalm(world) ? world.overlaps : []),
    ...(isCalm(world) ? descents(inOrder(world.handOuts)) : []),
    ...wronglyLate(world, events, acted),
    ...passedTooEarly(world, events, acted),
    ...wronglyOutOfOrder(world, events),
    ...skippedTooEarly(attempts),
    ...startedTooFast(world),
    ...waitedForFiltered(attempts),
  ];
}

async function historyOf(world: World, events: readonly EventSummary[], replayed: readonly string[]): Promise<History> {
  const { service, place, observer, isStuck } = world;
  const identities = new Map(events.map((event) => [event.id, storedEventOf(event).identity]));
  const quarantined = await observer.findQuarantined({ limit: 1_000 });
  const ids = events.map(({ id }) => id);
  const bodies = await observer.bodies(ids, Number.MAX_SAFE_INTEGER);
  return {
    sent: service.sent,
    forged: service.forged,
    acknowledged: service.acknowledged,
    replayed: replayed.map((detail) => identities.get(Number(detail.replace("event ", ""))) ?? detail),
    effects: await place.effects(),
    stored: [
      ...events.map(
        (event): StoredEvent => ({ ...storedEventOf(event), marker: markerIn(bodies.get(event.id)?.raw ?? null) }),
      ),
      ...quarantined.items.map(({ digest }) => ({
        ...{ identity: Buffer.from(digest).toString("hex"), lane: "", sequence: 0 },
        ...{ state: "quarantined", attempts: 0 },
      })),
    ],
    moment: isStuck ? "running" : "ended",
    ...{ everyHandlerWrites: true, withoutEffect: world.withoutEffect },
  };
}

/** Kept counters that disagree with the rows. */
async function misgauged({ observer }: World, events: readonly EventSummary[]): Promise<string[]> {
  const { gauges, counters } = await observer.stats();
  const count = (state: EventSummary["state"]) => events.filter((event) => event.state === state).length;
  const facts = [
    ["pending", gauges.pending, count("pending")],
    ["dead", gauges.dead, count("dead")],
    ["accepted", counters.accepted, events.length],
    ["filtered", counters.filtered, events.filter(isFiltered).length],
  ] as const;
  return facts.flatMap(([name, kept, counted]) =>
    kept === counted ? [] : [`the inbox keeps ${kept} ${name} and has ${counted}`],
  );
}

function nameOf(event: EventSummary): string {
  return `${laneOf(event)} ${event.sequence}`;
}

function isFiltered({ outcome }: EventSummary): boolean {
  return outcome === "filtered";
}

/** Every event has a handler here, in a process that has its source. */
function unhandled(events: readonly EventSummary[]): string[] {
  return events
    .filter(({ outcome }) => outcome === "unhandled")
    .map((event) => `${nameOf(event)} was recorded as unhandled`);
}

/** An attempt that no handler saw: who lacks an event's source leaves it as it is. A process that ends in a claim has used an attempt. */
function untried({ course, handOuts }: World, events: readonly EventSummary[]): string[] {
  if (course.mishaps.length + course.jumps.length + course.troubles.length > 0) return [];
  const handedOut = (id: number) => handOuts.filter(({ event }) => event === id).length;
  return events
    .filter(({ id, attempts }) => attempts > handedOut(id))
    .map((event) => `${nameOf(event)} has ${event.attempts} attempts and ${handedOut(event.id)} hand-outs`);
}

/** An attempt too many (I7). */
function overtried({ course }: World, events: readonly EventSummary[]): string[] {
  const { maxAttempts } = course.receiver;
  return events
    .filter(({ attempts }) => attempts > maxAttempts)
    .map((event) => `${nameOf(event)} was tried ${event.attempts} times of ${maxAttempts}`);
}

/** A dead letter that was handed out again, and no operator had asked for it (I7). */
function triedAfterTheEnd(
  lanes: readonly LaneRecord[],
  events: readonly EventSummary[],
  replayed: ReadonlySet<string>,
): string[] {
  const ends = lanes.flatMap(({ attempts }) => attempts.filter(({ errorCode }) => errorCode === GIVEN_UP));
  return ends.flatMap(({ eventId, attempt }) => {
    const event = events.find(({ id }) => id === eventId);
    if (event === undefined || event.attempts <= attempt || replayed.has(`event ${eventId}`)) return [];
    return [`${nameOf(event)} was tried again after its attempt ${attempt} had given it up`];
  });
}

/**
 * Who stood still, or whose clock or store was wrong, may start a handler whose lease has passed on: what it then does takes no effect, and
 * the history tells.
 */
function isCalm({ course: { mishaps, jumps, troubles } }: World): boolean {
  return mishaps.every(({ kind }) => kind !== "stands still") && jumps.length + troubles.length === 0;
}

/** Hand-outs that went down without a flag (I4). */
function handOutsDown(world: World): string[] {
  if (!isCalm(world)) return [];
  const highest = new Map<string, number>();
  const problems: string[] = [];
  for (const { lane, sequence, flagged } of world.handOuts) {
    if (flagged) continue;
    if (sequence < (highest.get(lane) ?? 0))
      problems.push(`${lane} ${sequence} was handed out after ${highest.get(lane)}`);
    highest.set(lane, sequence);
  }
  return problems;
}

/** Those in the order of their lane, of a position or by arrival. */
function inOrder(handOuts: readonly HandOut[]): HandOut[] {
  return handOuts.filter(
    ({ order, handler, replay }) => (order === "position" || order === "arrival") && handler === "on" && !replay,
  );
}

/** What reached `on` after one of a higher position, or of the same one and accepted later. In a lane by arrival all have one position. */
function descents(handOuts: readonly HandOut[]): string[] {
  const last = new Map<string, HandOut>();
  return handOuts.flatMap((handOut) => {
    const { lane, position, event } = handOut;
    const before = last.get(lane) ?? handOut;
    const isBehind = position > before.position || (position === before.position && event >= before.event);
    if (isBehind) last.set(lane, handOut);
    return isBehind
      ? []
      : [`${lane}: event ${event} of position ${position} was passed to its handler after ${whereabouts(before)}`];
  });
}

const whereabouts = ({ event, position }: HandOut) => `event ${event} of ${position}`;

/** What reached `onLate` by its position, though none of a higher one had been passed to a handler. One that ended otherwise may have been claimed. */
function wronglyLate({ handOuts }: World, events: readonly EventSummary[], acted: ReadonlySet<string>): string[] {
  const handed = new Set(handOuts.map(({ event }) => event));
  return handOuts.flatMap(({ order, handler, replay, lane, position, event }, index) => {
    if (order !== "position" || handler !== "late" || replay) return [];
    const isPassed = handOuts.slice(0, index).some((before) => before.lane === lane && before.position > position);
    const mayBeClaimed = events.some(
      (one) => one.lane.name === lane && (acted.has(`event ${one.id}`) || !(handed.has(one.id) || isFiltered(one))),
    );
    return isPassed || mayBeClaimed
      ? []
      : [`${lane}: event ${event} of position ${position} is the highest yet, and reached onLate`];
  });
}

/** `ctx.outOfOrder` where the inbox has no higher sequence that could have been handled before. */
function wronglyOutOfOrder({ handOuts }: World, events: readonly EventSummary[]): string[] {
  const byId = new Map(events.map((event) => [event.id, event]));
  return handOuts.flatMap(({ event: id, outOfOrder, lane, sequence }) => {
    const own = byId.get(id);
    if (!outOfOrder || own === undefined) return [];
    const isBehind = events.some((other) => other.laneId === own.laneId && other.sequence > own.sequence);
    return isBehind ? [] : [`${lane} ${sequence} is the highest of its lane, and was passed on as out of order`];
  });
}

/** What was passed to its handler ahead of a missing sequence, before anything of its lane had waited for that (I6). */
function skippedTooEarly(attempts: Attempts): string[] {
  const { world, events, lanes } = attempts;
  const { mishaps, troubles, jumps, receiver } = world.course;
  const { gapWait, firstSequence } = receiver;
  if (typeof gapWait !== "function" || firstSequence === "any") return [];
  if (mishaps.length + troubles.length + jumps.length > 0) return [];
  const waitMs = Number((gapWait as () => number)());
  return lanes.flatMap((lane) => {
    if (lane.key.order !== "sequence" || isActedOn(attempts, lane)) return [];
    let next: number = firstSequence;
    return world.handOuts.flatMap(({ event: id, flagged, sequence, at }) => {
      const own = events.find((event) => event.id === id);
      if (own?.laneId !== lane.id || flagged || sequence < next) return [];
      const there = lane.events.filter(({ acceptedAt }) => acceptedAt <= at).map((event) => event.sequence);
      const missing = range(next, sequence).filter((one) => !there.includes(one));
      const waiting = lane.events.filter((event) => event.sequence >= next).map(({ acceptedAt }) => acceptedAt);
      next = sequence + 1;
      const dueAt = Math.min(Math.min(...waiting) + waitMs, own.occurredAt + LAST_RETRY_MS);
      return missing.length === 0 || at >= dueAt
        ? []
        : [`${lane.key.name} ${sequence} was passed on ${(dueAt - at) / 1_000} s before the wait for ${missing} ended`];
    });
  });
}

/** A gap that begins with a filtered event, though that had come before the gap was skipped. */
function waitedForFiltered({ world, lanes }: Attempts): string[] {
  if (world.course.jumps.length > 0) return [];
  return lanes.flatMap(({ key, events, gaps }) =>
    gaps.flatMap(({ from, skippedAt }) => {
      const isHere = events.some((one) => one.sequence === from && isFiltered(one) && one.acceptedAt < skippedAt);
      return isHere ? [`${key.name}: ${from} was waited for, and had been filtered`] : [];
    }),
  );
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
}

/** What was held back, and passed to its handler before any event of its lane had waited so long. */
function passedTooEarly(
  { course, handOuts }: World,
  events: readonly EventSummary[],
  acted: ReadonlySet<string>,
): string[] {
  const { holdBackMs, jumps } = course;
  if (holdBackMs === 0 || jumps.length > 0) return [];
  const passed = new Set<number>();
  return inOrder(handOuts).flatMap(({ order, lane, event, at }) => {
    const isFirst = !passed.has(event);
    const inLane = events.filter((other) => other.lane.name === lane && !isFiltered(other));
    const waiting = inLane.filter(({ id }) => !passed.has(id));
    passed.add(event);
    if (order !== "position" || !isFirst || waiting.some(({ acceptedAt }) => acceptedAt + holdBackMs <= at)) return [];
    const isReleased = waiting.some(({ id, laneId }) => acted.has(`event ${id}`) || acted.has(`lane ${laneId}`));
    return isReleased ? [] : [`${lane}: event ${event} was not held back`];
  });
}

/** A start that was reserved may be used so much later, and is then closer to the next one. */
const LATE_START_MS = 500;
/** A process that stands still, or a clock that is set, may use as much of a rate once more. */
const ONCE_MORE_MS = 1_000;

/** More starts of a key within some time than its rate allows. */
function startedTooFast({ course: { rate }, handOuts, befell }: World): string[] {
  if (rate === null) return [];
  const disturbances = befell["stands still"] + befell["is set"];
  const allowed = (ms: number) =>
    1 + (rate.perSecond * (ms + LATE_START_MS)) / 1_000 + disturbances * (2 + (rate.perSecond * ONCE_MORE_MS) / 1_000);
  return [...startsByKey(handOuts)].flatMap(([key, times]) => {
    const wrong = times.flatMap((to, index) =>
      times.slice(0, index).filter((from, before) => index - before + 1 > allowed(to - from)),
    );
    return wrong.length === 0
      ? []
      : [`${rate.perSecond} a second of ${rate.per} "${key}" were exceeded ${wrong.length} times`];
  });
}

/** The last events of a backlog are no longer enough to use all of a rate. */
const BACKLOG_SHARE = 0.9;

/** How well a rate was kept by a backlog, and whether keys were treated alike. @param tolerance - 0.01 for 1 % */
export function rateProblems({ course: { rate }, handOuts }: World, keys: number, tolerance: number): string[] {
  if (rate === null) return ["no rate was set"];
  return [...startsByKey(handOuts)].flatMap(([key, times]) => {
    const last = Math.floor(times.length * BACKLOG_SHARE);
    const perSecond = last / (((times[last] ?? 0) - (times[0] ?? 0)) / 1_000);
    const isKept = Math.abs(perSecond / rate.perSecond - 1) <= tolerance && times.length === handOuts.length / keys;
    return isKept ? [] : [`"${key}": ${times.length} at ${perSecond} a second instead of ${rate.perSecond}`];
  });
}

/** Ascending. */
function startsByKey(handOuts: readonly HandOut[]): ReadonlyMap<string, readonly number[]> {
  const starts = new Map<string, number[]>();
  for (const { rateKey, startedAt } of handOuts) starts.set(rateKey, [...(starts.get(rateKey) ?? []), startedAt]);
  for (const times of starts.values()) times.sort((a, b) => a - b);
  return starts;
}
