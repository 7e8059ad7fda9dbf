/** Lists to act on: in pages, and still while the user works in them. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { EventPage, ListPage, Overview } from "../api.ts";
import { say, sayWhy } from "./acts.tsx";
import { post } from "./api.ts";
import { useData, useLive } from "./live.ts";
import { DataTable, type DataTableProps, Empty, ErrorNote, Pager, type Steps, useListener } from "./parts.tsx";
import { go, ifStillWanted } from "./router.ts";

export const PER_PAGE = 50;
/** Matches while the user points at a list, has the focus in it, or answers a dialog. */
const IN_USE = "dialog[open], .acting:is(:hover, :focus-within)";

/** For `usePages`: changes when a list of this gauge may have changed. The gauge alone may be the same again, for another row. */
export function useNews(gauge: keyof Overview["gauges"], counter: keyof Overview["counters"]): string | null {
  const { overview } = useLive();
  return overview && `${overview.gauges[gauge]} ${overview.counters[counter]}`;
}

export interface Pages<T> {
  readonly rows: readonly T[] | null;
  readonly error: unknown;
  readonly reload: () => void;
  readonly steps: Steps;
}

export type LoadPage<T> = (after: number | undefined, signal: AbortSignal) => Promise<ListPage<T> | readonly T[]>;

/**
 * Loads again when `news` changes, but not while `held` or while the user works in a list; and after each act. `news` is null while it is
 * not known. Give a component that uses it a `key` of its filters.
 */
export function usePages<T>(load: LoadPage<T>, news: unknown, held = false): Pages<T> {
  const [path, setPath] = useState<readonly number[]>([]);
  const turn = useTurn(news, held);
  const after = path.at(-1);
  const { data, error, reload } = useData((signal) => load(after, signal), [after, turn], { held: true });
  useListener(window, "acted", reload);
  const page = data !== null && "items" in data ? data : { items: data, next: null };
  const { items: rows, next } = page;
  // An act may have emptied this page, and an empty page has no way back.
  useEffect(() => {
    if (rows?.length === 0 && next === null) setPath([]);
  }, [rows, next]);
  const isFirst = after === undefined;
  // While the next page loads, `next` still is that of the page before.
  const isLast = next === null || next === after;
  const steps = {
    onNewest: isFirst ? null : () => setPath([]),
    onPrevious: isFirst ? null : () => setPath(path.slice(0, -1)),
    onNext: isLast ? null : () => setPath([...path, next]),
  };
  return { rows, error, reload, steps };
}

/** Grows each time that `news` changed and the list may change. The first known `news` does not count as a change. */
function useTurn(news: unknown, held: boolean): number {
  const last = useRef({ news, turn: 0 });
  const isFirst = last.current.news === null;
  if (news !== last.current.news && (isFirst || (!held && document.querySelector(IN_USE) === null)))
    last.current = { news, turn: last.current.turn + (isFirst ? 0 : 1) };
  return last.current.turn;
}

export interface ListedProps<T> {
  readonly pages: Pages<T>;
  /** Shown when there is no row. */
  readonly empty: string;
  /** The list has no pages. */
  readonly isWhole?: boolean;
  readonly table: Omit<DataTableProps<T>, "rows">;
}

export function Listed<T extends object>({
  pages: { rows, error, reload, steps },
  empty,
  isWhole,
  table,
}: ListedProps<T>) {
  return (
    <>
      {!isWhole && <Pager of={table.caption} {...steps} />}
      <ErrorNote error={error} onRetry={reload} />
      <div class={rows || error ? "list acting" : "list acting loading"}>
        {rows?.length === 0 ? <Empty>{empty}</Empty> : <DataTable keyOf={idOf} {...table} rows={rows ?? []} />}
      </div>
    </>
  );
}

function idOf(row: object, index: number): number {
  if ("id" in row && typeof row.id === "number") return row.id;
  return "laneId" in row && typeof row.laneId === "number" ? row.laneId : index;
}

/** Opens the lane of an event of which only the id is known. */
export function EventLink({ id }: { readonly id: number }) {
  const open = async () => {
    const { items } = await ifStillWanted(post<EventPage>("api/events", { after: id + 1, limit: 1 }));
    const [event] = items;
    if (event?.id === id) go("lane", event.laneId, { event: id });
    else say(`Event ${id} is no longer in the inbox.`);
  };
  return (
    <button type="button" class="plain" onClick={() => open().catch(sayWhy)}>
      event {id}
    </button>
  );
}
