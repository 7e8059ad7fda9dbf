/** How the inbox stands now, and how it came to it. */
import { Chart, meanRate, rates } from "../charts.js";
import { useLive } from "../live.js";
import { Empty } from "../parts/error.js";
import { age, count, duration } from "../parts/format.js";
import { Table } from "../parts/table.js";
import { href } from "../router.js";
import { html } from "../vendor/htm-preact.js";

/** @import { Overview, Sample } from "../../api.ts" */
/** @typedef {[name: string, value: string | number | undefined, href?: string, isBad?: boolean]} Gauge */

const MINUTE_MS = 60_000;

export function OverviewView() {
  const { overview, samples } = useLive();
  if (!overview) return html`<h1>Overview</h1><${Empty}>Looking at the inbox.<//>`;
  const { rejections, slots, instances, now } = overview;
  const receivers = instances.map(({ host, pid, seenAt }) => [host, pid, age(seenAt, now)]);
  return html`<h1>Overview</h1>
    ${gaugesOf("Now", nowOf(overview, samples))}${gaugesOf("Since the inbox was made", sinceOf(overview))}
    ${chartsOf(samples)}
    <div class="panels">
      ${tableOf("Refused deliveries by reason", ["Reason", "Count"], counted(rejections))}
      ${tableOf("Deliveries by secret slot", ["Slot", "Count"], counted(slots))}
      ${tableOf("Receivers", ["Host", "Process", "Seen"], receivers)}
    </div>`;
}

/** @param {Overview} overview @param {readonly Sample[]} samples @returns {Gauge[]} */
function nowOf({ gauges, oldestPendingAt, newestSignedAt, now }, samples) {
  const { pending, dead, quarantined, blockedLanes } = gauges;
  const rate = (/** @type {keyof Sample} */ field) => {
    const mean = meanRate(samples, field, MINUTE_MS);
    return mean === undefined ? "–" : `${count(mean)} /s`;
  };
  return [
    ["Backlog", pending, href("events", null, { state: "pending" })],
    ["Oldest waiting", oldestPendingAt === null ? "none" : duration(now - oldestPendingAt)],
    ["Dead letters", dead, href("dead"), dead > 0],
    ["Quarantined", quarantined, href("quarantine"), quarantined > 0],
    ["Blocked", blockedLanes, href("dead"), blockedLanes > 0],
    ["Accepted", rate("accepted")],
    ["Handled", rate("handled")],
    ["Refused", rate("rejected")],
    ["Last signed", age(newestSignedAt, now)],
  ];
}

/** `gapsSkipped` reads `gaps skipped`. @param {Overview} overview @returns {Gauge[]} */
function sinceOf({ counters }) {
  return Object.entries(counters).map(([name, n]) => [
    name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
    n,
  ]);
}

/** @param {string} title @param {readonly Gauge[]} gauges */
function gaugesOf(title, gauges) {
  return html`<h2>${title}</h2><dl class="gauges">${gauges.map(([name, value = 0, to, isBad]) => {
    const text = typeof value === "number" ? count(value) : value;
    return html`<div key=${name} class="panel"><dt>${name}</dt><dd class=${isBad && "bad"}>${to ? html`<a href=${to}>${text}</a>` : text}</dd></div>`;
  })}</dl>`;
}

/** @param {readonly Sample[]} samples */
function chartsOf(samples) {
  const level = (/** @type {keyof Sample} */ field) =>
    samples.map((sample) => ({ at: sample.at, value: sample[field] }));
  const chart = (/** @type {string} */ title, /** @type {object} */ lines, unit = count) =>
    html`<${Chart} title=${title} unit=${unit} lines=${lines} />`;
  return html`<h2>Over time</h2><div class="panels">
    ${chart("Backlog", { Waiting: level("pending") })}
    ${chart("Oldest waiting", { Age: level("oldestWaitingMs") }, duration)}
    ${chart("Per second", { Accepted: rates(samples, "accepted"), Handled: rates(samples, "handled") })}
    ${chart("Refused per second", { Refused: rates(samples, "rejected") })}
    ${chart("To act on", { Dead: level("dead"), Quarantined: level("quarantined") })}
    ${chart("Out of order", { Late: level("late"), "Gaps skipped": level("gapsSkipped") })}
  </div>`;
}

/** @param {Readonly<Record<string, number>>} counts */
function counted(counts) {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, n]) => [name, count(n)]);
}

/** @param {string} title @param {string[]} heads @param {readonly (readonly unknown[])[]} rows */
function tableOf(title, heads, rows) {
  const columns = heads.map((head, index) => ["text", head, (/** @type {unknown[]} */ row) => row[index]]);
  return html`<section class="panel"><h2>${title}</h2>
    ${rows[0] ? html`<${Table} caption=${title} columns=${columns} rows=${rows} />` : html`<${Empty}>None.<//>`}
  </section>`;
}
