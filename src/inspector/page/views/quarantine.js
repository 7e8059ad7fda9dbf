/** The quarantine: bodies that were signed correctly, and are no event. */
import { ActButtons, say, sayWhy, useAccess } from "../acts.js";
import { get, post } from "../api.js";
import { BulkButton } from "../bulk.js";
import { EventLink, Listed, PER_PAGE, useNews, usePages } from "../listed.js";
import { useData } from "../live.js";
import { StateBadge } from "../parts/badge.js";
import { ErrorNote } from "../parts/error.js";
import { clockTime, count, time } from "../parts/format.js";
import { optionsOf } from "../parts/options.js";
import { go, href } from "../router.js";
import { html, useRef, useState } from "../vendor/htm-preact.js";
import { Body, Facts } from "./event-detail.js";

/**
 * @import { QuarantineDetail, QuarantinePage, QuarantineShape } from "../../api.ts"
 * @typedef {Readonly<Record<string, string>>} Filter
 */

const ACTS = ["replay_quarantined", "discard_quarantined"];
const WHAT =
  "These deliveries were signed correctly, but no event can be read from their bodies. They are kept until somebody replays or discards them.";
/** The reasons are the parser's. */
const OPTIONS = {
  state: "held replayed discarded any",
  reason:
    "any invalid_event invalid_json not_an_object invalid_utf8 byte_order_mark too_deep forbidden_key duplicate_key",
};
const MOST_LOOKS = 20;

/** @param {{ id: number | null, params: Filter }} props */
export function QuarantineView({ id, params: { state = "held", reason = "any" } }) {
  const filter = { state, reason };
  if (id !== null) return html`<${Detail} id=${id} />`;
  return html`<div class="head"><h1>Quarantine</h1></div>
    <p>${WHAT}</p>
    <p class="acts">${Object.entries(OPTIONS).map(([name, options]) => html`<${Choice} ...${{ name, options, filter }} />`)}</p>
    <${List} key=${state + reason} filter=${filter} />`;
}

/** @param {{ name: string, options: string, filter: Filter }} props */
function Choice({ name, options, filter }) {
  const choose = (/** @type {{ currentTarget: HTMLSelectElement }} */ { currentTarget }) =>
    go("quarantine", null, { ...filter, [name]: currentTarget.value });
  return html`<label>With the ${name} <select onChange=${choose}>
    ${optionsOf(options, filter[name])}
  </select></label>`;
}

/** The inbox lists no single reason: page after page is looked through, but not without end. */
/** @param {Filter} filter @param {number | undefined} after @param {AbortSignal} signal */
async function load({ state, reason }, after, signal) {
  const items = [];
  for (let looks = 1; ; looks++) {
    const query = `limit=${PER_PAGE}${state === "any" ? "" : `&state=${state}`}${after ? `&after=${after}` : ""}`;
    /** @type {QuarantinePage} */
    const page = await get(`api/quarantine?${query}`, signal);
    items.push(...page.items.filter((item) => reason === "any" || item.reason === reason));
    after = page.next ?? undefined;
    if (reason === "any" || !after || items.length >= PER_PAGE || looks === MOST_LOOKS)
      return { items, next: page.next };
  }
}

/** @param {{ filter: Filter }} props */
function List({ filter }) {
  const pages = usePages((after, signal) => load(filter, after, signal), useNews("quarantined", "quarantined"));
  const { reason } = filter;
  const [what, work] = reason === "any" ? ["held bodies", {}] : [`held bodies with the reason ${reason}`, { reason }];
  /** @type {import("../parts/table.js").Column<QuarantineShape>[]} */
  const columns = [
    ["event", "Reason", (row) => row.reason],
    ["count lesser", "Bytes", ({ bytes }) => count(bytes)],
    ["at", "Accepted", ({ acceptedAt }) => clockTime(acceptedAt)],
    ["count lesser", "Secret", ({ slot }) => slot],
    ["state", "State", ({ state }) => html`<${StateBadge} state=${state} />`],
    ["acts", "Acts", (row) => actsOn(row)],
  ];
  const hrefOf = (/** @type {QuarantineShape} */ { id }) => href("quarantine", id);
  return html`<p class="acts">
      ${ACTS.map((act) => html`<${BulkButton} which="all" ...${{ act, what, work }} />`)}
    </p>
    <${Listed} pages=${pages} empty="Nothing here." table=${{ caption: "Quarantined bodies", columns, hrefOf }} />`;
}

/** @param {QuarantineShape} row @param {() => void} [onDone] */
function actsOn({ id, state }, onDone) {
  if (state !== "held") return null;
  return html`<${ActButtons} acts=${ACTS} of=${`api/quarantine/${id}`} about=${`body ${id}`} onDone=${onDone} />`;
}

/** @param {{ id: number }} props */
function Detail({ id }) {
  const { canReveal, refused } = useAccess();
  const [revealed, setRevealed] = useState(/** @type {QuarantineDetail | null} */ (null));
  const { data, error, reload } = useData((signal) => get(`api/quarantine/${id}`, signal), [id]);
  /** @type {QuarantineDetail | null} */
  const row = data;
  // Each reveal is in the audit: once is enough, and none comes after "Mask".
  const isAsked = useRef(false);
  const reveal = async () => {
    if (isAsked.current) return;
    isAsked.current = true;
    await post(`api/quarantine/${id}/reveal`, {}).then(setRevealed, sayWhy);
    isAsked.current = false;
  };
  const flip = () =>
    revealed ? setRevealed(null) : canReveal ? reveal() : say(refused("You may not see numbers and texts."));
  const facts = row && {
    State: html`<${StateBadge} state=${row.state} /> ${row.replayedAs && html`as <${EventLink} id=${row.replayedAs} />`}`,
    Reason: row.reason,
    Secret: `${row.slot}, which vouches for ${row.scope}`,
    "Signed (verified)": time(row.signedAt),
    Accepted: time(row.acceptedAt),
    Trace: html`<code>${row.trace ?? "–"}</code>`,
    Digest: html`<code>${(revealed ?? row).digest ?? "shown with the body"}</code>`,
  };
  return html`<div class="head"><h1>Quarantined body ${id}</h1><a href=${href("quarantine")}>All</a></div>
    <p>${WHAT}</p>
    <${ErrorNote} error=${error} onRetry=${reload} />
    ${
      facts &&
      html`<section class="panel">
      <div class="head"><h2>Delivery</h2>${actsOn(row, reload)}</div>
      <${Facts} isColumn of=${facts} />
      <button aria-disabled=${canReveal ? null : "true"} onClick=${flip}>${revealed ? "Mask" : "Reveal"}</button>
      <${Body} event=${revealed ?? row} />
    </section>`
    }`;
}
