/** Where everything in the drawing of a lane lies, in pixels. Pure: only from the facts. */
import type { Drawing, DrawnEvent, DrawnGap, DrawnHold } from "../api.ts";
import { formatClock, formatDuration } from "./format.ts";
import { flagsOf, waitCause } from "./story.ts";

/** Where the rows begin, and how high they are. */
export const ROWS = { axis: 36, mark: 100, bands: 128, band: 22, bar: 24, track: 32 };

/** Left of the first moment, and right of the last one. */
const LEFT = 52;
const RIGHT = 130;
const BETWEEN_TICKS = 10;
const BETWEEN_BARS = 10;
/** Left of the line for now, for that word. */
const NOW_ROOM = 20;
/** The width of a character, at most: of the words, and of the small texts at the axis. */
const CHARACTER = 7.7;
const SMALL_CHARACTER = 7;
/** How much distances in time may shrink or grow, so that the drawing fits its room. */
const LEAST_SCALE = 0.4;
const MOST_SCALE = 32;
const SCALE_STEPS = 12;

/** The handling of an event, or a part of it. */
export interface Bar extends Stretch {
  readonly x1: number;
  readonly x2: number;
}

/** An event in the drawing. */
export interface Story {
  readonly event: DrawnEvent;
  /** Of its type. */
  readonly name: string;
  readonly flags: string;
  /** Of its mark. */
  readonly x: number;
  /** Of its bars. */
  readonly y: number;
  readonly bars: readonly Bar[];
}

/** `room` is the width that there is: distances in time grow and shrink with it, within limits. */
export function layout(drawing: Drawing, room = 0) {
  const plan = planOf(drawing);
  const left = Math.max(LEFT, plan.arrivals[0]?.half ?? 0);
  const { xs, pauses, width } = placeInto(plan.points, room - left - RIGHT);
  const atPoint = (index: number) => left + (xs[index] ?? 0);
  const end = left + width;
  const bands = placedBands(plan, atPoint);
  const top = ROWS.bands + (1 + Math.max(1, ...bands.map(({ row }) => row + 1))) * ROWS.band;
  const stories = placedStories(plan, atPoint, top);
  const isOpen =
    drawing.events.some(({ state }) => state === "pending") || drawing.gaps.some(({ until }) => until === null);
  return {
    width: end + RIGHT,
    height: Math.max(top, ...stories.map(({ y }) => y)) + ROWS.track + 8,
    stories,
    bands: bands.map((band) => ({ ...band, y: ROWS.bands + band.row * ROWS.band })),
    pauses: pauses.map(({ x1, x2, ms }) => ({ x1: left + x1, x2: left + x2, ms })),
    ticks: ticksOf(
      plan.points.map((point, index) => ({ at: point.at, x: atPoint(index) })),
      drawing.now,
      isOpen ? end - NOW_ROOM : Infinity,
    ),
    now: isOpen ? end : null,
    end,
    top,
  };
}

type LayoutPlan = ReturnType<typeof planOf>;

/** What has a place in time. `p1` and `p2` are the numbers of points. */
function planOf(drawing: Drawing) {
  const points: Point[] = [];
  const point = (at: number, row?: string, room?: number) =>
    points.push({ at, ...(row !== undefined && { row }), ...(room !== undefined && { room }) }) - 1;
  point(drawing.from);
  point(drawing.to);
  let before = 0;
  const arrivals = drawing.events.map((event) => {
    const flags = flagsOf(event).join(", ");
    const name = shortened(event.eventType.replace(/^message\./, ""));
    const half = Math.max(44, 4 + (Math.max(name.length, flags.length) * CHARACTER) / 2);
    const arrival = { event, name, flags, half, point: point(event.acceptedAt, "arrival", before + half) };
    before = Math.max(half, halfOf(event) + repeatsOf(event).length * CHARACTER + BETWEEN_BARS);
    return arrival;
  });
  const bars = drawing.events
    .flatMap((event) => stretchesOf(event, drawing.now).map((stretch) => ({ ...stretch, event })))
    .sort((a, b) => a.from - b.from || (a.event.handling ?? Infinity) - (b.event.handling ?? Infinity))
    .map((bar) => ({
      ...bar,
      p1: point(bar.from, "bar", BETWEEN_BARS),
      p2: point(bar.to, "bar", 30 + bar.text.length * CHARACTER),
    }));
  const bands = bandsOf(drawing).map((band, index) => ({
    ...band,
    p1: point(band.since, `band ${index}`),
    p2: point(band.until ?? drawing.to, `band ${index}`, 16 + band.text.length * CHARACTER),
  }));
  return { points, arrivals, bars, bands };
}

/** Half the width of an event's mark. */
export function halfOf({ sequence }: DrawnEvent): number {
  return `${sequence}`.length * 4 + 9;
}

/** `×2` for an event that came twice. */
export function repeatsOf({ duplicates }: DrawnEvent): string {
  return duplicates > 0 ? `×${duplicates + 1}` : "";
}

