/** How something stands: as a word, a shape and a colour, so that none of them is needed alone. */
import { html } from "../vendor/htm-preact.js";

/** Of a box of 10 by 10. @type {Readonly<Record<string, { path: string, kind: string }>>} */
const STATES = {
  pending: { path: "M5 1a4 4 0 1 0 0 8a4 4 0 1 0 0-8M5 3v2l1.5 1", kind: "wait" },
  ready: { path: "M3 1.5l5 3.5l-5 3.5z", kind: "wait" },
  leased: { path: "M3 1.5l5 3.5l-5 3.5z", kind: "wait" },
  gap: { path: "M1 5h2.5M6.5 5H9", kind: "wait" },
  backoff: { path: "M8.5 5a3.5 3.5 0 1 1-1-2.5M8.5 1v2h-2", kind: "wait" },
  held: { path: "M3 1.5v7M7 1.5v7", kind: "warn" },
  handled: { path: "M1.5 5.5l2.5 2.5l4.5-6", kind: "good" },
  replayed: { path: "M1.5 5.5l2.5 2.5l4.5-6", kind: "good" },
  unhandled: { path: "M5 1a4 4 0 1 0 0 8a4 4 0 1 0 0-8", kind: "still" },
  late: { path: "M5 1l4 4l-4 4l-4-4z", kind: "warn" },
  dead: { path: "M2 2l6 6M8 2l-6 6", kind: "bad" },
  blocked: { path: "M2 1.5h6v7h-6z", kind: "bad" },
  discarded: { path: "M1.5 5h7", kind: "still" },
  idle: { path: "M4 5h2", kind: "still" },
};

/**
 * @param {{ state: string, outcome?: string | null, late?: boolean }} props the state of an event, a lane or a quarantined body
 */
export function StateBadge({ state, outcome, late }) {
  const name = state === "done" ? (outcome ?? "handled") : state;
  const { path, kind } = STATES[name] ?? { path: "", kind: "still" };
  return html`<span class=${`badge ${kind}`}>
    <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><path d=${path} /></svg>
    ${late && name !== "late" ? `${name}, late` : name}
  </span>`;
}
