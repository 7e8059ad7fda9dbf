/** Where everything of a message's drawing lies: in pixels, from the facts alone. */
import { bandsOf } from "./bands.js";
import { place } from "./scale.js";
import { flagsOf } from "./story.js";
import { stretchesOf } from "./stretches.js";

/**
 * @typedef {import("../../api.ts").Drawing} Drawing
 * @typedef {import("./stretches.js").Stretch & { x1: number, x2: number }} Bar
 * @typedef {{ event: import("../../api.ts").DrawnEvent, flags: string, x: number, y: number, bars: Bar[] }} Story `y` is that of the bars
 */

/** Where the rows begin, and how high they are. */
export const ROWS = { axis: 36, mark: 100, bands: 128, band: 22, bar: 24, track: 32 };

const [SIDE, END, TICK, BETWEEN, CHARACTER] = [52, 130, 76, 10, 7.7];

/**
 * @param {Drawing} drawing
 * @param {number} [room] how wide it may be without scrolling: as far as that helps, it is stretched
 */
export function layout(drawing, room = 0) {
  const { points, arrivals, bars, bands } = planOf(drawing);
  const { xs, pauses, width } = place(points);
  const stretch = Math.min(2.5, Math.max(1, (room - SIDE - END) / Math.max(1, width)));
  const at = (/** @type {number} */ x) => SIDE + x * stretch;
  const end = at(width);
  const whole = Math.max(end + END, ...bands.map(({ text }) => text.length * CHARACTER));
  /** @template {{ p1: number, p2: number }} T @param {T} span */
  const placed = (span) => ({ ...span, x1: at(xs[span.p1] ?? 0), x2: at(xs[span.p2] ?? 0) });
  const waits = inRows(
    bands.map(placed).map((band) => {
      const words = band.text.length * CHARACTER;
      const textX = Math.max(0, Math.min(band.x1 + 8, whole - words));
      return { ...band, textX, left: Math.min(band.x1, textX), right: Math.max(band.x2, textX + words) + BETWEEN };
    }),
  );
  const top = ROWS.bands + (1 + Math.max(1, ...waits.map(({ row }) => row + 1))) * ROWS.band;
  const stories = inRows(
    arrivals.map(({ event, flags, point }) => {
      const own = bars.filter((bar) => bar.event === event).map(placed);
      return { event, flags, x: at(xs[point] ?? 0), bars: own, left: own[0]?.x1 ?? 0, right: own.at(-1)?.x2 ?? 0 };
    }),
  ).map((story) => ({ ...story, y: top + story.row * ROWS.track }));
  const isOpen =
    drawing.events.some(({ state }) => state === "pending") || drawing.gaps.some(({ until }) => until === null);
  return {
    width: whole,
    height: Math.max(top, ...stories.map(({ y }) => y)) + ROWS.track + 8,
    stories: stories.sort((a, b) => a.event.arrival - b.event.arrival),
    bands: waits.map((band) => ({ ...band, y: ROWS.bands + band.row * ROWS.band })),
    pauses: pauses.map(({ x1, x2, ms }) => ({ x1: at(x1), x2: at(x2), ms })),
    ticks: ticksOf(points.map((point, index) => ({ at: point.at, x: at(xs[index] ?? 0) }))),
    now: isOpen ? end : null,
    end,
    top,
  };
}

/** What has a place in time. @param {Drawing} drawing */
function planOf(drawing) {
  /** @type {import("./scale.js").Point[]} */
  const points = [];
  /** @param {number} at @param {string} [row] @param {number} [room] */
  const point = (at, row, room) => points.push({ at, row, room }) - 1;
  point(drawing.from);
  point(drawing.to);
  let before = 0;
  const arrivals = drawing.events.map((event) => {
    const flags = flagsOf(event).join(", ");
    const half = Math.max(44, (flags.length * CHARACTER) / 2);
    const arrival = { event, flags, point: point(event.acceptedAt, "arrival", before + half) };
    before = half;
    return arrival;
  });
  const bars = drawing.events
    .flatMap((event) => stretchesOf(event, drawing.now).map((one) => ({ ...one, event })))
    .sort((a, b) => a.from - b.from || (a.event.handling ?? Infinity) - (b.event.handling ?? Infinity))
    .map((bar) => ({
      ...bar,
      p1: point(bar.from, "bar", BETWEEN),
      p2: point(bar.to, "bar", 30 + bar.text.length * CHARACTER),
    }));
  const bands = bandsOf(drawing).map((band) => ({
    ...band,
    p1: point(band.since),
    p2: point(band.until ?? drawing.to),
  }));
  return { points, arrivals, bars, bands };
}

/** Each in the first row that has room for it. @template {{ left: number, right: number }} T @param {T[]} spans */
function inRows(spans) {
  /** @type {number[]} */
  const ends = [];
  return spans
    .sort((a, b) => a.left - b.left)
    .map((span) => {
      const free = ends.findIndex((end) => end <= span.left);
      const row = free < 0 ? ends.length : free;
      ends[row] = span.right;
      return { ...span, row };
    });
}

/** As many of the moments as can be told of. @param {{ x: number, at: number }[]} moments */
function ticksOf(moments) {
  let last = { x: -TICK, at: -Infinity };
  return moments
    .sort((a, b) => a.x - b.x)
    .filter((moment) => {
      const isTold = moment.at > last.at && moment.x - last.x >= TICK;
      if (isTold) last = moment;
      return isTold;
    });
}
