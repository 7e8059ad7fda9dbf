/** Goes through all events that match, page by page, for work on many of them. */
import type { EventId, EventRecord, EventState } from "../../inbox/record.ts";
import type { EventQuery, Page } from "../../inbox/store.ts";
import { invalidOption } from "../../internal/options.ts";
import { checkEventFilter, type EventFilter } from "../queries.ts";

/** Bodies are read with them, and each may have a megabyte. */
const PAGE = 100;

/** Which events; dead letters unless `states` says otherwise. All filters must match. */
export type BulkQuery = EventFilter;

/** What it needs of an inbox. */
export interface Finder {
  find(query: Partial<EventQuery>): Promise<Page<EventRecord>>;
}

/** The newest event, for `upTo`; 0 while there is none. */
export async function newestEvent(inbox: Finder): Promise<EventId> {
  const [newest] = (await inbox.find({ limit: 1 })).items;
  return newest?.id ?? 0;
}

/** Which of those that match. */
export interface Bounds {
  /** The states that the work is meant for. */
  readonly allowed: readonly EventState[];
  /** The last id that is taken. */
  readonly upTo?: EventId;
}

/**
 * The matching events in the order of their acceptance. The event loop gets its turn between two pages.
 *
 * @throws SetupError for an unknown filter, or a state that is not among them
 */
export async function* matching(
  inbox: Finder,
  query: BulkQuery,
  { allowed, upTo = Number.MAX_SAFE_INTEGER }: Bounds,
): AsyncGenerator<EventRecord> {
  checkEventFilter(query);
  const { states = ["dead"], ...filters } = query;
  if (!Array.isArray(states) || !states.every((state) => allowed.includes(state)))
    throw invalidOption("states", `must be a list of ${allowed.map((state) => `"${state}"`).join(", ")}`, states);
  const asked = { ...filters, states, order: "oldest", limit: PAGE } as const;
  for (let after: number | null | undefined; after !== null; ) {
    const page: Page<EventRecord> = await inbox.find(after === undefined ? asked : { ...asked, after });
    for (const event of page.items) {
      if (event.id > upTo) return;
      yield event;
    }
    after = page.next;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
