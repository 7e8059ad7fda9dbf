/** Finds lanes by filter: the few that wait by a small index, all others in slices that leave the event loop free. */
import type { LaneSummary } from "../../inbox/record.ts";
import type { LaneQuery, Page } from "../../inbox/store.ts";
import { STATUS, TAG } from "../codes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { SUMMARY, type SummaryRow, toSummary } from "./records.ts";
import { inSlices } from "./slices.ts";

/** Part of a `where`, with its values. */
interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** The lanes of one status, or of any (null), that pass the other filters. */
interface Look {
  readonly status: number | null;
  readonly filters: readonly Condition[];
  readonly limit: number;
}

export function findLanes(inbox: OpenInbox, query: LaneQuery): Promise<Page<LaneSummary>> {
  return inbox.during(async () => {
    const { after = Number.MAX_SAFE_INTEGER, limit } = query;
    const filters = filtersOf(query);
    const statuses = query.statuses === undefined ? [null] : new Set(query.statuses.map((word) => STATUS[word]));
    const rows: SummaryRow[] = [];
    // Each status by itself: those of one come in the order of its index.
    for (const status of statuses) rows.push(...(await look(inbox, { status, filters, limit: limit + 1 }, after)));
    rows.sort((a, b) => b.id - a.id);
    const items = rows.slice(0, limit).map(toSummary);
    return { items, next: rows.length > items.length ? (items.at(-1)?.id ?? null) : null };
  });
}

function look(inbox: OpenInbox, asked: Look, after: number): Promise<SummaryRow[]> | SummaryRow[] {
  const isQuick = asked.filters.length === 0 && (asked.status === null || isIndexed(asked.status));
  return isQuick ? read(inbox, asked, [0, after - 1]) : readInSlices(inbox, asked, after);
}

function read(inbox: OpenInbox, asked: Look, range: readonly [from: number, to: number]): SummaryRow[] {
  const { sql, values } = lanesSql(asked, range);
  return inbox.db.prepare(sql).all(...values) as SummaryRow[];
}

async function readInSlices(inbox: OpenInbox, asked: Look, after: number): Promise<SummaryRow[]> {
  const rows: SummaryRow[] = [];
  await inSlices(inbox, { table: "oncehook_lane", first: "newest", after }, (from, to) => {
    rows.push(...read(inbox, { ...asked, limit: asked.limit - rows.length }, [from, to]));
    return rows.length >= asked.limit;
  });
  return rows;
}

/** The SQL of one look at lanes with ids in `range`; also what the test of query plans explains. */
export function lanesSql({ status, filters, limit }: Look, range: readonly [from: number, to: number]) {
  const ids: Condition = { sql: "l.id between ? and ?", values: range };
  const all = [...(status === null ? [] : [statusCondition(status)]), ...filters, ids];
  const sql = `${SUMMARY} where ${all.map((condition) => condition.sql).join(" and ")} order by l.id desc limit ?`;
  return { sql, values: [...all.flatMap(({ values }) => values), limit] };
}

/** Lanes that wait for time or for somebody. */
const PARKED: readonly number[] = [STATUS.blocked, STATUS.gap, STATUS.backoff];
const LEASED = `select id from oncehook_lane where status = ${STATUS.leased}`;
/** As the index says it, which is how the planner knows that it has them all. */
const IS_PARKED = `(l.status = ${STATUS.blocked} or l.status > ${STATUS.ready})`;

function statusCondition(status: number): Condition {
  if (status === STATUS.leased) return { sql: `l.id in (${LEASED})`, values: [] };
  const condition = { sql: "l.status = ?", values: [status] };
  return PARKED.includes(status) ? { ...condition, sql: `${IS_PARKED} and l.status = ?` } : condition;
}

/** Those that are being handled are few, and those that are parked come in the order of their index. */
function isIndexed(status: number): boolean {
  return status === STATUS.leased || PARKED.includes(status);
}

function filtersOf({ tag, apiClientId, peer, without = [], quietSince }: LaneQuery): Condition[] {
  const all: Condition[] = [];
  const add = (value: unknown, sql: string, values: readonly unknown[] = [value]) => {
    if (value !== undefined) all.push({ sql, values });
  };
  add(tag, "l.tag = ?", [tag === undefined ? null : TAG[tag]]);
  add(apiClientId, "l.client = (select id from oncehook_client where name = ?)");
  add(peer, "l.peer is ?");
  const kinds = `select id from oncehook_kind where name in (${without.map(() => "?").join(", ")})`;
  const among = `not exists (select 1 from oncehook_event e where e.lane = l.id and e.kind in (${kinds}))`;
  if (without.length > 0) all.push({ sql: among, values: without });
  add(quietSince, "not exists (select 1 from oncehook_event e where e.lane = l.id and e.accepted > ?)");
  return all;
}
