/** The drawing's facts as a table: for screen readers, and to copy. */
import { StateBadge } from "../parts/badge.js";
import { clockTime, time } from "../parts/format.js";
import { Table } from "../parts/table.js";
import { href } from "../router.js";
import { html } from "../vendor/htm-preact.js";
import { fateOf, holdOf, marksOf, rangeOf } from "./story.js";

/**
 * @typedef {import("../../api.ts").Drawing} Drawing
 * @typedef {import("../../api.ts").DrawnEvent} DrawnEvent
 */

/** @param {{ lane: number, drawing: Drawing }} props */
export function StoryList({ lane, drawing }) {
  const { events, gaps, now } = drawing;
  /** @type {import("../parts/table.js").Column<DrawnEvent>[]} */
  const columns = [
    { name: "event", title: "Event", cell: ({ sequence, eventType }) => `${sequence} ${eventType}` },
    { name: "arrived", title: "Arrived", cell: (event) => [time(event.acceptedAt), ...marksOf(event)].join(", ") },
    { name: "held", title: "Held", cell: ({ held }) => (held ? holdOf(held, now) : "no") },
    { name: "started", title: "Handed out", cell: ({ startedAt }) => time(startedAt) },
    { name: "state", title: "State", cell: (event) => html`<${StateBadge} ...${event} />` },
    { name: "fate", title: "What became of it", cell: (event) => fateOf(event, now) },
  ];
  const keyOf = (/** @type {DrawnEvent} */ { id }) => id;
  const hrefOf = (/** @type {DrawnEvent} */ { id }) => href("message", lane, { event: id });
  return html`<section class="panel story-list" aria-labelledby="list">
    <h2 id="list">The story as a list</h2>
    <div class="scroll"><${Table} caption="Events in the order of their arrival" columns=${columns} rows=${events} keyOf=${keyOf} hrefOf=${hrefOf} /></div>
    ${gaps.map((gap) => html`<p key=${gap.from}>Sequence ${rangeOf(gap)} was missing from ${clockTime(gap.since, now)} ${endOfGap(gap, now)}.</p>`)}
  </section>`;
}

/** @param {import("../../api.ts").DrawnGap} gap @param {number} now */
function endOfGap({ until, skipped, filledAt }, now) {
  if (until === null) return "on, and is still waited for";
  const end = `to ${clockTime(until, now)}, and ${skipped ? "was given up" : "then came"}`;
  return filledAt !== null && skipped ? `${end}. It came late, at ${clockTime(filledAt, now)}` : end;
}
