/** Finds lanes by filter: the few that wait by a small index, all others in slices that leave the event loop free. */

import type { LaneSummary } from "../../inbox/record.ts";
import type { LaneQuery, Page } from "../../inbox/store.ts";
import { pageOf } from "../../inbox/store-rules.ts";
import { STATUS, TAG } from "../codes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { SUMMARY, type SummaryRow, toSummary } from "./records.ts";
import { inSlices } from "./slices.ts";

/** Part of a `where`, with its values. */
interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Ids of lanes, both included. */
type Range = readonly [from: number, to: number];

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
    const looks = [...statuses].map((status): Look => ({ status, filters, limit: limit + 1 }));
    const rows = looks.every(isQuick) ? readAll(inbox, looks, [0, after - 1]) : await readInSlices(inbox, looks, after);
    return pageOf(rows, limit, toSummary);
  });
}

function isQuick({ filters, status }: Look): boolean {
  return filters.length === 0 && (status === null || isIndexed(status));
}

/**
 * Each status by itself, since those of one come in the order of its index; but all in one statement, or a lane whose status
 * changes between two of them would be there twice, or not at all.
 */
function readAll({ db }: OpenInbox, looks: readonly Look[], range: Range): SummaryRow[] {
  if (looks.length === 0) return [];
  const parts = looks.map((look) => lanesSql(look, range));
  const sql = parts.map((part) => `select * from (${part.sql})`).join(" union all ");
  const rows = db.prepare(sql).all(...parts.flatMap(({ values }) => values)) as SummaryRow[];
  return rows.sort((a, b) => b.id - a.id);
}

async function readInSlices(inbox: OpenInbox, looks: readonly Look[], after: number): Promise<SummaryRow[]> {
  const rows: SummaryRow[] = [];
  const wanted = looks[0]?.limit ?? 0;
  await inSlices(inbox, { table: "oncehook_lane", first: "newest", after }, (from, to) => {
    rows.push(...readAll(inbox, looks, [from, to]));
    return rows.length >= wanted;
  });
  return rows;
}

/** The SQL of one look at lanes with ids in `range`; also what the test of query plans explains. */
export function lanesSql({ status, filters, limit }: Look, range: Range) {
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

/** What was pruned may have been of any type. */
const KEEPS_CURSOR =
  "(l.cursor is null or exists (select 1 from oncehook_event e where e.lane = l.id and e.seq = l.cursor))";

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
  if (without.length > 0) all.push({ sql: `${KEEPS_CURSOR} and ${among}`, values: without });
  add(quietSince, "not exists (select 1 from oncehook_event e where e.lane = l.id and e.accepted > ?)");
  return all;
}
