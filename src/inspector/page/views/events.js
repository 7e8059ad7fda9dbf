/** The live list: what came, the newest first. */
import { download, post } from "../api.js";
import { useData, useLive } from "../live.js";
import { StateBadge } from "../parts/badge.js";
import { Empty, ErrorNote } from "../parts/error.js";
import { fromAddress, queryOf, toAddress } from "../parts/filter.js";
import { clockTime, duration, shortId } from "../parts/format.js";
import { Pager } from "../parts/pager.js";
import { Table } from "../parts/table.js";
import { go, href } from "../router.js";
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";

/** @typedef {import("../../api.ts").EventShape} EventShape @typedef {import("../../api.ts").EventPage} EventPage */

const LIMIT = 50;
/** Whoever moves over the list is about to press a row: it must not move away. */
const AIMING_MS = 2_000;

/** @type {readonly import("../parts/table.js").Column<EventShape>[]} */
const COLUMNS = [
  {
    name: "time",
    title: "Accepted",
    cell: (event) =>
      html`${clockTime(event.acceptedAt)}<span class="sr-only"> ${event.eventType} ${event.messageId}</span>`,
  },
  { name: "type", title: "Event type", cell: ({ eventType }) => eventType },
  { name: "message", title: "Message", cell: ({ messageId }) => (messageId ? shortId(messageId) : "–") },
  { name: "sequence", title: "Sequence", cell: ({ sequence }) => sequence },
  { name: "state", title: "State", cell: (event) => html`<${StateBadge} ...${event} />` },
  {
    name: "took",
    title: "Settled after",
    lesser: true,
    cell: ({ acceptedAt, finishedAt }) => duration(finishedAt && finishedAt - acceptedAt),
  },
  { name: "attempts", title: "Attempts", lesser: true, cell: ({ attempts }) => attempts },
  {
    name: "repeats",
    title: "Duplicates",
    lesser: true,
    cell: ({ duplicates, conflict }) => `${duplicates || "–"}${conflict ? ", conflict" : ""}`,
  },
  { name: "error", title: "Error", lesser: true, cell: ({ errorCode }) => errorCode ?? "" },
];

