/** Time as a distance: milliseconds and minutes in one picture, nothing on top of anything else. */

/** Longer pauses are told by their length. */
export const PAUSE_MS = 5_000;

/** 9 px for a millisecond, 67 px for 5 s, 130 px for an hour. @param {number} ms between two moments */
const distance = (ms) => 8 + 22 * Math.log10(1 + ms / 10);

/** @typedef {{ at: number, row?: string, room?: number }} Point `room` is the least distance from the point before it in its row. */

/**
 * A later moment lies to the right of all of an earlier one; points of one moment and row stand in the order given.
 *
 * @param {readonly Point[]} points
 * @returns {{ xs: number[], pauses: { x1: number, x2: number, ms: number }[], width: number }} `xs` from 0 to `width`
 */
export function place(points) {
  const xs = points.map(() => 0);
  const pauses = [];
  /** @type {Record<string, number>} */
  const rows = {};
  const order = points.map((point, index) => ({ ...point, index })).sort((a, b) => a.at - b.at);
  let [width, base, moment] = [0, 0, order[0]?.at ?? 0];
  for (const { at, row = "", room, index } of order) {
    const ms = at - moment;
    if (ms > 0) {
      base = width + distance(ms);
      if (ms >= PAUSE_MS) pauses.push({ x1: width, x2: base, ms });
      moment = at;
    }
    const x = room === undefined ? base : Math.max(base, (rows[row] ?? -room) + room);
    rows[row] = x;
    xs[index] = x;
    width = Math.max(width, x);
  }
  return { xs, pauses, width };
}
