/** Finds events by filter, through small indexes where a filter has one, else in slices that leave the event loop free. */
import { setImmediate } from "node:timers/promises";
import type { EventRecord, QuarantineRecord } from "../../inbox/record.ts";
import type { EventQuery, Page, QuarantineQuery } from "../../inbox/store.ts";
import { HELD, OUTCOME, STATE } from "../codes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { EVENT, type EventRow, QUARANTINE, type QuarantineRow, toEvent, toQuarantine } from "./records.ts";

/** Events looked at before the event loop gets its turn. */
const SLICE = 20_000;

/** Part of a `where`, with its values. */
interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
  /** `lane`: it names a few events. `index`: an index has them in order, but they may be many, for another filter to sift. */
  readonly narrow?: "lane" | "index";
}

export function find(inbox: OpenInbox, query: EventQuery): Promise<Page<EventRecord>> {
  return inbox.during(async () => {
    const conditions = conditionsOf(query);
    const wanted = query.limit + 1;
    const rows = isQuick(conditions)
      ? read(inbox, query, conditions, wanted)
      : await readInSlices(inbox, query, conditions, wanted);
    const items = rows.slice(0, query.limit).map(toEvent);
    return { items, next: rows.length > items.length ? (items.at(-1)?.id ?? null) : null };
  });
}

/** One look will do, and takes no longer than its page. */
function isQuick(conditions: readonly Condition[]): boolean {
  return (
    conditions.some(({ narrow }) => narrow === "lane") || (conditions.length === 1 && conditions[0]?.narrow === "index")
  );
}

/** The SQL of one look, for the test of query plans. */
export function findSql(query: EventQuery): { readonly sql: string; readonly values: readonly unknown[] } {
  return statementOf(query, conditionsOf(query), query.limit + 1);
}

function read(inbox: OpenInbox, query: EventQuery, conditions: readonly Condition[], limit: number): EventRow[] {
  const { sql, values } = statementOf(query, conditions, limit);
  return inbox.db.prepare(sql).all(...values) as EventRow[];
}

function statementOf(query: EventQuery, conditions: readonly Condition[], limit: number) {
  const all = query.after === undefined ? conditions : [...conditions, afterOf(query, query.after)];
  const where = all.length === 0 ? "" : `where ${all.map(({ sql }) => sql).join(" and ")}`;
  const direction = query.order === "oldest" ? "asc" : "desc";
  const sql = `${EVENT} ${where} order by e.id ${direction} limit ?`;
  return { sql, values: [...all.flatMap(({ values }) => values), limit] };
}

function afterOf(query: EventQuery, after: number): Condition {
  return { sql: query.order === "oldest" ? "e.id > ?" : "e.id < ?", values: [after] };
}

async function readInSlices(
  inbox: OpenInbox,
  query: EventQuery,
  conditions: readonly Condition[],
  limit: number,
): Promise<EventRow[]> {
  const ends = inbox.db.prepare("select min(id) as first, max(id) as last from oncehook_event");
  const { first, last } = ends.get() as { first: number | null; last: number | null };
  if (first === null || last === null) return [];
  const oldest = query.order === "oldest";
  const rows: EventRow[] = [];
  let at = query.after === undefined ? (oldest ? first : last) : query.after + (oldest ? 1 : -1);
  while (at >= first && at <= last && rows.length < limit) {
    const [from, to] = oldest ? [at, at + SLICE - 1] : [at - SLICE + 1, at];
    const slice: Condition = { sql: "e.id between ? and ?", values: [from, to] };
    const { after: _after, ...rest } = query;
    rows.push(...read(inbox, rest, [...conditions, slice], limit - rows.length));
    at = oldest ? to + 1 : from - 1;
    await setImmediate();
  }
  return rows;
}

function conditionsOf(query: EventQuery): Condition[] {
  const all: Condition[] = [];
  const add = (value: unknown, sql: string, values: readonly unknown[] = [value]) => {
    if (value !== undefined) all.push({ sql, values });
  };
  const narrow = (value: unknown, sql: string, by: "lane" | "index") => {
    const values = typeof value === "string" ? [value] : [];
    if (value !== undefined) all.push({ sql, values, narrow: by });
  };
  if (query.states !== undefined) all.push(stateCondition(query.states.map((state) => STATE[state])));
  if (query.outcome === "unhandled") narrow(true, "e.outcome = 2", "index");
  else if (query.outcome !== undefined) add(true, "e.outcome = ?", [OUTCOME[query.outcome]]);
  if (query.late === true) narrow(true, "e.late = 1", "index");
  else if (query.late === false) add(true, "e.late = 0", []);
  if (query.conflict === true) narrow(true, "e.conflict = 1", "index");
  else if (query.conflict === false) add(true, "e.conflict = 0", []);
  narrow(query.errorCode, "e.error_code is not null and e.error_code = ?", "index");
  add(query.eventType, "e.kind = (select id from oncehook_kind where name = ?)");
  add(query.apiClientId, "l.client = (select id from oncehook_client where name = ?)");
  narrow(query.messageId, `e.lane in (${LANES_OF_MESSAGE})`, "lane");
  narrow(query.externalReference, "e.lane in (select id from oncehook_lane where reference = ?)", "lane");
  narrow(query.peer, "e.lane in (select id from oncehook_lane where peer = ?)", "lane");
  add(query.acceptedFrom, "e.accepted >= ?");
  add(query.acceptedTo, "e.accepted <= ?");
  return all;
}

/** There are few clients and tags, so that each is a look into the index of lane keys. */
export const LANES_OF_MESSAGE = `select id from oncehook_lane
  where client in (select id from oncehook_client) and tag in (0, 1, 2) and message = ?`;

/** One state alone comes in the order of its index. Several would have to be sorted, bodies and all: slices keep that small. */
function stateCondition(codes: readonly number[]): Condition {
  const wanted = `e.state in (${codes.map(() => "?").join(", ")})`;
  if (codes.includes(STATE.done)) return { sql: wanted, values: codes };
  const condition = { sql: `e.state <> 1 and ${wanted}`, values: codes };
  return codes.length === 1 ? { ...condition, narrow: "index" } : condition;
}

export function findQuarantined(inbox: OpenInbox, query: QuarantineQuery): Promise<Page<QuarantineRecord>> {
  return inbox.during(() => {
    const states = (query.states ?? ["held", "replayed", "discarded"]).map((state) => HELD[state]);
    const where = `state in (${states.map(() => "?").join(", ")}) and id < ?`;
    const rows = inbox.db
      .prepare(`${QUARANTINE} where ${where} order by id desc limit ?`)
      .all(...states, query.after ?? Number.MAX_SAFE_INTEGER, query.limit + 1) as QuarantineRow[];
    const items = rows.slice(0, query.limit).map(toQuarantine);
    return { items, next: rows.length > items.length ? (items.at(-1)?.id ?? null) : null };
  });
}
