/** Finds events by filter, through small indexes where a filter has one, else in slices that leave the event loop free. */

import type { EventRecord, QuarantineRecord } from "../../inbox/record.ts";
import type { EventQuery, Page, QuarantineQuery } from "../../inbox/store.ts";
import { pageOf } from "../../inbox/store-rules.ts";
import { HELD, OUTCOME, STATE } from "../codes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { EVENT, type EventRow, QUARANTINE, type QuarantineRow, toEvent, toQuarantine } from "./records.ts";
import { inSlices } from "./slices.ts";

/** A client with no more lanes is found by them: among all events it might be looked for in vain. */
const FEW_LANES = 2_000;

/** Part of a `where`, with its values. */
interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
  /** `lane`: it names a few events. `index`: an index has them in order, but they may be many, for another filter to sift. */
  readonly narrow?: "lane" | "index";
}

export function find(inbox: OpenInbox, query: EventQuery): Promise<Page<EventRecord>> {
  return inbox.during(async () => {
    if (query.eventType !== undefined && !knowsKind(inbox, query.eventType)) return { items: [], next: null };
    const conditions = [...conditionsOf(query), ...(await laneConditions(inbox, query))];
    const wanted = query.limit + 1;
    const rows = isQuick(conditions)
      ? read(inbox, query, conditions, wanted)
      : await readInSlices(inbox, query, conditions, wanted);
    return pageOf(rows, query.limit, toEvent);
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
  const { after, order = "newest" } = query;
  const rows: EventRow[] = [];
  await inSlices(inbox, { table: "oncehook_event", first: order, after }, (from, to) => {
    const slice: Condition = { sql: "e.id between ? and ?", values: [from, to] };
    const { after: _after, ...rest } = query;
    rows.push(...read(inbox, rest, [...conditions, slice], limit - rows.length));
    return rows.length >= limit;
  });
  return rows;
}

function knowsKind({ db }: OpenInbox, name: string): boolean {
  return db.prepare("select 1 from oncehook_kind where name = ?").get(name) !== undefined;
}

/** Filters on lanes whose answer depends on what there is. */
async function laneConditions(inbox: OpenInbox, query: EventQuery): Promise<Condition[]> {
  const { peer, externalReference, apiClientId } = query;
  const all: Condition[] = [];
  if (peer !== undefined) all.push(inLanes(await lanesWith(inbox, "peer", peer)));
  if (externalReference !== undefined) all.push(inLanes(await lanesWith(inbox, "reference", externalReference)));
  if (apiClientId !== undefined) all.push(clientCondition(inbox, apiClientId));
  return all;
}

function inLanes(ids: readonly number[]): Condition {
  return { sql: "e.lane in (select value from json_each(?))", values: [JSON.stringify(ids)], narrow: "lane" };
}

function clientCondition({ db }: OpenInbox, name: string): Condition {
  const row = db.prepare("select id from oncehook_client where name = ?").get(name) as { id: number } | undefined;
  if (row === undefined) return inLanes([]);
  const lanes = db.prepare("select id from oncehook_lane where client = ? limit ?").all(row.id, FEW_LANES + 1);
  if (lanes.length > FEW_LANES) return { sql: "l.client = ?", values: [row.id] };
  return inLanes((lanes as { readonly id: number }[]).map(({ id }) => id));
}

/** No index has these: a scan of all lanes costs less than the writes for each of them. To be called while the inbox stays open. */
export async function lanesWith(inbox: OpenInbox, column: "peer" | "reference", text: string): Promise<number[]> {
  const select = inbox.db.prepare(`select id from oncehook_lane where id between ? and ? and ${column} = ?`);
  const ids: number[] = [];
  await inSlices(inbox, { table: "oncehook_lane" }, (from, to) => {
    for (const { id } of select.all(from, to, text) as { readonly id: number }[]) ids.push(id);
    return false;
  });
  return ids;
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
  narrow(query.messageId, `e.lane in (${LANES_OF_MESSAGE})`, "lane");
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
    return pageOf(rows, query.limit, toQuarantine);
  });
}
