/** Where everything of a message's drawing lies: in pixels, from the facts alone. */
import { bandsOf } from "./bands.js";
import { place } from "./scale.js";
import { stretchesOf } from "./stretches.js";

/**
 * @typedef {import("../../api.ts").Drawing} Drawing
 * @typedef {import("../../api.ts").DrawnEvent} DrawnEvent
 * @typedef {import("./stretches.js").Stretch & { x1: number, x2: number }} Bar
 * @typedef {{ event: DrawnEvent, flags: string, x: number, y: number, bars: Bar[] }} Story `y` is that of the bars
 * @typedef {import("./bands.js").Band & { x1: number, x2: number, y: number, textX: number }} PlacedBand
 * @typedef {{ x: number, at: number }} Tick
 */

/** Where the rows begin, and how high they are. */
export const ROWS = { axis: 36, mark: 100, bands: 128, band: 22, bar: 24, track: 32 };

const CHARACTER = 7.4;
const [SIDE, END, TICK, BETWEEN] = [52, 130, 76, 10];

/**
 * @param {Drawing} drawing
 * @param {number} [room] how wide it may be without scrolling: as far as that helps, it is stretched
 */
export function layout(drawing, room = 0) {
  const plan = planOf(drawing);
  const { xs, pauses, width } = place(plan.points);
  const stretch = Math.min(2.5, Math.max(1, (room - SIDE - END) / Math.max(1, width)));
  /** @param {number} index of a point */
  const at = (index) => SIDE + (xs[index] ?? 0) * stretch;
  const end = SIDE + width * stretch;
  const bands = placeBands(
    plan.bands.map((band) => ({ ...band, x1: at(band.p1), x2: at(band.p2) })),
    end + END,
  );
  const handlingY = ROWS.bands + (1 + Math.max(1, ...bands.map(({ row }) => row + 1))) * ROWS.band;
  const stories = placeStories(plan, at, handlingY);
  const isOpen =
    drawing.events.some(({ state }) => state === "pending") || drawing.gaps.some(({ until }) => until === null);
  return {
    width: end + END,
    height: Math.max(...stories.map(({ y }) => y), handlingY) + ROWS.track + 8,
    stories,
    bands: bands.map((band) => ({ ...band, y: ROWS.bands + band.row * ROWS.band })),
    pauses: pauses.map(({ x1, x2, ms }) => ({ x1: SIDE + x1 * stretch, x2: SIDE + x2 * stretch, ms })),
    ticks: ticksOf(plan.points.map((point, index) => ({ at: point.at, x: at(index) }))),
    now: isOpen ? end : null,
    end,
    handlingY,
  };
}

/** The points that have a place in time, and what they belong to. @param {Drawing} drawing */
function planOf(drawing) {
  /** @type {import("./scale.js").Point[]} */
  const points = [{ at: drawing.from }, { at: drawing.to }];
  /** @param {number} at @param {string} [row] @param {number} [least] */
  const point = (at, row, least) => points.push({ at, row, room: least }) - 1;
  let before = 0;
  const arrivals = drawing.events.map((event) => {
    const flags = ["conflict", "late", "replayed"].filter((flag) => event[/** @type {"late"} */ (flag)]).join(", ");
    const half = Math.max(44, (flags.length * CHARACTER) / 2 + 3);
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

/** @param {(import("./bands.js").Band & { x1: number, x2: number })[]} bands @param {number} width */
function placeBands(bands, width) {
  const placed = bands.map((band) => {
    const text = band.text.length * CHARACTER + 24;
    const textX = Math.max(0, Math.min(band.x1 + 8, width - text));
    return { ...band, textX, left: Math.min(band.x1, textX), right: Math.max(band.x2, textX + text) };
  });
  return inRows(placed);
}

/** @param {ReturnType<typeof planOf>} plan @param {(point: number) => number} at @param {number} top @returns {Story[]} */
function placeStories({ arrivals, bars }, at, top) {
  const stories = arrivals.map(({ event, flags, point }) => {
    const own = bars.filter((bar) => bar.event === event).map((bar) => ({ ...bar, x1: at(bar.p1), x2: at(bar.p2) }));
    const [left, right] = [own[0]?.x1 ?? -Infinity, own.at(-1)?.x2 ?? -Infinity];
    return { event, flags, x: at(point), bars: own, left, right };
  });
  const rows = new Map(inRows(stories).map(({ event, row }) => [event, row]));
  return stories.map((story) => ({ ...story, y: top + (rows.get(story.event) ?? 0) * ROWS.track }));
}

/** Each in the first row that has room for it. @template {{ left: number, right: number }} T @param {T[]} spans @returns {(T & { row: number })[]} */
function inRows(spans) {
  /** @type {number[]} */
  const ends = [];
  return spans
    .toSorted((a, b) => a.left - b.left)
    .map((span) => {
      const free = ends.findIndex((end) => end <= span.left);
      const row = free < 0 ? ends.length : free;
      ends[row] = span.right;
      return { ...span, row };
    });
}

/** As many of the moments as can be told of. @param {Tick[]} moments @returns {Tick[]} */
function ticksOf(moments) {
  /** @type {Tick[]} */
  const ticks = [];
  for (const moment of moments.toSorted((a, b) => a.x - b.x)) {
    const last = ticks.at(-1);
    if (last === undefined || (moment.at > last.at && moment.x - last.x >= TICK)) ticks.push(moment);
  }
  return ticks;
}
