/** Dead letters: by what went wrong, one by one and in bulk; and the messages that are blocked behind one. */
import { RowAct } from "../acts.js";
import { get, post } from "../api.js";
import { BulkButton } from "../bulk.js";
import { EventLink, Listed, PER_PAGE, usePages } from "../listed.js";
import { useLive } from "../live.js";
import { clockTime, count, shortId } from "../parts/format.js";
import { href } from "../router.js";
import { html, useState } from "../vendor/htm-preact.js";

/** @typedef {import("../../api.ts").ErrorGroup} ErrorGroup */
/** @template T @typedef {import("../parts/table.js").Column<T>[]} Columns */

/** @param {{ params: Readonly<Record<string, string>> }} props */
export function DeadView({ params: { code } }) {
  const { dead = 0, blockedLanes = 0 } = useLive().overview?.gauges ?? {};
  return html`<div class="head"><h1>Dead letters</h1></div>
    <p>The handlers of these events failed on the last attempt. Mend what failed, then replay them.</p>
    <${Groups} dead=${dead} code=${code} />
    <${Letters} key=${code} dead=${dead} code=${code} />
    <${Blocked} blocked=${blockedLanes} />`;
}

/** Each look goes through all dead letters, so many are not looked at again with each new one. @param {{ dead: number, code?: string }} props */
function Groups({ dead, code }) {
  const ask = async (/** @type {unknown} */ _after, /** @type {AbortSignal} */ signal) => {
    /** @type {readonly ErrorGroup[]} */
    const items = await get("api/groups", signal);
    return { items, next: null };
  };
  const pages = usePages(ask, dead < 2_000 ? dead : Math.round(dead / 1_000));
  const keyOf = (/** @type {ErrorGroup} */ group) => `${group.errorCode} ${group.error}`;
  const hrefOf = (/** @type {ErrorGroup} */ { errorCode }) =>
    errorCode && href("dead", null, { code: errorCode === code ? null : errorCode });
  return html`<section><h2>By error</h2>
    <${Listed} pages=${pages} empty="No dead letters." table=${{ caption: "Errors", keyOf, hrefOf, columns: GROUPS }} />
  </section>`;
}

/** @type {Columns<ErrorGroup>} */
const GROUPS = [
  { name: "event", title: "Code", cell: ({ errorCode }) => errorCode ?? "none" },
  { name: "error", title: "Error", cell: ({ error }) => html`<span title=${error}>${error}</span>` },
  { name: "count", title: "Count", cell: (group) => count(group.count) },
  { name: "at", title: "Oldest", lesser: true, cell: ({ oldestAt }) => clockTime(oldestAt) },
  { name: "at", title: "Newest", lesser: true, cell: ({ newestAt }) => clockTime(newestAt) },
  { name: "example", title: "Example", cell: ({ exampleId }) => html`<${EventLink} id=${exampleId} />` },
];

/** @param {{ dead: number, code?: string }} props */
function Letters({ dead, code }) {
  const [chosen, choose] = useState(/** @type {readonly number[]} */ ([]));
  const query = { states: ["dead"], ...(code && { errorCode: code }) };
  const pages = usePages(
    (after, signal) => post("api/events", { ...query, after, limit: PER_PAGE }, signal),
    dead,
    chosen.length > 0,
  );
  const shown = (pages.rows ?? []).map(({ id }) => id);
  const onDone = () => {
    choose([]);
    pages.reload();
  };
  /** @param {number} id */
  const flip = (id) => choose(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  const isAll = chosen.length > 0 && chosen.length === shown.length;
  const what = code ? `dead letters with the code ${code}` : "dead letters";
  const bulk = (/** @type {string} */ act) =>
    html`<${BulkButton} ...${{ act, onDone }} which="all" title=${`${act} all ${what}`} work=${{ query }} />`;
  const few = (
    /** @type {string} */ act,
  ) => html`<${BulkButton} ...${{ act, onDone }} which="selected" title=${`${act} selected ${what}`}
    disabled=${chosen.length === 0} paths=${chosen.toSorted((a, b) => a - b).map((id) => `api/events/${id}/${act}`)} />`;
  return html`<section>
    <h2>${code ? `With the code ${code}` : "All"} ${code && html`<a href=${href("dead")}>Show all</a>`}</h2>
    <p class="acts">${bulk("replay")}${bulk("discard")}
      <label><input type="checkbox" checked=${isAll} onChange=${() => choose(isAll ? [] : shown)} /> ${count(chosen.length)} selected</label>
      ${few("replay")}${few("discard")}</p>
    <${Listed} pages=${pages} empty="No dead letters." table=${{ caption: what, columns: letters(chosen, flip, onDone) }} />
  </section>`;
}

/**
 * @param {readonly number[]} chosen @param {(id: number) => void} flip @param {() => void} onDone
 * @returns {Columns<import("../../api.ts").EventShape>}
 */
function letters(chosen, flip, onDone) {
  return [
    {
      name: "choose",
      title: "",
      cell: ({ id }) =>
        html`<input type="checkbox" aria-label=${`Select event ${id}`} checked=${chosen.includes(id)} onChange=${() => flip(id)} />`,
    },
    {
      name: "event",
      title: "Event",
      cell: ({ id, lane, eventType, sequence, messageId }) =>
        html`<a data-row href=${href("message", lane, { event: id })}>${eventType} #${sequence}</a> ${shortId(messageId)}`,
    },
    {
      name: "error",
      title: "Error",
      cell: ({ errorCode, error }) => html`<span title=${error}>${errorCode}: ${error}</span>`,
    },
    { name: "at", title: "Failed", lesser: true, cell: ({ finishedAt }) => clockTime(finishedAt) },
    {
      name: "acts",
      title: "Acts",
      cell: ({ id }) =>
        ["replay", "discard"].map(
          (act) => html`<${RowAct} ...${{ act, onDone }} of=${`events/${id}`} about=${`event ${id}`} />`,
        ),
    },
  ];
}

/** @param {{ blocked: number }} props */
function Blocked({ blocked }) {
  const pages = usePages(
    (after, signal) => post("api/messages", { statuses: ["blocked"], after, limit: PER_PAGE }, signal),
    blocked,
  );
  const act = { act: "unblock", onDone: pages.reload };
  /** @type {Columns<import("../../api.ts").SummaryShape>} */
  const columns = [
    {
      name: "event",
      title: "Message",
      cell: ({ lane, messageId }) => html`<a data-row href=${href("message", lane)}>${messageId}</a>`,
    },
    { name: "error", title: "Newest event", cell: ({ newest }) => `${newest.eventType} #${newest.sequence}` },
    { name: "at", title: "Accepted", lesser: true, cell: ({ newest }) => clockTime(newest.acceptedAt) },
    {
      name: "acts",
      title: "Acts",
      cell: ({ lane, messageId }) => html`<${RowAct} ...${act} of=${`messages/${lane}`} about=${messageId} />`,
    },
  ];
  return html`<section><h2>Blocked messages</h2>
    <p class="acts"><${BulkButton} ...${act} which="all" title="Unblock all messages" work=${{}} /></p>
    <${Listed} pages=${pages} empty="No message is blocked." table=${{ caption: "Messages that wait behind a dead letter", columns }} />
  </section>`;
}
