/** How the inbox stands now, and how it came to it. */
import { Chart, meanRate, rates } from "../charts.js";
import { useLive } from "../live.js";
import { Empty } from "../parts/error.js";
import { age, count, duration } from "../parts/format.js";
import { Table } from "../parts/table.js";
import { href } from "../router.js";
import { html } from "../vendor/htm-preact.js";

/** @typedef {import("../../api.ts").Overview} Overview @typedef {import("../../api.ts").Sample} Sample */

const MINUTE_MS = 60_000;

export function OverviewView() {
  const { overview, samples } = useLive();
  return html`<h1 class="head">Overview</h1>
    ${
      overview === null
        ? html`<${Empty}>Looking at the inbox.<//>`
        : html`<${Gauges} overview=${overview} samples=${samples} />
      <${Charts} samples=${samples} />
      <${Tables} overview=${overview} />`
    }`;
}

/** @param {{ overview: Overview, samples: readonly Sample[] }} props */
function Gauges({ overview, samples }) {
  const { gauges, counters, oldestPendingAt, now } = overview;
  const perSecond = (/** @type {keyof Sample} */ field) => {
    const rate = meanRate(samples, field, MINUTE_MS);
    return rate === null ? "–" : `${count(rate)} /s`;
  };
  return html`<h2 class="sr-only">Now</h2><dl class="gauges">
      <${Gauge} name="Backlog" value=${count(gauges.pending)} to=${href("events", null, { state: "pending" })} />
      <${Gauge} name="Oldest waiting" value=${oldestPendingAt === null ? "none" : duration(now - oldestPendingAt)} />
      <${Gauge} name="Dead letters" value=${count(gauges.dead)} to=${href("dead")} isBad=${gauges.dead > 0} />
      <${Gauge} name="Quarantined" value=${count(gauges.quarantined)} to=${href("quarantine")} isBad=${gauges.quarantined > 0} />
      <${Gauge} name="Blocked messages" value=${count(gauges.blockedLanes)} isBad=${gauges.blockedLanes > 0} />
      <${Gauge} name="Accepted" value=${perSecond("accepted")} />
      <${Gauge} name="Handled" value=${perSecond("handled")} />
      <${Gauge} name="Refused" value=${perSecond("rejected")} />
      <${Gauge} name="Last delivery signed" value=${age(overview.newestSignedAt, now)} />
    </dl>
    <h2>Since the inbox was made</h2>
    <dl class="gauges">${COUNTERS.map(([field, name]) => html`<${Gauge} key=${field} name=${name} value=${count(counters[field])} />`)}</dl>`;
}

/** @type {readonly (readonly [keyof Overview["counters"], string])[]} */
const COUNTERS = [
  ["accepted", "Accepted"],
  ["handled", "Handled"],
  ["unhandled", "Unhandled"],
  ["duplicates", "Duplicates"],
  ["conflicts", "Conflicts"],
  ["late", "Late"],
  ["gapsSkipped", "Gaps given up"],
  ["retried", "Retried"],
  ["deadLettered", "Dead-lettered"],
  ["discarded", "Discarded"],
  ["quarantined", "Quarantined"],
];

/** @param {{ name: string, value: string, to?: string, isBad?: boolean }} props */
function Gauge({ name, value, to, isBad }) {
  return html`<div><dt>${name}</dt><dd class=${isBad ? "bad" : ""}>${to ? html`<a href=${to}>${value}</a>` : value}</dd></div>`;
}

/** @param {{ samples: readonly Sample[] }} props */
function Charts({ samples }) {
  const gauge = (/** @type {keyof Sample} */ field) =>
    samples.map((sample) => ({ at: sample.at, value: sample[field] }));
  return html`<h2>Over time</h2><div class="charts">
    <${Chart} title="Backlog" unit=${count} series=${[{ name: "Waiting", points: gauge("pending") }]} />
    <${Chart} title="Oldest waiting" unit=${duration} series=${[{ name: "Age", points: gauge("oldestWaitingMs") }]} />
    <${Chart} title="Accepted and handled a second" unit=${count} series=${[
      { name: "Accepted", points: rates(samples, "accepted") },
      { name: "Handled", points: rates(samples, "handled") },
    ]} />
    <${Chart} title="Refused a second" unit=${count} series=${[{ name: "Refused", points: rates(samples, "rejected") }]} />
    <${Chart} title="Dead letters and quarantine" unit=${count} series=${[
      { name: "Dead letters", points: gauge("dead") },
      { name: "Quarantined", points: gauge("quarantined") },
    ]} />
    <${Chart} title="Late events and gaps given up" unit=${count} series=${[
      { name: "Late", points: gauge("late") },
      { name: "Gaps given up", points: gauge("gapsSkipped") },
    ]} />
  </div>`;
}

/** @param {{ overview: Overview }} props */
function Tables({ overview }) {
  const { rejections, slots, instances, now } = overview;
  return html`<div class="tables">
    <${Counts} title="Refused deliveries by reason" name="Reason" counts=${rejections} none="No delivery was refused." />
    <${Counts} title="Deliveries by secret slot" name="Slot" counts=${slots} none="No delivery yet." />
    <section class="panel"><h2>Receivers</h2>
      <${Table} caption="Receivers" rows=${instances} keyOf=${(/** @type {{ id: string }} */ { id }) => id} columns=${[
        { name: "host", title: "Host", cell: (/** @type {{ host: string }} */ { host }) => host },
        { name: "pid", title: "Process", cell: (/** @type {{ pid: number }} */ { pid }) => pid },
        { name: "seen", title: "Seen", cell: (/** @type {{ seenAt: number }} */ { seenAt }) => age(seenAt, now) },
      ]} />
      ${instances.length === 0 && html`<${Empty}>No receiver works on this inbox.<//>`}
    </section>
  </div>`;
}

/** @param {{ title: string, name: string, counts: Readonly<Record<string, number>>, none: string }} props */
function Counts({ title, name, counts, none }) {
  const rows = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return html`<section class="panel"><h2>${title}</h2>
    ${
      rows.length === 0
        ? html`<${Empty}>${none}<//>`
        : html`<${Table} caption=${title} rows=${rows} keyOf=${(/** @type {[string, number]} */ [key]) => key} columns=${[
            { name: "key", title: name, cell: (/** @type {[string, number]} */ [key]) => key },
            { name: "count", title: "Count", cell: (/** @type {[string, number]} */ [, n]) => count(n) },
          ]} />`
    }
  </section>`;
}
