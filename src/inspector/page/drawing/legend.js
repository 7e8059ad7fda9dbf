/** What the shapes of the drawing mean. Each differs from the others without its colour. */
import { html } from "../vendor/htm-preact.js";

/** Strokes in a box of 12 by 12. @type {Readonly<Record<string, string>>} */
const SHAPES = {
  handled: "M1.5 6.5l3 3l6-7",
  failed: "M2 2l8 8M10 2l-8 8",
  dead: "M4 1h4l3 3v4l-3 3h-4l-3-3v-4zM4 4l4 4M8 4l-4 4",
  unhandled: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9",
  discarded: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M3 9l6-6",
  late: "M6 1l5 5l-5 5l-5-5z",
  open: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M6 3.5v3l2 1",
  before: "M3 2l6 4l-6 4z",
  conflict: "M6 1l5.5 10h-11zM6 4.5v3M6 9v.5",
};

const MEANINGS = [
  ["handled", "handled"],
  ["failed", "failed attempt"],
  ["dead", "dead letter"],
  ["unhandled", "no handler"],
  ["discarded", "discarded"],
  ["late", "late: only recorded"],
  ["open", "goes on"],
  ["conflict", "came again with other content"],
];

/** @param {{ kind: string, x?: number, y?: number }} props */
export function Shape({ kind, x = 0, y = 0 }) {
  return html`<path class=${`shape ${kind}`} d=${SHAPES[kind] ?? ""} transform=${`translate(${x} ${y})`} />`;
}

export function Legend() {
  return html`<ul class="legend" aria-label="Shapes of the drawing">
    ${MEANINGS.map(
      ([kind, meaning]) => html`<li key=${kind}>
      <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><${Shape} kind=${kind} /></svg> ${meaning}
    </li>`,
    )}
    <li><span class="times">×2</span> duplicates</li>
    <li><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true"><rect class="pause" width="24" height="12" /></svg> a long time, shortened</li>
  </ul>`;
}
