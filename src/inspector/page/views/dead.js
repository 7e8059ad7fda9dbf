/** Dead letters: by what went wrong, one by one and in bulk; and the messages that are blocked behind one. */
import { ActButtons } from "../acts.js";
import { get, post } from "../api.js";
import { BulkButton } from "../bulk.js";
import { EventLink, Listed, PER_PAGE, useNews, usePages } from "../listed.js";
import { useLive } from "../live.js";
import { clockTime, count, shortId } from "../parts/format.js";
import { href } from "../router.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";

/**
 * @import { ErrorGroup, EventShape, SummaryShape } from "../../api.ts"
 * @template T @typedef {import("../parts/table.js").Column<T>[]} Columns
 */
/** @typedef {{ code?: string }} Props */

const ACTS = ["replay", "discard"];

/** @param {{ params: Readonly<Record<string, string>> }} props */
export function DeadView({ params: { code } }) {
  return html`<div class="head"><h1>Dead letters</h1></div>
    <p>The handlers of these events failed on the last attempt. Mend what failed, then replay them.</p>
    <${Groups} code=${code} />
    <${Letters} key=${code} code=${code} />
    <${Blocked} />`;
}

/** @type {Columns<ErrorGroup>} */
const GROUPS = [
  ["event", "Code", ({ errorCode }) => errorCode ?? "none"],
  ["error", "Error", ({ error }) => html`<span title=${error}>${error}</span>`],
  ["count", "Count", (group) => count(group.count)],
  ["at lesser", "Oldest", ({ oldestAt }) => clockTime(oldestAt)],
  ["at lesser", "Newest", ({ newestAt }) => clockTime(newestAt)],
  ["acts", "Example", ({ exampleId }) => html`<${EventLink} id=${exampleId} />`],
];

/** Each look goes through all dead letters, so many are not looked at again with each new one. @param {Props} props */
function Groups({ code }) {
  const dead = useLive().overview?.gauges.dead ?? 0;
  const each = useNews("dead", "deadLettered");
  const news = dead > 2_000 ? Math.round(dead / 1_000) : each;
  const pages = usePages((_after, signal) => get("api/groups", signal), news);
  const table = {
    caption: "Errors",
    columns: GROUPS,
    keyOf: (/** @type {ErrorGroup} */ { errorCode, error }) => `${errorCode} ${error}`,
    hrefOf: (/** @type {ErrorGroup} */ { errorCode }) =>
      errorCode && href("dead", null, { code: errorCode === code ? null : errorCode }),
  };
  return html`<section class="groups"><h2>By error</h2><${Listed} isWhole pages=${pages} empty="No dead letters." table=${table} /></section>`;
}

/** @param {Props} props */
function Letters({ code }) {
  const [picked, choose] = useState(/** @type {readonly number[]} */ ([]));
  const query = { states: ["dead"], ...(code && { errorCode: code }) };
  const pages = usePages(
    (after, signal) => post("api/events", { ...query, after, limit: PER_PAGE }, signal),
    useNews("dead", "deadLettered"),
    picked.length > 0,
  );
  const ids = (pages.rows ?? []).map(({ id }) => id);
  // Nothing is acted on that is not seen.
  const chosen = picked.filter((id) => ids.includes(id));
  useEffect(() => {
    if (chosen.length < picked.length) choose(chosen);
  }, [pages.rows]);
  const isAll = chosen.length > 0 && chosen.length === ids.length;
  const what = code ? `dead letters with the code ${code}` : "dead letters";
  const few = (/** @type {string} */ act) => {
    const paths = chosen.toSorted((a, b) => a - b).map((id) => `api/events/${id}/${act}`);
    return html`<${BulkButton} ...${{ act, what, paths }} which="selected" />`;
  };
  /** @type {Columns<EventShape>} */
  const columns = [
    [
      "choose",
      "✓",
      ({ id }) => {
        const isChosen = chosen.includes(id);
        const flip = () => choose(isChosen ? chosen.filter((one) => one !== id) : [...chosen, id]);
        return html`<input type="checkbox" aria-label=${`Select event ${id}`} checked=${isChosen} onChange=${flip} />`;
      },
    ],
    [
      "event",
      "Event",
      ({ id, lane, eventType, sequence, messageId }) =>
        html`<a data-row href=${href("message", lane, { event: id })}>${eventType} #${sequence}</a> ${shortId(messageId)}`,
    ],
    ["error", "Error", ({ errorCode, error }) => html`<span title=${error}>${errorCode}: ${error}</span>`],
    ["at lesser", "Failed", ({ finishedAt }) => clockTime(finishedAt)],
    ["acts", "Acts", ({ id }) => html`<${ActButtons} acts=${ACTS} of=${`api/events/${id}`} about=${`event ${id}`} />`],
  ];
  return html`<section>
    <h2>${code ? `With the code ${code}` : "All"} ${code && html`<a href=${href("dead")}>Show all</a>`}</h2>
    <p class="acts">
      ${ACTS.map((act) => html`<${BulkButton} ...${{ act, what }} which="all" work=${{ query }} />`)}
      <label><input type="checkbox" checked=${isAll} onChange=${() => choose(isAll ? [] : ids)} /> ${count(chosen.length)} selected</label>
      ${ACTS.map(few)}
    </p>
    <${Listed} pages=${pages} empty="No dead letters." table=${{ caption: what, columns }} />
  </section>`;
}

function Blocked() {
  const pages = usePages(
    (after, signal) => post("api/messages", { statuses: ["blocked"], after, limit: PER_PAGE }, signal),
    useNews("blockedLanes", "deadLettered"),
  );
  /** @type {Columns<SummaryShape>} */
  const columns = [
    [
      "event",
      "Message",
      ({ lane, messageId }) => html`<a data-row href=${href("message", lane)}>${messageId || "no id"}</a>`,
    ],
    ["error", "Newest event", ({ newest }) => `${newest.eventType} #${newest.sequence}`],
    ["at lesser", "Accepted", ({ newest }) => clockTime(newest.acceptedAt)],
    [
      "acts",
      "Acts",
      ({ lane, messageId }) =>
        html`<${ActButtons} acts=${["unblock"]} of=${`api/messages/${lane}`} about=${messageId || `message ${lane}`} />`,
    ],
  ];
  return html`<section><h2>Blocked messages</h2>
    <p class="acts"><${BulkButton} act="unblock" which="all" what="messages" work=${{}} /></p>
    <${Listed} pages=${pages} empty="No message is blocked." table=${{ caption: "Blocked messages", columns }} />
  </section>`;
}