/** @param {{ params: Readonly<Record<string, string>> }} props */
export function EventsView({ params }) {
  const { after, ...filters } = params;
  const query = queryOf(filters);
  const [isPaused, setPaused] = useState(false);
  const [isHeld, holding] = useHold();
  const held = isPaused || isHeld;
  const asked = { ...query, limit: LIMIT, ...(after && { after: Number(after) }) };
  /** @type {{ data: EventPage | null, error: unknown, reload: () => void }} */
  const { data, error, reload } = useData((signal) => post("api/events", asked, signal), [JSON.stringify(asked)], {
    held,
  });
  const items = data?.items ?? [];
  /** @param {number | null} [id] */
  const page = (id) => go("events", null, { ...filters, after: id });
  const next = data?.next ?? null;
  return html`<div class="head">
      <h1>Events</h1>
      <span class="flow"><${Flow} isPaused=${isPaused} isHeld=${isHeld} /></span>
      <button type="button" aria-pressed=${`${isPaused}`} onClick=${() => setPaused(!isPaused)}>Pause</button>
      <${Csv} query=${query} />
      <${Pager}
        onNewest=${after ? () => page() : null}
        onPrevious=${after ? async () => page(await before(query, items[0])) : null}
        onNext=${next === null ? null : () => page(next)}
      />
    </div>
    <${Filters} params=${filters} />
    <${ErrorNote} error=${error} onRetry=${reload} />
    <div class="list events" ...${holding}>
      <${Table} caption="Events, the newest first" columns=${COLUMNS} rows=${items} keyOf=${place} hrefOf=${hrefOf} />
      ${data !== null && items.length === 0 && html`<${Empty}>No event matches.<//>`}
    </div>`;
}

/** Rows stay where they are and get new words: rows that move down would be a shift of the layout. @type {(row: EventShape, index: number) => number} */
const place = (_row, index) => index;
/** @param {EventShape} event */
const hrefOf = ({ lane }) => href("message", lane);

/** Where the page before begins; undefined for the newest. @param {object} query @param {EventShape | undefined} first */
async function before(query, first) {
  if (first === undefined) return;
  /** @type {EventPage} */
  const { items, next } = await post("api/events", { ...query, order: "oldest", after: first.id, limit: LIMIT });
  const last = items.at(-1);
  return next === null || last === undefined ? undefined : last.id + 1;
}

/** @param {{ isPaused: boolean, isHeld: boolean }} props */
function Flow({ isPaused, isHeld }) {
  const { connected } = useLive();
  if (isPaused) return "Paused";
  if (!connected) return "Waiting for the connection";
  return isHeld ? "Held while you choose a row" : "Follows what comes";
}

/** The list stands still while a row has the focus, and while the pointer moves over it. @returns {[boolean, object]} */
function useHold() {
  const [isFocused, setFocused] = useState(false);
  const [isAiming, setAiming] = useState(false);
  /** @type {import("../vendor/htm-preact.js").Ref<ReturnType<typeof setTimeout> | undefined>} */
  const timer = useRef(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const aim = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setAiming(false), AIMING_MS);
    setAiming(true);
  };
  const holding = { onfocusin: () => setFocused(true), onfocusout: () => setFocused(false), onPointerMove: aim };
  return [isFocused || isAiming, holding];
}

/** @param {{ query: object }} props */
function Csv({ query }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const save = () =>
    download("api/events", { ...query, format: "csv" }, "events.csv").then(() => setError(null), setError);
  return html`<button type="button" title="What matches, up to 10,000 events" onClick=${save}>CSV</button><${ErrorNote} error=${error} />`;
}

const STATES = ["pending", "done", "handled", "unhandled", "dead", "late", "discarded"];
const EITHER = ["yes", "no"];
/** @type {readonly { name: string, title: string, of?: readonly string[], type?: string }[]} */
const FIELDS = [
  { name: "state", title: "State", of: STATES },
  { name: "type", title: "Event type" },
  { name: "message", title: "Message id" },
  { name: "error", title: "Error code" },
  { name: "reference", title: "Reference" },
  { name: "peer", title: "Number, whole", type: "tel" },
  { name: "late", title: "Late", of: EITHER },
  { name: "conflict", title: "Conflict", of: EITHER },
  { name: "from", title: "Accepted from", type: "datetime-local" },
  { name: "to", title: "Accepted to", type: "datetime-local" },
];
const ALWAYS_SHOWN = 4;

/** What is written counts once the field is left, or Enter pressed. @param {{ params: Readonly<Record<string, string>> }} props */
function Filters({ params }) {
  const given = JSON.stringify(params);
  const [draft, setDraft] = useState(/** @type {Readonly<Record<string, string>>} */ ({}));
  useEffect(() => setDraft({}), [given]);
  const apply = (/** @type {Readonly<Record<string, string>>} */ news = draft) => {
    const changed = Object.entries(news).map(([name, text]) => [name, toAddress(name, text.trim())]);
    go("events", null, { ...params, ...Object.fromEntries(changed) });
  };
  /** @param {(typeof FIELDS)[number]} field */
  const field = ({ name, title, of, type = "text" }) => {
    const value = draft[name] ?? fromAddress(params[name] ?? "");
    const write = (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) => {
      setDraft({ ...draft, [name]: currentTarget.value });
    };
    const use = (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) =>
      apply({ [name]: currentTarget.value });
    const input = of
      ? html`<select value=${value} onChange=${use}><option value="">Any</option>${of.map((one) => html`<option key=${one}>${one}</option>`)}</select>`
      : html`<input type=${type} value=${value} maxlength="256" autocomplete="off" spellcheck="false" onInput=${write} onChange=${use} />`;
    return html`<label key=${name}>${title}${input}</label>`;
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    apply();
  };
  const more = FIELDS.slice(ALWAYS_SHOWN);
  const used = more.filter(({ name }) => params[name]).length;
  return html`<form class="filters" onSubmit=${submit}>
    ${FIELDS.slice(0, ALWAYS_SHOWN).map(field)}
    <button type="submit">Filter</button>
    <button type="button" aria-disabled=${given === "{}" ? "true" : null} onClick=${() => go("events")}>Clear</button>
    <details class="more">
      <summary>More filters${used > 0 ? ` (${used} set)` : ""}</summary>
      <div>${more.map(field)}</div>
    </details>
  </form>`;
}
