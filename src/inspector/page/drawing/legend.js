/** What the shapes of the drawing mean. Each differs from the others without its colour. */
import { html } from "../vendor/htm-preact.js";

const RING = "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9";
/** Colour, strokes in a box of 12 by 12, and meaning. @type {Readonly<Record<string, [string, string, string?]>>} */
const SHAPES = {
  handled: ["good", "M1.5 6.5l3 3l6-7", "handled"],
  failed: ["bad", "M2 2l8 8M10 2l-8 8", "failed attempt"],
  dead: ["bad", "M4 1h4l3 3v4l-3 3h-4l-3-3v-4zM4 4l4 4M8 4l-4 4", "dead letter"],
  unhandled: ["muted", RING, "no handler"],
  discarded: ["muted", `${RING}M3 9l6-6`, "discarded"],
  late: ["warn", "M6 1l5 5l-5 5l-5-5z", "late: only recorded"],
  open: ["wait", `${RING}M6 3.5v3l2 1`, "goes on"],
  before: ["muted", "M3 2l6 4l-6 4z"],
  conflict: ["warn", "M6 1l5.5 10h-11zM6 4.5v3M6 9v.5", "came again with other content"],
};

/** @param {string} kind */
export const colourOf = (kind) => SHAPES[kind]?.[0];

/** @param {{ kind: string, x?: number, y?: number }} props */
export function Shape({ kind, x = 0, y = 0 }) {
  return html`<path class=${colourOf(kind)} d=${SHAPES[kind]?.[1]} transform=${`translate(${x} ${y})`} />`;
}

export function Legend() {
  return html`<ul class="legend" aria-label="Shapes of the drawing">
    ${Object.entries(SHAPES).map(([kind, [, , meaning]]) => meaning && html`<li><svg width="12" height="12" aria-hidden="true"><${Shape} kind=${kind} /></svg> ${meaning}</li>`)}
    <li><b class="warn">×2</b> came twice</li>
    <li><svg width="24" height="12" aria-hidden="true"><rect class="pause" width="24" height="12" /></svg> a long time, shortened</li>
  </ul>`;
}
