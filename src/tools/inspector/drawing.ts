/** The story of a lane, as the page draws it: what arrived when, what was handled when, and why something waited. Pure. */

import { gapBefore } from "../../inbox/gap.ts";
import { isShared, type LaneOrder } from "../../inbox/lane-key.ts";
import type {
  AttemptRecord,
  EventId,
  EventSummary,
  GapRecord,
  LaneRecord,
  QuarantineRecord,
  QuarantineSummary,
} from "../../inbox/record.ts";
import { type Bodies, type BodyView, bodyShape, eventShape, laneShape, quarantineShape } from "../../receiver/shown.ts";
import { isTerminal } from "../../sources/messaging/parse.ts";
import type {
  Drawing,
  DrawnEnd,
  DrawnEvent,
  DrawnGap,
  DrawnHold,
  LaneDetail,
  LaneEvent,
  QuarantineDetail,
  QuarantineShape,
} from "./api.ts";

/** @param now - epoch milliseconds; what is still in progress reaches to it */
export function drawLane(lane: LaneRecord, now: number): Drawing {
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
  // If the clock was set back, the picture must still begin before it ends.
  const first = moments[0] ?? now;
  return {
    from: moments.reduce((a, b) => Math.min(a, b), first),
    to: moments.reduce((a, b) => Math.max(a, b), first),
    now,
    order: scene.order,
    events,
    gaps: drawnGaps,
    end: endOf(lane),
  };
}