function placedBands({ bands }: LayoutPlan, atPoint: (index: number) => number) {
  return inRows(
    bands.map((band) => {
      const [x1, x2] = [atPoint(band.p1), atPoint(band.p2)];
      return { ...band, x1, x2, left: x1, right: x2 + BETWEEN_BARS };
    }),
  );
}

function placedStories({ arrivals, bars }: LayoutPlan, atPoint: (index: number) => number, top: number): Story[] {
  const spans = arrivals.map(({ event, name, flags, point }) => {
    const own = bars
      .filter((bar) => bar.event === event)
      .map((bar) => ({ ...bar, x1: atPoint(bar.p1), x2: atPoint(bar.p2) }));
    return { event, name, flags, x: atPoint(point), bars: own, left: own[0]?.x1 ?? 0, right: own.at(-1)?.x2 ?? 0 };
  });
  return inRows(spans)
    .map((story) => ({ ...story, y: top + story.row * ROWS.track }))
    .sort((a, b) => a.event.arrival - b.event.arrival);
}

/** Puts each span into the first row that has room for it. */
function inRows<T extends { readonly left: number; readonly right: number }>(spans: T[]): (T & { row: number })[] {
  const ends: number[] = [];
  return spans
    .sort((a, b) => a.left - b.left)
    .map((span) => {
      const free = ends.findIndex((end) => end <= span.left);
      const row = free < 0 ? ends.length : free;
      ends[row] = span.right;
      return { ...span, row };
    });
}

interface Tick {
  readonly x: number;
  readonly text: string;
}

/** As many of the moments as the axis has room for, up to `limit`. One in the second of the tick before it says how much later it was. */
function ticksOf(moments: { x: number; at: number }[], now: number, limit: number): Tick[] {
  const ticks: Tick[] = [];
  let right = -Infinity;
  let last = -Infinity;
  for (const { x, at } of moments.sort((a, b) => a.x - b.x)) {
    const clock = formatClock(at, now);
    const text = ticks.length > 0 && formatClock(last, now) === clock ? `+${formatDuration(at - last)}` : clock;
    const half = (text.length * SMALL_CHARACTER) / 2;
    if (at <= last || x - half < right + BETWEEN_TICKS || x + half > limit) continue;
    ticks.push({ x, text });
    right = x + half;
    last = at;
  }
  return ticks;
}

/** A longer pause says how long it was. */
export const PAUSE_MS = 5_000;

export interface Point {
  readonly at: number;
  readonly row?: string;
  /** The least distance from the point before it in its row. */
  readonly room?: number;
}

/** As wide as `room`, if distances in time can shrink or grow to it. */
function placeInto(points: readonly Point[], room: number) {
  let placed = place(points, LEAST_SCALE);
  if (placed.width > room) return placed;
  let [low, high] = [LEAST_SCALE, MOST_SCALE];
  for (let step = 0; step < SCALE_STEPS; step++) {
    const scale = (low + high) / 2;
    const other = place(points, scale);
    if (other.width > room) high = scale;
    else [low, placed] = [scale, other];
  }
  return placed;
}

/**
 * Time as a distance, so that milliseconds and minutes fit into one picture. A later moment lies to the right of everything of an earlier
 * one. Points of one moment begin at one place, unless one needs room after another of its row. `xs` goes from 0 to `width`.
 */
export function place(points: readonly Point[], scale = 1) {
  const xs = points.map(() => 0);
  const pauses: { x1: number; x2: number; ms: number }[] = [];
  const lastInRow = new Map<string, number>();
  const roomFor = ({ row = "", room = 0 }: Point) => (lastInRow.get(row) ?? -room) + room;
  let width = 0;
  let last: number | null = null;
  for (const moment of momentsOf(points)) {
    const { at, first, all } = moment;
    const ms = last === null ? 0 : at - last;
    const begin = last === null ? 0 : width + distanceOf(ms, scale);
    const base = Math.max(begin, ...first.map(roomFor));
    if (ms >= PAUSE_MS) pauses.push({ x1: width, x2: base, ms });
    for (const [index, point] of all) {
      const x = Math.max(base, roomFor(point));
      lastInRow.set(point.row ?? "", x);
      xs[index] = x;
      width = Math.max(width, x);
    }
    last = at;
  }
  return { xs, pauses, width };
}

interface Moment {
  readonly at: number;
  /** The first point of each row. */
  readonly first: Point[];
  readonly all: (readonly [index: number, point: Point])[];
}

/** Ascending; the points of each in their order. */
function momentsOf(points: readonly Point[]): Moment[] {
  const moments: Moment[] = [];
  for (const [index, point] of [...points.entries()].sort(([, a], [, b]) => a.at - b.at)) {
    const known = moments.at(-1);
    const moment = known?.at === point.at ? known : { at: point.at, first: [], all: [] };
    if (moment !== known) moments.push(moment);
    if (!moment.first.some(({ row }) => row === point.row)) moment.first.push(point);
    moment.all.push([index, point]);
  }
  return moments;
}

