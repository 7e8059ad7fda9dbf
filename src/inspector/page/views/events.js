/** The live list: what came, the newest first. */
import { download, post } from "../api.js";
import { useData, useLive } from "../live.js";
import { StateBadge } from "../parts/badge.js";
import { Empty, ErrorNote } from "../parts/error.js";
import { queryOf } from "../parts/filter.js";
import { clockTime, duration, shortId } from "../parts/format.js";
import { Pager } from "../parts/pager.js";
import { Table } from "../parts/table.js";
import { awaited, go, href } from "../router.js";
import { html, useEffect, useRef, useState } from "../vendor/htm-preact.js";
import { Filters } from "./filters.js";

/** @import { EventPage, EventShape } from "../../api.ts" @typedef {Readonly<Record<string, string>>} Texts */

const LIMIT = 50;
const AIMING_MS = 2_000;

/** Their rows have no keys: if they moved down, the layout would shift. @type {readonly import("../parts/table.js").Column<EventShape>[]} */
const COLUMNS = [
  [
    "time",
    "Accepted",
    (event) => html`${clockTime(event.acceptedAt)}<span class="sr-only"> ${event.eventType} ${event.messageId}</span>`,
  ],
  ["type", "Event type", ({ eventType }) => eventType],
  ["message lesser", "Message", ({ messageId }) => shortId(messageId || "–")],
  ["count lesser", "Sequence", ({ sequence }) => sequence],
  ["state", "State", (event) => html`<${StateBadge} ...${event} />`],
  ["took lesser", "Settled after", ({ acceptedAt, finishedAt }) => duration(finishedAt && finishedAt - acceptedAt)],
  ["count lesser", "Attempts", ({ attempts }) => attempts],
  ["repeats lesser", "Duplicates", ({ duplicates, conflict }) => `${duplicates || "–"}${conflict ? " conflict" : ""}`],
  ["error lesser", "Error", ({ errorCode }) => errorCode],
];

/** @param {{ params: Readonly<Record<string, string>> }} props */
export function EventsView({ params: { after, ...filters } }) {
  const { connected } = useLive();
  const [isPaused, setPaused] = useState(false);
  const [isHeld, holding] = useHold();
  const [failure, setFailure] = useState(/** @type {unknown} */ (null));
  const key = JSON.stringify([after, filters]);
  /** @param {AbortSignal} signal @returns {Promise<EventPage & { of: string }>} */
  const load = async (signal) => {
    const asked = { ...queryOf(filters), limit: LIMIT, ...(after && { after: Number(after) }) };
    return { ...(await post("api/events", asked, signal)), of: key };
  };
  // It was of the list before.
  useEffect(() => setFailure(null), [key]);
  const held = isPaused || isHeld;
  const { data: newest, error, reload } = useData(load, [key], { held });
  const shown = useRef(newest);
  // An answer that was under way when the list was held is not shown either.
  if (!held || shown.current?.of !== key) shown.current = newest;
  const data = shown.current;
  // What was asked before stays until the answer, but is none when there is an error instead.
  const { items = [], next = null } = error && data?.of !== key ? {} : (data ?? {});
  const open = (/** @type {number | null} */ id) => go("events", null, { ...filters, after: id });
  const back = () => awaited(before(filters, items[0])).then(open, setFailure);
  const save = () => saved(filters).then(() => setFailure(null), setFailure);
  const flow = isPaused
    ? "Paused"
    : isHeld
      ? "Held while you choose"
      : connected
        ? "Follows what comes"
        : "Not connected";
  return html`<div class="head">
      <h1>Events</h1>
      <span class="flow muted">${flow}</span>
      <button aria-pressed=${`${isPaused}`} onClick=${() => setPaused(!isPaused)}>Pause</button>
      <button title="What matches, up to 10,000 events" onClick=${save}>CSV</button>
      <${Pager} onNewest=${after && (() => open(null))} onPrevious=${after && back} onNext=${next && (() => open(next))} />
    </div>
    <${Filters} params=${filters} />
    <${ErrorNote} error=${failure ?? error} onRetry=${failure ? null : reload} />
    <div class="list events" ...${holding}>
      <${Table} caption="Events, the newest first" columns=${COLUMNS} rows=${items} hrefOf=${hrefOf} />
      ${data && !error && !items[0] && html`<${Empty}>No event matches.<//>`}
    </div>`;
}

const hrefOf = (/** @type {EventShape} */ { lane, id }) => href("message", lane, { event: id });

/** @param {Texts} filters */
async function saved(filters) {
  await download("api/events", { ...queryOf(filters), format: "csv" }, "events.csv");
}

/** What the page before comes after; null for the newest. @param {Texts} filters @param {EventShape | undefined} first */
async function before(filters, first) {
  if (!first) return null;
  /** @type {EventPage} */
  const { items, next } = await post("api/events", {
    ...queryOf(filters),
    order: "oldest",
    after: first.id,
    limit: LIMIT,
  });
  return next && (items.at(-1)?.id ?? 0) + 1;
}

/** While a row has the focus, or the pointer moves to one, it must not change under it. @returns {[boolean, object]} */
function useHold() {
  const [isFocused, setFocused] = useState(false);
  const [isAiming, setAiming] = useState(false);
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const aim = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setAiming(false), AIMING_MS);
    setAiming(true);
  };
  const holding = { onfocusin: () => setFocused(true), onfocusout: () => setFocused(false), onPointerMove: aim };
  return [isFocused || isAiming, holding];
}
