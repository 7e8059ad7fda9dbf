/** The quarantine: bodies that were signed correctly, and are no event. */
import { RowAct, refusal, say, useAccess } from "../acts.js";
import { get, post } from "../api.js";
import { BulkButton } from "../bulk.js";
import { EventLink, Listed, PER_PAGE, usePages } from "../listed.js";
import { useData, useLive } from "../live.js";
import { StateBadge } from "../parts/badge.js";
import { ErrorNote } from "../parts/error.js";
import { clockTime, count, time } from "../parts/format.js";
import { go, href } from "../router.js";
import { html, useState } from "../vendor/htm-preact.js";

/**
 * @typedef {import("../../api.ts").QuarantineShape} QuarantineShape
 * @typedef {import("../../api.ts").QuarantineDetail} QuarantineDetail
 * @typedef {{ state: string, reason: string }} Filter
 */

const STATES = ["held", "replayed", "discarded", "any"];
/** As the parser names them. */
const REASONS =
  "invalid_event invalid_json not_an_object invalid_utf8 byte_order_mark too_deep forbidden_key duplicate_key";
const WHAT =
  "These deliveries were signed correctly, but no event can be read from their bodies. They are kept until somebody replays or discards them.";
const LOOKS = 20;

/** @param {{ id: number | null, params: Readonly<Record<string, string>> }} props */
export function QuarantineView({ id, params: { state = "held", reason = "" } }) {
  if (id !== null) return html`<${Detail} id=${id} />`;
  return html`<${List} key=${`${state} ${reason}`} filter=${{ state, reason }} />`;
}

/**
 * The inbox lists no single reason, so page by page is looked through, but not without end.
 *
 * @param {Filter} filter @param {number | undefined} after @param {AbortSignal} signal
 */
async function load({ state, reason }, after, signal) {
  /** @type {QuarantineShape[]} */
  const items = [];
  for (let looks = 1; ; looks++) {
    const query = `limit=${PER_PAGE}${state === "any" ? "" : `&state=${state}`}${after === undefined ? "" : `&after=${after}`}`;
    /** @type {import("../../api.ts").QuarantinePage} */
    const { items: some, next } = await get(`api/quarantine?${query}`, signal);
    items.push(...some.filter((item) => reason === "" || item.reason === reason));
    if (reason === "" || next === null || items.length >= PER_PAGE || looks === LOOKS) return { items, next };
    after = next;
  }
}

/** @param {{ filter: Filter }} props */
function List({ filter }) {
  const { reason } = filter;
  const pages = usePages((after, signal) => load(filter, after, signal), useLive().overview?.gauges.quarantined);
  const onDone = pages.reload;
  const bulk = (
    /** @type {string} */ act,
    /** @type {string} */ verb,
  ) => html`<${BulkButton} ...${{ act, onDone }} which="all"
    title=${`${verb} all held bodies ${reason && `with the reason ${reason}`}`} work=${(reason && { reason }) || {}} />`;
  return html`<div class="head"><h1>Quarantine</h1></div>
    <p>${WHAT}</p>
    <p class="acts">
      <${Choice} label="State" name="state" filter=${filter} options=${STATES} />
      <${Choice} label="Reason" name="reason" filter=${filter} options=${["", ...REASONS.split(" ")]} />
      ${bulk("replay_quarantined", "Replay")}${bulk("discard_quarantined", "Discard")}
    </p>
    <${Listed} pages=${pages} empty="Nothing here." table=${{ caption: "Quarantined bodies", columns: columns(onDone), hrefOf }} />`;
}

/** @param {{ label: string, name: string, filter: Record<string, string>, options: readonly string[] }} props */
function Choice({ label, name, filter, options }) {
  const change = (/** @type {Event} */ { target }) =>
    target instanceof HTMLSelectElement && go("quarantine", null, { ...filter, [name]: target.value });
  return html`<label>${label} <select onChange=${change}>
    ${options.map((option) => html`<option value=${option} selected=${filter[name] === option}>${option || "any"}</option>`)}
  </select></label>`;
}

/** @param {QuarantineShape} row */
function hrefOf({ id }) {
  return href("quarantine", id);
}

/** @param {() => void} onDone @returns {import("../parts/table.js").Column<QuarantineShape>[]} */
function columns(onDone) {
  return [
    { name: "event", title: "Reason", cell: ({ reason }) => reason },
    { name: "count", title: "Bytes", cell: ({ bytes }) => count(bytes) },
    { name: "at", title: "Accepted", cell: ({ acceptedAt }) => clockTime(acceptedAt) },
    { name: "count", title: "Secret", lesser: true, cell: ({ slot }) => slot },
    { name: "state", title: "State", cell: ({ state }) => html`<${StateBadge} state=${state} />` },
    { name: "acts", title: "Acts", cell: (row) => html`<${Acts} row=${row} onDone=${onDone} />` },
  ];
}

/** @param {{ row: QuarantineShape, onDone: () => void }} props */
function Acts({ row: { id, state }, onDone }) {
  if (state !== "held") return null;
  return ["replay_quarantined", "discard_quarantined"].map(
    (act) => html`<${RowAct} ...${{ act, onDone }} of=${`quarantine/${id}`} about=${`body ${id}`} />`,
  );
}

/** @param {{ id: number }} props */
function Detail({ id }) {
  const { canReveal } = useAccess();
  const { data, error, reload } = useData((signal) => get(`api/quarantine/${id}`, signal), [id]);
  const [revealed, setRevealed] = useState(/** @type {QuarantineDetail | null} */ (null));
  /** @type {QuarantineDetail | null} */
  const row = data;
  const reveal = () =>
    post(`api/quarantine/${id}/reveal`, {}).then(setRevealed, (/** @type {unknown} */ failure) =>
      say(refusal(failure)),
    );
  return html`<div class="head"><h1>Quarantined body ${id}</h1><a href=${href("quarantine")}>All</a></div>
    <p>${WHAT}</p>
    <${ErrorNote} error=${error} onRetry=${reload} />
    ${
      row &&
      html`<p class="acts"><${StateBadge} state=${row.state} /> <${Acts} row=${row} onDone=${reload} />
      ${row.replayedAs !== null && html`as <${EventLink} id=${row.replayedAs} />`}</p>
    <dl class="facts">${factsOf(row).map(([name, fact]) => html`<div key=${name}><dt>${name}</dt><dd>${fact}</dd></div>`)}</dl>
    <h2>Body <button type="button" aria-disabled=${canReveal ? null : "true"} title=${canReveal ? null : "You may not see numbers and texts."}
      onClick=${() => canReveal && (revealed ? setRevealed(null) : reveal())}>${revealed ? "Mask" : "Reveal"}</button></h2>
    <pre class="panel" tabindex="0">${written((revealed ?? row).body)}</pre>`
    }`;
}

/** @param {QuarantineDetail} row @returns {[string, unknown][]} */
function factsOf({ reason, slot, scope, signedAt, acceptedAt, trace, bytes, digest }) {
  return [
    ["Reason", reason],
    ["Secret", slot],
    ["It vouches for", scope],
    ["Signed", time(signedAt)],
    ["Accepted", time(acceptedAt)],
    ["Trace", trace ?? "none"],
    ["Bytes", count(bytes)],
    ["SHA-256", digest],
  ];
}

/** @param {import("../../api.ts").ShownBody | null} body */
function written(body) {
  if (body === null) return "It is gone.";
  if ("masked" in body) return typeof body.masked === "string" ? body.masked : JSON.stringify(body.masked, null, 2);
  return "text" in body ? body.text : `base64: ${body.base64}`;
}