function drawEvent(scene: Scene, gaps: Gaps, event: EventSummary): Omit<DrawnEvent, "arrival" | "handling"> {
  const { id, eventType, state, outcome, forced, conflict, duplicates } = event;
  const sequence = scene.places?.get(event) ?? event.sequence;
  const { acceptedAt, startedAt, finishedAt } = event;
  const attempts = (scene.failures.get(id) ?? []).map(({ eventId: _, ...attempt }) => attempt);
  return {
    ...{ id, sequence, eventType, state, outcome, late: scene.late.has(event), replayed: forced, conflict, duplicates },
    ...{ acceptedAt, startedAt, finishedAt, held: holdOf(scene, gaps, event), attempts },
    // A replay counts its attempts from 1, but failures from before it are kept too.
    attemptCount: Math.max(event.attempts, attempts.length + (state === "done" && outcome !== "filtered" ? 1 : 0)),
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

/** Computed once per lane, before it is drawn. */
interface Scene {
  readonly lane: LaneRecord;
  readonly order: LaneOrder | null;
  /** Of a lane without numbers of its own: the place of each event, from 1. */
  readonly places: ReadonlyMap<EventSummary, number> | null;
  /** In the order of their arrival. */
  readonly arrivals: readonly EventSummary[];
  /** In the order of their first attempts. */
  readonly handOuts: readonly EventSummary[];
  /** The events that were below the cursor when they arrived, also after a replay. */
  readonly late: ReadonlySet<EventSummary>;
  /** Failed attempts by event, ascending. */
  readonly failures: ReadonlyMap<EventId, readonly AttemptRecord[]>;
}

function sceneOf(lane: LaneRecord): Scene {
  const { events, key } = lane;
  return {
    lane,
    order: key.order,
    places: isShared(key) ? new Map([...events].sort(bySequence).map((event, index) => [event, index + 1])) : null,
    arrivals: [...events].sort((a, b) => a.id - b.id),
    handOuts: events.filter(wasHandedOut).sort((a, b) => a.startedAt - b.startedAt || byTurn(a, b)),
    late: new Set(events.filter((event) => cameLate(lane, event))),
    failures: failuresOf(lane.attempts),
  };
}

function bySequence(a: EventSummary, b: EventSummary): number {
  return a.sequence - b.sequence || a.id - b.id;
}

/** The order in which waiting events are handled: late events last, the others by sequence. */
function byTurn(a: EventSummary, b: EventSummary): number {
  return Number(a.late) - Number(b.late) || bySequence(a, b);
}

/** When its wait ended; null while it waits. */
function waitedUntil({ startedAt, finishedAt }: EventSummary): number | null {
  return startedAt ?? finishedAt;
}

/** Pending, and never passed to a handler. */
function isWaiting({ state, startedAt }: EventSummary): boolean {
  return state === "pending" && startedAt === null;
}

function wasHandedOut(event: EventSummary): event is EventSummary & { readonly startedAt: number } {
  return event.startedAt !== null;
}

/** A replay removes the mark `late`. Then an event was late if a later one had started before it arrived. */
function cameLate(lane: LaneRecord, event: EventSummary): boolean {
  if (event.late || event.state === "late") return true;
  if (!event.forced || lane.key.order === null) return false;
  const { sequence, acceptedAt, startedAt } = event;
  return lane.events.some((other) => {
    if (other.sequence <= sequence || other.startedAt === null) return false;
    // An event that fills a gap is often accepted in the same millisecond in which the next one starts. Then it started first.
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

/** A missing event that arrived while a later event still waited for it. */
interface Filling {
  readonly event: EventSummary;
  /** When the first of the later events had arrived. */
  readonly since: number;
}

/** The gaps of a lane: filled in time, skipped, or still open. */
interface Gaps {
  readonly fillings: readonly Filling[];
  readonly skipped: readonly GapRecord[];
  readonly open: { readonly from: number; readonly to: number; readonly since: number } | null;
}

function gapsOf(scene: Scene): Gaps {
  if (scene.order !== "sequence") return { fillings: [], skipped: [], open: null };
  return { fillings: fillingsOf(scene), skipped: scene.lane.gaps, open: openGap(scene) };
}

/** Ascending. */
function drawGaps(scene: Scene, { fillings, skipped, open }: Gaps): readonly DrawnGap[] {
  const drawn = [...drawFilled(fillings), ...skipped.map((gap) => drawSkipped(scene, gap))];
  if (open !== null) drawn.push({ ...open, until: null, skipped: false, filledAt: null });
  return drawn.sort((a, b) => a.from - b.from || a.since - b.since);
}

/** Returns true if `event` waited for the missing events of the skipped `gap`: as the first after it, or behind that one. */
function waitedThrough(event: EventSummary, { to, skippedAt }: GapRecord): boolean {
  const until = waitedUntil(event);
  if (event.sequence <= to || (until !== null && until < skippedAt)) return false;
  // The next gap can begin in the same millisecond in which one is skipped.
  return event.sequence === to + 1 ? event.acceptedAt <= skippedAt : event.acceptedAt < skippedAt;
}

/** Returns true if `event` waited for `filling`. */
function waitedFor(event: EventSummary, filling: EventSummary): boolean {
  if (event.sequence <= filling.sequence || event.id > filling.id) return false;
  const until = waitedUntil(event);
  return until === null || until >= filling.acceptedAt;
}

function fillingsOf({ arrivals, late }: Scene): readonly Filling[] {
  const known = new Set<number>();
  const waiting: EventSummary[] = [];
  const fillings: Filling[] = [];
  for (const event of arrivals) {
    if (late.has(event)) continue;
    const first = known.has(event.sequence) ? undefined : waiting.find((other) => waitedFor(other, event));
    if (first !== undefined) fillings.push({ event, since: first.acceptedAt });
    known.add(event.sequence);
    if (event.outcome !== "filtered") waiting.push(event);
  }
  return fillings.sort((a, b) => a.event.sequence - b.event.sequence);
}

/** Consecutive missing events make one gap. */
function drawFilled(fillings: readonly Filling[]): DrawnGap[] {
  const drawn: DrawnGap[] = [];
  for (const { event, since: waitedSince } of fillings) {
    const last = drawn.at(-1);
    const joined = last?.to === event.sequence - 1 ? drawn.pop() : undefined;
    const since = Math.min(waitedSince, joined?.since ?? waitedSince);
    const until = Math.max(event.acceptedAt, joined?.until ?? since, since);
    drawn.push({
      from: joined?.from ?? event.sequence,
      to: event.sequence,
      since,
      until,
      skipped: false,
      filledAt: null,
    });
  }
  return drawn;
}

function drawSkipped({ arrivals, late }: Scene, gap: GapRecord): DrawnGap {
  const { from, to, skippedAt, filledAt } = gap;
  const first = arrivals.find((event) => !late.has(event) && waitedThrough(event, gap));
  return { from, to, since: first?.acceptedAt ?? skippedAt, until: skippedAt, skipped: true, filledAt };
}

/** The lane waits if it has a `gapSince`; the rule of the inbox says what for. */
function openGap({ lane, late }: Scene): Gaps["open"] {
  if (lane.gapSince === null) return null;
  const behind = lane.events.filter((event) => isWaiting(event) && !event.forced && !late.has(event)).sort(byTurn);
  const [head] = behind;
  if (head === undefined) return null;
  const missing = gapBefore(positionOf(lane, head), head);
  return (
    missing && { ...missing, since: behind.reduce((at, event) => Math.min(at, event.acceptedAt), head.acceptedAt) }
  );
}

/** A lane's record does not have the rules of its entry: the first sequence is taken as 1, unless a waiting event is below. */
function positionOf(lane: LaneRecord, head: EventSummary) {
  const settled = new Set(lane.events.filter(({ state }) => state !== "pending").map(({ sequence }) => sequence));
  return {
    order: "sequence" as const,
    cursor: lane.cursor,
    firstSequence: Math.min(1, head.sequence - 1),
    isSettled: (sequence: number) => settled.has(sequence),
  };
}

/** Why an event was not handled at once: what still holds it, otherwise what held it. */
function holdOf(scene: Scene, gaps: Gaps, event: EventSummary): DrawnHold | null {
  if (event.outcome === "filtered" || event.state === "late") return null;
  return presentHold(scene, gaps, event) ?? gapHold(scene, gaps, event) ?? turnHold(scene, event);
}

function presentHold({ lane, order, late }: Scene, { open }: Gaps, event: EventSummary): DrawnHold | null {
  if (!isWaiting(event)) return null;
  const since = event.acceptedAt;
  if (lane.status === "blocked") return { reason: "blocked", from: null, to: null, since, until: null };
  if (open !== null && open.to < event.sequence && !late.has(event))
    return { reason: "gap", from: open.from, to: open.to, since, until: null };
  if (lane.status === "gap" && order === "position")
    return { reason: "held_back", from: null, to: null, since, until: null };
  const isBehind = lane.status === "leased" || lane.status === "backoff";
  const hasBefore = lane.events.some((other) => other.state === "pending" && byTurn(other, event) < 0);
  return isBehind || hasBefore ? { reason: "turn", from: null, to: null, since, until: null } : null;
}

/** The sequences that were missing before it, until the last of them arrived or was skipped. */
function gapHold({ late }: Scene, { fillings, skipped }: Gaps, event: EventSummary): DrawnHold | null {
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

/** Waited for events that started before it, and were finished only after it had arrived. */
function turnHold(scene: Scene, event: EventSummary): DrawnHold | null {
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

/** A replay overwrites when an event had finished before. If it had failed, the time of its last failure remains. */
function endedBy({ failures }: Scene, { id, finishedAt }: EventSummary, by: number): number | null {
  if (finishedAt !== null && finishedAt <= by) return finishedAt;
  return failures.get(id)?.findLast(({ at }) => at <= by)?.at ?? null;
}

function endOf(lane: LaneRecord): DrawnEnd {
  const inTurn = [...lane.events].sort(byTurn);
  const newest = [...lane.events].sort(bySequence).at(-1);
  const dead = inTurn.filter(({ state }) => state === "dead");
  const pending = inTurn.find(({ state }) => state === "pending");
  const ending = inTurn.filter((event) => ends(lane, event));
  const reached = ending.findLast(({ state }) => state === "done" || state === "late");
  const failed = newest?.state === "dead" ? newest : reached === undefined ? ending.find(isDead) : undefined;
  if (lane.status === "blocked") return { state: "blocked", eventType: (dead.at(-1) ?? pending)?.eventType ?? null };
  if (pending !== undefined) return { state: "waiting", eventType: pending.eventType };
  if (failed !== undefined) return { state: "failed", eventType: failed.eventType };
  if (reached !== undefined) return { state: "ended", eventType: reached.eventType };
  return { state: "open", eventType: null };
}

/** A lane without order holds one event, and ends with it. Only a message has types that end it. */
function ends({ key: { order } }: LaneRecord, { eventType }: EventSummary): boolean {
  return order === null || (order === "sequence" && isTerminal(eventType));
}

function isDead({ state }: EventSummary): boolean {
  return state === "dead";
}

/** A lane as it is shown: masked unless it is revealed. */
export function shownLane(lane: LaneRecord, bodies: Bodies, now: number, view: BodyView): LaneDetail {
  const { gapSince: _, ...facts } = laneShape(lane, view.reveal);
  return {
    ...facts,
    events: lane.events.map((event) => shownEvent(event, bodies.get(event.id)?.raw ?? null, view)),
    drawing: drawLane(lane, now),
    revealed: view.reveal,
  };
}

function shownEvent(event: EventSummary, raw: Uint8Array | null, view: BodyView): LaneEvent {
  const { trace, digest } = event;
  return {
    ...eventShape(event, view.reveal),
    trace,
    digest: view.reveal ? Buffer.from(digest).toString("hex") : null,
    bytes: raw?.length ?? 0,
    body: bodyShape(raw, view),
  };
}

export function listedQuarantined(row: QuarantineSummary | QuarantineRecord): QuarantineShape {
  return { ...quarantineShape(row), digest: null };
}

export function shownQuarantined(row: QuarantineRecord, view: BodyView): QuarantineDetail {
  const shape = view.reveal ? quarantineShape(row) : listedQuarantined(row);
  return { ...shape, trace: row.trace, body: bodyShape(row.raw, view), revealed: view.reveal };
}