/** Between two moments: 9 px for a millisecond, 67 px for 5 s, 130 px for an hour. A pause has room for its length. */
function distanceOf(ms: number, scale: number): number {
  const distance = (8 + 22 * Math.log10(1 + ms / 10)) * scale;
  return ms < PAUSE_MS ? distance : Math.max(distance, 8 + pauseText(ms).length * SMALL_CHARACTER);
}

export function pauseText(ms: number): string {
  return `⋯ ${formatDuration(ms)}`;
}

interface Stretch {
  /** How it ended: makes its colour and shape. */
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly word: string;
  /** The same, after the event's sequence if it has one. */
  readonly text: string;
}

const STRETCH_WORDS: Readonly<Record<string, string>> = { late: "recorded", dead: "dead letter" };

function shortened(text: string): string {
  return text.length > 13 ? `${text.slice(0, 12)}…` : text;
}

/** The handling of one event, attempt by attempt, in order. None begins before the event was passed to the handler. */
function stretchesOf(event: DrawnEvent, now: number): Stretch[] {
  const { sequence, state, outcome, replayed, startedAt, finishedAt, attempts } = event;
  const stretch = (kind: string, from: number, to: number, word = STRETCH_WORDS[kind] ?? kind): Stretch => ({
    kind,
    from,
    to,
    word,
    text: `${sequence || ""} ${shortened(word)}`.trim(),
  });
  const all = attempts.map(({ at, durationMs, errorCode }, index) => {
    const from = Math.min(at, Math.max(startedAt ?? at, at - durationMs));
    const isLast = state === "dead" && index === attempts.length - 1;
    return isLast ? stretch("dead", from, at) : stretch("failed", from, at, errorCode);
  });
  // A replayed event keeps the time of its first attempt, but not how that went.
  if (replayed && startedAt !== null && startedAt < (all[0]?.from ?? finishedAt ?? now))
    all.unshift(stretch("before", startedAt, startedAt, "started"));
  const from = all.length > 0 ? null : startedAt;
  if (finishedAt === null) {
    if (from !== null) all.push(stretch("open", from, now, "in progress"));
    else if (all.length > 0) all.push(stretch("open", now, now, "next attempt"));
  } else if (all.at(-1)?.kind !== "dead") {
    all.push(stretch(outcome ?? state, from ?? finishedAt, finishedAt));
  }
  return all;
}

/** Why events waited, and for how long. */
interface Band {
  readonly kind: string;
  readonly since: number;
  readonly until: number | null;
  readonly text: string;
}

/** The waits of several events for one cause are merged into one. */
interface Wait {
  readonly reason: DrawnHold["reason"];
  readonly since: number;
  from: number;
  to: number;
  end: number;
  readonly sequences: number[];
  gap: DrawnGap | null;
}

/** A shorter wait for another event of the lane is not worth a band. */
const SHORTEST_TURN_MS = 1_000;

function bandsOf({ events, gaps, now }: Drawing): Band[] {
  const waits = [
    ...events.flatMap(({ sequence, held }) => (held ? [waitOf(held, held.reason, [sequence], null)] : [])),
    ...gaps.map((gap) => waitOf(gap, "gap", [], gap)),
  ].filter(({ reason, since, end }) => reason !== "turn" || Math.min(end, now) - since >= SHORTEST_TURN_MS);
  const merged: Wait[] = [];
  for (const wait of waits.sort((a, b) => a.since - b.since)) {
    const other = merged.find((one) => isSame(wait, one));
    if (other === undefined) merged.push(wait);
    else merge(other, wait);
  }
  return merged.map(bandOf);
}

function waitOf(
  { from, to, since, until }: Pick<DrawnHold, "from" | "to" | "since" | "until">,
  reason: DrawnHold["reason"],
  sequences: number[],
  gap: DrawnGap | null,
): Wait {
  return { reason, since, from: from ?? 0, to: to ?? 0, end: until ?? Infinity, sequences, gap };
}

function isSame(a: Wait, b: Wait): boolean {
  return a.reason === b.reason && a.from <= b.to && b.from <= a.to && a.since <= b.end;
}

function merge(into: Wait, wait: Wait): void {
  into.from = Math.min(into.from, wait.from);
  into.to = Math.max(into.to, wait.to);
  into.end = Math.max(into.end, wait.end);
  into.sequences.push(...wait.sequences);
  // If one gap of several was skipped, the band says so.
  if (into.gap === null || wait.gap?.skipped) into.gap = wait.gap;
}

function bandOf({ reason, from, to, since, end, sequences, gap }: Wait): Band {
  const until = end === Infinity ? null : end;
  const names = sequences.length > 3 ? `${sequences.length} events` : sequences.join(", ");
  const verb = sequences.length > 1 ? "wait" : "waits";
  const waited = until === null ? verb : `waited ${formatDuration(until - since)}`;
  const text = `${names} ${waited} ${waitCause({ reason, from, to })}`;
  if (until === null) return { kind: "open", since, until, text };
  if (gap?.skipped) return { kind: "skipped", since, until, text: `${text}: skipped` };
  return { kind: reason, since, until, text };
}
