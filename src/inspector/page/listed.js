/** Lists to work with: in pages, and without change under the hands. */

import { refusal, say } from "./acts.js";
import { post } from "./api.js";
import { useData } from "./live.js";
import { Empty, ErrorNote } from "./parts/error.js";
import { Pager } from "./parts/pager.js";
import { Table } from "./parts/table.js";
import { go } from "./router.js";
import { html, useRef, useState } from "./vendor/htm-preact.js";

export const PER_PAGE = 50;

/**
 * Asks again when `news` is another, but not while something is selected or asked about. Its owner keys it by its filters.
 *
 * @template T
 * @param {(after: number | undefined, signal: AbortSignal) => Promise<import("../api.ts").ListPage<T>>} ask
 * @param {unknown} news
 * @param {boolean} [isHeld]
 */
export function usePages(ask, news, isHeld = false) {
  /** @type {[number[], (next: number[]) => void]} */
  const [path, setPath] = useState(/** @type {number[]} */ ([]));
  const after = path.at(-1);
  const heard = useRef(news);
  if (!isHeld && document.querySelector("dialog[open]") === null) heard.current = news;
  const { data, error, reload } = useData((signal) => ask(after, signal), [after, heard.current], { held: true });
  const next = data?.next ?? null;
  return {
    rows: data?.items ?? null,
    error,
    reload,
    pager: {
      onNewest: after === undefined ? null : () => setPath([]),
      onPrevious: after === undefined ? null : () => setPath(path.slice(0, -1)),
      onNext: next === null ? null : () => setPath([...path, next]),
    },
  };
}

/** @param {{ pages: { rows: readonly any[] | null, error: unknown, reload: () => void, pager: object }, shown?: string, empty: string, table: object }} props */
export function Listed({ pages: { rows, error, reload, pager }, shown, empty, table }) {
  return html`<${Pager} ...${pager}>${shown}<//>
    <${ErrorNote} error=${error} onRetry=${reload} />
    <div class="list acting">${rows?.length === 0 ? html`<${Empty}>${empty}<//>` : html`<${Table} keyOf=${idOf} ...${table} rows=${rows ?? []} />`}</div>`;
}

/** @param {{ id?: number, lane: number }} row */
function idOf({ id, lane }) {
  return id ?? lane;
}

/** Opens the message of an event of which only the id is known. @param {{ id: number }} props */
export function EventLink({ id }) {
  const open = async () => {
    try {
      /** @type {import("../api.ts").EventPage} */
      const { items } = await post("api/events", { after: id + 1, limit: 1 });
      const [event] = items;
      if (event?.id === id) go("message", event.lane, { event: id });
      else say(`Event ${id} is no longer in the inbox.`);
    } catch (error) {
      say(refusal(error));
    }
  };
  return html`<button type="button" class="link" onClick=${open}>event ${id}</button>`;
}
