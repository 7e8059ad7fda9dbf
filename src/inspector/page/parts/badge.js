/** How something stands, as a word, a shape and a colour: none of them is needed alone. */
import { html } from "../vendor/htm-preact.js";

const RING = "M5 1a4 4 0 1 0 0 8a4 4 0 1 0 0-8";
const TICK = "M1.5 5.5l2.5 2.5l4.5-6";
const PLAY = "M3 1.5l5 3.5l-5 3.5z";
/** In a box of 10 by 10. @type {Readonly<Record<string, [kind: string, path: string]>>} */
const STATES = {
  pending: ["wait", `${RING}M5 3v2l1.5 1`],
  ready: ["wait", PLAY],
  leased: ["wait", PLAY],
  gap: ["wait", "M1 5h2.5M6.5 5H9"],
  backoff: ["wait", "M8.5 5a3.5 3.5 0 1 1-1-2.5M8.5 1v2h-2"],
  held: ["warn", "M3 1.5v7M7 1.5v7"],
  handled: ["good", TICK],
  replayed: ["good", TICK],
  unhandled: ["muted", RING],
  late: ["warn", "M5 1l4 4l-4 4l-4-4z"],
  dead: ["bad", "M2 2l6 6M8 2l-6 6"],
  blocked: ["bad", "M2 1.5h6v7h-6z"],
  discarded: ["muted", "M1.5 5h7"],
};

/** @param {{ state: string, outcome?: string | null, late?: boolean }} props of an event, a lane or a quarantined body */
export function StateBadge({ state, outcome, late }) {
  const name = state === "done" ? (outcome ?? "handled") : state;
  const [kind, path] = STATES[name] ?? ["muted", "M4 5h2"];
  return html`<span class=${`badge ${kind}`}>
    <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><path d=${path} /></svg>
    ${name}${late && name !== "late" && ", late"}
  </span>`;
}
