/** Small charts over time: a line of what was, with its last and highest value in words. */
import { duration } from "./parts/format.js";
import { html } from "./vendor/htm-preact.js";

/** @typedef {{ at: number, value: number }} Point @typedef {import("../api.ts").Sample} Sample */

const WIDTH = 600;
const HEIGHT = 100;
const SHORTEST_MS = 60_000;

/** @param {[number, number]} domain @param {[number, number]} range @returns {(value: number) => number} */
export function scale([from, to], [low, high]) {
  return (value) => (to === from ? low : low + ((value - from) / (to - from)) * (high - low));
}

/** The next of 1, 2, 5, 10, 20, … @param {number} highest @returns {number} */
export function ceiling(highest) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= highest) ?? power;
}

/** What a cumulative count grew by, a second. It begins anew when a process does. @param {readonly Sample[]} samples @param {keyof Sample} field @returns {Point[]} */
export function rates(samples, field) {
  return samples.slice(1).flatMap((sample, index) => {
    const before = samples[index] ?? sample;
    const seconds = (sample.at - before.at) / 1_000;
    return seconds <= 0 ? [] : [{ at: sample.at, value: Math.max(0, sample[field] - before[field]) / seconds }];
  });
}

/** The mean over the last `overMs`. @param {readonly Sample[]} samples @param {keyof Sample} field @param {number} overMs @returns {number | null} null before there are two samples */
export function meanRate(samples, field, overMs) {
  const last = samples.at(-1);
  const first = samples.find(({ at }) => last !== undefined && at >= last.at - overMs);
  if (last === undefined || first === undefined || first === last) return null;
  return (rates([first, last], field)[0] ?? { value: 0 }).value;
}

/** @param {readonly Point[]} points @param {(at: number) => number} x @param {(value: number) => number} y @returns {string} */
export function linePath(points, x, y) {
  return points
    .map(({ at, value }, index) => `${index === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`)
    .join("");
}

/**
 * @param {{ title: string, unit?: (value: number) => string, series: readonly { name: string, points: readonly Point[] }[] }} props
 */
export function Chart({ title, unit = String, series }) {
  const all = series.flatMap(({ points }) => points);
  const to = Math.max(...all.map(({ at }) => at), 0);
  const from = Math.min(...all.map(({ at }) => at), to - SHORTEST_MS);
  const top = ceiling(Math.max(...all.map(({ value }) => value), 0));
  const x = scale([from, to], [0, WIDTH]);
  const y = scale([0, top], [HEIGHT, 2]);
  const said = series.map(({ name, points }) => {
    const values = points.map(({ value }) => value);
    return values.length === 0
      ? `${name}: nothing yet`
      : `${name}: now ${unit(values.at(-1) ?? 0)}, at most ${unit(Math.max(...values))}`;
  });
  return html`<figure class="chart panel">
    <figcaption><b>${title}</b><span class="muted">at most ${unit(top)}</span></figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${title}, last ${duration(to - from)}. ${said.join(". ")}.`}>
      ${series.map(({ name, points }, index) => html`<path key=${name} class=${index > 0 ? "second" : ""} d=${linePath(points, x, y)} />`)}
    </svg>
    <div class="axis" aria-hidden="true"><span>${duration(to - from)} ago</span><span>now</span></div>
  </figure>`;
}
