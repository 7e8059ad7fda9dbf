/** Lists to work with: in pages, and without change under the hands. */
import { say, sayWhy } from "./acts.js";
import { post } from "./api.js";
import { useData, useLive } from "./live.js";
import { Empty, ErrorNote } from "./parts/error.js";
import { useListener } from "./parts/listen.js";
import { Pager } from "./parts/pager.js";
import { Table } from "./parts/table.js";
import { awaited, go } from "./router.js";
import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";

export const PER_PAGE = 50;
/** Where somebody points at, or is. */
const HANDS = "dialog[open], .acting:is(:hover, :focus-within)";

/**
 * For `usePages`. A gauge alone can be back at what it was, with another row behind it.
 *
 * @import { Overview } from "../api.ts"
 * @param {keyof Overview["gauges"]} gauge
 * @param {keyof Overview["counters"]} counter
 */
export function useNews(gauge, counter) {
  const { overview } = useLive();
  return overview && `${overview.gauges[gauge]} ${overview.counters[counter]}`;
}

/**
 * Asks again when `news` is another, but not while something is selected, asked about or pointed at; and after each act. Whoever uses it is keyed by its filters.
 *
 * @import { EventPage, ListPage } from "../api.ts"
 * @template T
 * @param {(after: number | undefined, signal: AbortSignal) => Promise<ListPage<T> | readonly T[]>} ask
 * @param {unknown} news null while it is not known
 * @param {boolean} [isHeld]
 */
export function usePages(ask, news, isHeld) {
  const [path, setPath] = useState(/** @type {readonly number[]} */ ([]));
  const heard = useRef({ news, turn: 0 });
  const { news: last, turn } = heard.current;
  if (news !== last && (last === null || (!isHeld && document.querySelector(HANDS) === null)))
    heard.current = { news, turn: last === null ? turn : turn + 1 };
  const after = path.at(-1);
  const { data, error, reload } = useData((signal) => ask(after, signal), [after, heard.current.turn], { held: true });
  useListener(window, "acted", reload);
  const { items: rows = null, next = null } = data && "items" in data ? data : { items: data };
  // What is on a page may be gone by an act, and there is no way back on an empty one.
  useEffect(() => {
    if (rows?.length === 0 && next === null) setPath([]);
  }, [rows]);
  const steps = {
    onNewest: after === undefined ? null : () => setPath([]),
    onPrevious: after === undefined ? null : () => setPath(path.slice(0, -1)),
    // Until the next page is there, its own next one is not known.
    onNext: next === null || next === after ? null : () => setPath([...path, next]),
  };
  return { rows, error, reload, steps };
}

/** @param {{ pages: ReturnType<typeof usePages>, empty: string, isWhole?: boolean, table: { caption: string } }} props `isWhole` has no pages */
export function Listed({ pages: { rows, error, reload, steps }, empty, isWhole, table }) {
  const keyOf = (/** @type {{ id?: number, lane: number }} */ { id, lane }) => id ?? lane;
  return html`${!isWhole && html`<${Pager} of=${table.caption} ...${steps} />`}
    <${ErrorNote} error=${error} onRetry=${reload} />
    <div class=${rows || error ? "list acting" : "list acting loading"}>
      ${rows?.length === 0 ? html`<${Empty}>${empty}<//>` : html`<${Table} keyOf=${keyOf} ...${table} rows=${rows ?? []} />`}
    </div>`;
}

/** Opens the message of an event of which only the id is known. @param {{ id: number }} props */
export function EventLink({ id }) {
  const find = async () => {
    /** @type {EventPage} */
    const { items } = await awaited(post("api/events", { after: id + 1, limit: 1 }));
    const [event] = items;
    if (event?.id === id) go("message", event.lane, { event: id });
    else say(`Event ${id} is no longer in the inbox.`);
  };
  return html`<button class="plain" onClick=${() => find().catch(sayWhy)}>event ${id}</button>`;
}
