/** The drawing's facts as a table: for screen readers, and to copy. */
import { StateBadge } from "../parts/badge.js";
import { clockTime, time } from "../parts/format.js";
import { Table } from "../parts/table.js";
import { href } from "../router.js";
import { html, useMemo } from "../vendor/htm-preact.js";
import { fateOf, holdOf, marksOf, rangeOf } from "./story.js";

/** @typedef {import("../../api.ts").DrawnEvent} DrawnEvent */

/** @param {{ lane: number, drawing: import("../../api.ts").Drawing }} props */
export function StoryList({ lane, drawing }) {
  return useMemo(() => listOf(lane, drawing), [lane, drawing]);
}

/** @param {number} lane @param {import("../../api.ts").Drawing} drawing */
function listOf(lane, { events, gaps, now }) {
  /** @type {import("../parts/table.js").Column<DrawnEvent>[]} */
  const columns = [
    ["event", "Event", ({ sequence, eventType }) => `${sequence} ${eventType}`],
    ["arrived", "Arrived", (event) => [time(event.acceptedAt), ...marksOf(event)].join(", ")],
    ["held", "Held", ({ held }) => (held ? holdOf(held, now) : "no")],
    ["started", "Handed out", ({ startedAt }) => time(startedAt)],
    ["state", "State", (event) => html`<${StateBadge} ...${event} />`],
    ["fate", "What became of it", (event) => fateOf(event, now)],
  ];
  const hrefOf = (/** @type {DrawnEvent} */ { id }) => href("message", lane, { event: id });
  return html`<section class="panel story-list">
    <h2>The story as a list</h2>
    <${Table} caption="Events in the order of their arrival" ...${{ columns, hrefOf }} rows=${events} />
    ${gaps.map((gap) => html`<p>Missing from ${clockTime(gap.since, now)} on: ${rangeOf(gap)}. ${endOfGap(gap, now)}</p>`)}
  </section>`;
}

/** @param {import("../../api.ts").DrawnGap} gap @param {number} now */
function endOfGap({ until, skipped, filledAt }, now) {
  if (until === null) return "Still waited for.";
  if (!skipped) return `Came by ${clockTime(until, now)}.`;
  return `Given up at ${clockTime(until, now)}${filledAt === null ? "." : `, and came at ${clockTime(filledAt, now)}.`}`;
}
