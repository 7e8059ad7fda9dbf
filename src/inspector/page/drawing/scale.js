/** Time as a distance: milliseconds and minutes in one picture, nothing on top of anything else. */

/** Longer pauses are told by their length. */
export const PAUSE_MS = 5_000;

/** @param {number} ms between two moments @returns {number} logarithmic: 9 px for 1 ms, 75 px for 5 s, 131 px for an hour */
function distance(ms) {
  return 8 + 22 * Math.log10(1 + ms / 10);
}

/**
 * @typedef {{ at: number, row?: string, room?: number }} Point `room` is the least distance from the point before it in its row.
 * @typedef {{ x1: number, x2: number, ms: number }} Pause
 */

/**
 * A later moment lies further to the right than all of an earlier one; points of one moment and row stand in the order given.
 *
 * @param {readonly Point[]} points
 * @returns {{ xs: number[], pauses: Pause[], width: number }} `xs` in the order of `points`, from 0 to `width`
 */
export function place(points) {
  const order = points.map((point, index) => ({ ...point, index })).sort((a, b) => a.at - b.at || a.index - b.index);
  /** @type {number[]} */
  const xs = [];
  /** @type {Pause[]} */
  const pauses = [];
  /** @type {Map<string, number>} */
  const rows = new Map();
  let [width, base, moment] = [0, 0, order[0]?.at ?? 0];
  for (const { at, row, room = 0, index } of order) {
    const ms = at - moment;
    if (ms > 0) {
      base = width + distance(ms);
      if (ms >= PAUSE_MS) pauses.push({ x1: width, x2: base, ms });
      moment = at;
    }
    const before = row === undefined ? undefined : rows.get(row);
    const x = before === undefined ? base : Math.max(base, before + room);
    if (row !== undefined) rows.set(row, x);
    xs[index] = x;
    width = Math.max(width, x);
  }
  return { xs, pauses, width };
}
