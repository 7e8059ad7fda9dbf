/** Where everything in the drawing of a message lies, in pixels. Pure: only from the facts. */
import type { Drawing, DrawnEvent, DrawnGap, DrawnHold } from "../api.ts";
import { formatDuration } from "./format.ts";
import { flagsOf, waitCause } from "./story.ts";

/** Where the rows begin, and how high they are. */
export const ROWS = { axis: 36, mark: 100, bands: 128, band: 22, bar: 24, track: 32 };

/** Left of the first moment, and right of the last one. */
const LEFT = 52;
const RIGHT = 130;
/** The least distance between two times on the axis. */
const BETWEEN_TICKS = 76;
const BETWEEN_BARS = 10;
/** The width of a character, at most. */
const CHARACTER = 7.7;
const MOST_STRETCH = 2.5;

/** The handling of an event, or a part of it. */
export interface Bar extends Stretch {
  readonly x1: number;
  readonly x2: number;
}

/** An event in the drawing. */
export interface Story {
  readonly event: DrawnEvent;
  readonly flags: string;
  /** Of its mark. */
  readonly x: number;
  /** Of its bars. */
  readonly y: number;
  readonly bars: readonly Bar[];
}

/** `room` is the width without scrolling: the drawing is stretched to it, within limits. */
export function layout(drawing: Drawing, room = 0) {
  const plan = planOf(drawing);
  const { xs, pauses, width } = place(plan.points);
  const stretch = Math.min(MOST_STRETCH, Math.max(1, (room - LEFT - RIGHT) / Math.max(1, width)));
  const at = (x: number) => LEFT + x * stretch;
  const atPoint = (index: number) => at(xs[index] ?? 0);
  const end = at(width);
  const whole = Math.max(end + RIGHT, ...plan.bands.map(({ text }) => text.length * CHARACTER));
  const bands = placedBands(plan, atPoint, whole);
  const top = ROWS.bands + (1 + Math.max(1, ...bands.map(({ row }) => row + 1))) * ROWS.band;
  const stories = placedStories(plan, atPoint, top);
  const isOpen =
    drawing.events.some(({ state }) => state === "pending") || drawing.gaps.some(({ until }) => until === null);
  return {
    width: whole,
    height: Math.max(top, ...stories.map(({ y }) => y)) + ROWS.track + 8,
    stories,
    bands: bands.map((band) => ({ ...band, y: ROWS.bands + band.row * ROWS.band })),
    pauses: pauses.map(({ x1, x2, ms }) => ({ x1: at(x1), x2: at(x2), ms })),
    ticks: ticksOf(plan.points.map((point, index) => ({ at: point.at, x: atPoint(index) }))),
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
  let halfBefore = 0;
  const arrivals = drawing.events.map((event) => {
    const flags = flagsOf(event).join(", ");
    const half = Math.max(44, (flags.length * CHARACTER) / 2);
    const arrival = { event, flags, point: point(event.acceptedAt, "arrival", halfBefore + half) };
    halfBefore = half;
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
  const bands = bandsOf(drawing).map((band) => ({
    ...band,
    p1: point(band.since),
    p2: point(band.until ?? drawing.to),
  }));
  return { points, arrivals, bars, bands };
}

/** A band's words begin in it, unless they would leave the drawing. */
function placedBands({ bands }: LayoutPlan, atPoint: (index: number) => number, whole: number) {
  const spans = bands.map((band) => {
    const x1 = atPoint(band.p1);
    const x2 = atPoint(band.p2);
    const words = band.text.length * CHARACTER;
    const textX = Math.max(0, Math.min(x1 + 8, whole - words));
    return { ...band, x1, x2, textX, left: Math.min(x1, textX), right: Math.max(x2, textX + words) + BETWEEN_BARS };
  });
  return inRows(spans);
}

function placedStories({ arrivals, bars }: LayoutPlan, atPoint: (index: number) => number, top: number): Story[] {
  const spans = arrivals.map(({ event, flags, point }) => {
    const own = bars
      .filter((bar) => bar.event === event)
      .map((bar) => ({ ...bar, x1: atPoint(bar.p1), x2: atPoint(bar.p2) }));
    return { event, flags, x: atPoint(point), bars: own, left: own[0]?.x1 ?? 0, right: own.at(-1)?.x2 ?? 0 };
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

/** As many of the moments as the axis has room for. */
function ticksOf(moments: { x: number; at: number }[]) {
  let last = { x: -BETWEEN_TICKS, at: -Infinity };
  return moments
    .sort((a, b) => a.x - b.x)
    .filter((moment) => {
      const hasRoom = moment.at > last.at && moment.x - last.x >= BETWEEN_TICKS;
      if (hasRoom) last = moment;
      return hasRoom;
    });
}

/** A longer pause says how long it was. */
export const PAUSE_MS = 5_000;

export interface Point {
  readonly at: number;
  readonly row?: string;
  /** The least distance from the point before it in its row. */
  readonly room?: number;
}

/**
 * Time as a distance, so that milliseconds and minutes fit into one picture. A later moment lies to the right of everything of an earlier
 * one; points of one moment and row keep their order. The result `xs` goes from 0 to `width`.
 */
export function place(points: readonly Point[]) {
  const xs = points.map(() => 0);
  const pauses: { x1: number; x2: number; ms: number }[] = [];
  const lastInRow: Record<string, number> = {};
  const order = points.map((point, index) => ({ ...point, index })).sort((a, b) => a.at - b.at);
  let width = 0;
  let base = 0;
  let moment = order[0]?.at ?? 0;
  for (const { at, row = "", room, index } of order) {
    const ms = at - moment;
    if (ms > 0) {
      base = width + distanceOf(ms);
      if (ms >= PAUSE_MS) pauses.push({ x1: width, x2: base, ms });
      moment = at;
    }
    const x = room === undefined ? base : Math.max(base, (lastInRow[row] ?? -room) + room);
    lastInRow[row] = x;
    xs[index] = x;
    width = Math.max(width, x);
  }
  return { xs, pauses, width };
}

/** Between two moments: 9 px for a millisecond, 67 px for 5 s, 130 px for an hour. */
function distanceOf(ms: number): number {
  return 8 + 22 * Math.log10(1 + ms / 10);
}

interface Stretch {
  /** How it ended: makes its colour and shape. */
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

const STRETCH_WORDS: Readonly<Record<string, string>> = { late: "recorded", dead: "dead letter" };

export function shortened(text: string): string {
  return text.length > 13 ? `${text.slice(0, 12)}…` : text;
}

/** The handling of one event, attempt by attempt, in order. None begins before the event was passed to the handler. */
function stretchesOf(event: DrawnEvent, now: number): Stretch[] {
  const { sequence, state, outcome, replayed, startedAt, finishedAt, attempts } = event;
  const stretch = (kind: string, from: number, to: number, word = STRETCH_WORDS[kind] ?? kind): Stretch => ({
    kind,
    from,
    to,
    text: `${sequence} ${shortened(word)}`,
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
    else if (all.length > 0) all.push(stretch("open", now, now, "tried again"));
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

/** A shorter wait for another event of the message is not worth a band. */
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
  if (gap === null) return { kind: until === null ? "open" : reason, since, until, text };
  if (until === null) return { kind: "open", since, until, text: `${text}: still missing` };
  if (gap.skipped) return { kind: "skipped", since, until, text: `${text}: skipped` };
  return { kind: "filled", since, until, text: `${text}: then it came` };
}
