/** `POST api/events`: the events that match, as a page or as a download. */
import { explained, failureCode, placeFields } from "../../../inbox/masking.ts";
import type { EventSummary } from "../../../inbox/record.ts";
import type { EventQuery, Page } from "../../../inbox/store.ts";
import { eventShape } from "../../../receiver/shown.ts";
import type { EventPage, EventShape } from "../api.ts";
import { type InspectorAnswer, jsonAnswer, streamed } from "../http.ts";
import { DEFAULT_PAGE, EVENT_QUERY, type Fields, oneOf, readFields } from "../input.ts";
import type { ApiCall, ApiRoute } from "../route.ts";

const MOST_ROWS = 10_000;
const ROWS_AT_ONCE = 200;

interface EventsBody extends EventQuery {
  readonly format?: "json" | "csv";
}

const BODY: Fields<EventsBody> = { ...EVENT_QUERY, format: oneOf("json", "csv") };

export const eventsRoute: ApiRoute = {
  method: "POST",
  path: "events",
  access: "read",
  async run(call) {
    const body = await readFields(call, BODY);
    if (!body.ok) return body.answer;
    const { format = "json", ...query } = body.value;
    if (format === "csv") return download(call, query);
    const { items, next } = await call.inbox.find({ limit: DEFAULT_PAGE, ...query });
    return jsonAnswer({ items: items.map((event) => eventShape(event, false)), next } satisfies EventPage);
  },
};

/** Begins at the first row, also if the page shows another part of the list. */
async function download(
  call: ApiCall,
  { after: _, limit: __, ...filter }: Partial<EventQuery>,
): Promise<InspectorAnswer> {
  const query = { ...filter, limit: ROWS_AT_ONCE };
  // Read before the answer begins, so that its status can still report an error of the inbox.
  const first = await call.inbox.find(query);
  return streamed("text/csv; charset=utf-8", lines(call, query, first), {
    "content-disposition": 'attachment; filename="oncehook-events.csv"',
  });
}

async function* lines({ inbox, logger, by }: ApiCall, query: Partial<EventQuery>, first: Page<EventSummary>) {
  let rows = 0;
  let end = "aborted";
  try {
    yield csvLine(Object.keys(COLUMNS));
    for (let page = first; ; page = await inbox.find({ ...query, after: page.next })) {
      const items = page.items.slice(0, MOST_ROWS - rows);
      rows += items.length;
      yield items.map((event) => csvLine(cellsOf(eventShape(event, false)))).join("");
      if (page.next === null || rows >= MOST_ROWS) break;
    }
    end = "done";
  } catch (error) {
    end = failureCode(error);
    logger.warn(placeFields(error), explained("A download from the inspector failed before its end.", error));
    throw error;
  } finally {
    logger.info({ by, rows, end }, "Events were exported from the inspector.");
  }
}

const COLUMNS: Readonly<Record<string, (event: EventShape) => Cell>> = {
  id: ({ id }) => id,
  source: ({ source }) => source,
  tenant: ({ tenant }) => tenant,
  lane: ({ lane }) => lane,
  order: ({ order }) => order,
  own_id: ({ ownId }) => ownId,
  sequence: ({ sequence }) => sequence,
  type: ({ eventType }) => eventType,
  state: ({ state }) => state,
  outcome: ({ outcome }) => outcome,
  late: ({ late }) => late,
  replayed: ({ forced }) => forced,
  conflict: ({ conflict }) => conflict,
  attempts: ({ attempts }) => attempts,
  duplicates: ({ duplicates }) => duplicates,
  occurred: ({ occurredAt }) => timeText(occurredAt),
  signed: ({ signedAt }) => timeText(signedAt),
  accepted: ({ acceptedAt }) => timeText(acceptedAt),
  started: ({ startedAt }) => timeText(startedAt),
  finished: ({ finishedAt }) => timeText(finishedAt),
  error_code: ({ errorCode }) => errorCode,
  error: ({ error }) => error,
  identity: ({ identity }) => identity,
};

function cellsOf(event: EventShape): readonly Cell[] {
  return Object.values(COLUMNS).map((cell) => cell(event));
}

/** A sender can claim any time, also one that a Date cannot hold. */
function timeText(at: number | null): Cell {
  if (at === null) return null;
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : date.toISOString();
}

/**
 * Where a spreadsheet could begin a formula: at these characters at the start of a cell. For some programs, a cell also starts after a
 * semicolon, a tab or a line break, quoted or not, and after one or two quotes.
 */
const FORMULAS = /^(?=[\t\r])|(?=[=+\-@])(?<=(?:^|[;\t\r\n])"*)/g;
const NEEDS_QUOTES = /[",\r\n]/;

type Cell = string | number | boolean | null;

/** A line of text/csv (RFC 4180) with its line break. No cell is a formula to the program that opens it. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: Cell): string {
  const written = cell === null ? "" : `${cell}`;
  const harmless = written.replace(FORMULAS, "'");
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
