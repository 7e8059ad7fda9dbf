/** Small charts over time, told in words too. */
import { duration } from "./parts/format.js";
import { html } from "./vendor/htm-preact.js";

/** @import { Sample } from "../api.ts" */
/** @typedef {{ at: number, value: number }} Point */

const WIDTH = 600;
const HEIGHT = 100;
const SHORTEST_MS = 60_000;

/** @param {[number, number]} domain @param {[number, number]} range */
export function scale([from, to], [low, high]) {
  return (/** @type {number} */ value) => (to === from ? low : low + ((value - from) / (to - from)) * (high - low));
}

/** The next of 1, 2, 5, 10, 20, … @param {number} highest */
export function ceiling(highest) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  return power * ([1, 2, 5].find((step) => step * power >= highest) ?? 10);
}

/** What a count grew by, a second. It begins anew when a process does. @param {readonly Sample[]} samples @param {keyof Sample} field @returns {Point[]} */
export function rates(samples, field) {
  return samples.slice(1).flatMap((sample, index) => {
    const before = samples[index] ?? sample;
    const seconds = (sample.at - before.at) / 1_000;
    return seconds > 0 ? [{ at: sample.at, value: Math.max(0, sample[field] - before[field]) / seconds }] : [];
  });
}

/** The mean over the last `overMs`, undefined before two samples. @param {readonly Sample[]} samples @param {keyof Sample} field @param {number} overMs */
export function meanRate(samples, field, overMs) {
  const last = samples.at(-1);
  const first = samples.find(({ at }) => at >= (last?.at ?? 0) - overMs);
  return first && last && rates([first, last], field)[0]?.value;
}

/** @param {readonly Point[]} points @param {(at: number) => number} x @param {(value: number) => number} y */
export function linePath(points, x, y) {
  return points
    .map(({ at, value }, index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`)
    .join("");
}

/** @param {readonly Point[]} points */
const highestOf = (points) => Math.max(0, ...points.map(({ value }) => value));

/** @param {{ title: string, unit: (value: number) => string, lines: Readonly<Record<string, readonly Point[]>> }} props */
export function Chart({ title, unit, lines }) {
  const all = Object.values(lines).flat();
  const to = Math.max(0, ...all.map(({ at }) => at));
  const from = Math.min(to - SHORTEST_MS, ...all.map(({ at }) => at));
  const top = ceiling(highestOf(all));
  const x = scale([from, to], [0, WIDTH]);
  const y = scale([0, top], [HEIGHT, 2]);
  const told = Object.entries(lines).map(([name, points]) => {
    const last = points.at(-1)?.value ?? 0;
    return {
      name,
      d: linePath(points, x, y),
      now: `${name} ${unit(last)}`,
      words: `${name}: now ${unit(last)}, at most ${unit(highestOf(points))}.`,
    };
  });
  const span = duration(to - from);
  return html`<figure class="chart panel">
    <figcaption><h3>${title}</h3>${told.map(({ name, now }) => html`<span key=${name} class="line">${now}</span>`)}</figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${title}, last ${span}. ${told.map(({ words }) => words).join(" ")}`}>
      ${told.map(({ name, d }) => html`<path key=${name} class="line" d=${d} />`)}
    </svg>
    <p class="axis muted" aria-hidden="true"><span>${span} ago</span><span>0 to ${unit(top)}</span><span>now</span></p>
  </figure>`;
}
