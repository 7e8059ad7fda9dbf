/** Finds events and lanes by filter, through small indexes where a filter has one, otherwise in chunks that leave the event loop free. */
import { setImmediate } from "node:timers/promises";
import { isDue, TOO_FAR_AHEAD_MS } from "../../inbox/gap.ts";
import type {
  AuditRecord,
  EventBody,
  EventId,
  EventSummary,
  InboxStats,
  LaneSummary,
  QuarantineRecord,
  QuarantineSummary,
} from "../../inbox/record.ts";
import type { EventQuery, LaneQuery, Page, QuarantineQuery } from "../../inbox/store.ts";
import { pageOf } from "../../inbox/store-rules.ts";
import type { Clock } from "../../internal/clock.ts";
import { type COUNTERS, HELD, OUTCOME, STATE, STATUS, TAG, TAGS_OF_SOURCES } from "../database.ts";
import { readInstances } from "./instances.ts";
import type { OpenInbox } from "./open-inbox.ts";
import {
  EVENT_SUMMARY,
  type EventSummaryRow,
  QUARANTINE,
  QUARANTINE_SUMMARY,
  type QuarantineRow,
  type QuarantineSummaryRow,
  SUMMARY,
  type SummaryRow,
  toEventSummary,
  toQuarantine,
  toSummary,
} from "./records.ts";
import { IN_LANE } from "./statements.ts";
import type { Gauge } from "./transaction.ts";

// Events and quarantined bodies.

/** A client or a source with no more lanes is found by them: among all events it might be looked for in vain. */
const FEW_LANES = 2_000;

/** Part of a `where`, with its values. */
interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
  /** `lane`: it names a few events. `index`: an index has them in order, but they may be many, for another filter to sift. */
  readonly narrow?: "lane" | "index";
}

export function find(inbox: OpenInbox, query: EventQuery): Promise<Page<EventSummary>> {
  return inbox.during(async () => {
    if (query.eventType !== undefined && !knowsKind(inbox, query.eventType)) return { items: [], next: null };
    const conditions = [...conditionsOf(query), ...(await laneConditions(inbox, query))];
    const wanted = query.limit + 1;
    const rows = isQuick(conditions)
      ? read(inbox, query, conditions, wanted)
      : await readInSlices(inbox, query, conditions, wanted);
    return pageOf(rows, query.limit, toEventSummary);
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

function read(inbox: OpenInbox, query: EventQuery, conditions: readonly Condition[], limit: number): EventSummaryRow[] {
  const { sql, values } = statementOf(query, conditions, limit);
  return inbox.db.prepare(sql).all(...values) as EventSummaryRow[];
}

function statementOf(query: EventQuery, conditions: readonly Condition[], limit: number) {
  const all = query.after === undefined ? conditions : [...conditions, afterOf(query, query.after)];
  const where = all.length === 0 ? "" : `where ${all.map(({ sql }) => sql).join(" and ")}`;
  const direction = query.order === "oldest" ? "asc" : "desc";
  const sql = `${EVENT_SUMMARY} ${where} order by e.id ${direction} limit ?`;
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
): Promise<EventSummaryRow[]> {
  const { after, order = "newest" } = query;
  const rows: EventSummaryRow[] = [];
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
  const { peer, externalReference, apiClientId, source } = query;
  const all: Condition[] = [];
  if (peer !== undefined) all.push(inLanes(await lanesWith(inbox, "peer", peer)));
  if (externalReference !== undefined) all.push(inLanes(await lanesWith(inbox, "reference", externalReference)));
  if (apiClientId !== undefined) all.push(byFewLanes(inbox, { sql: OF_CLIENT, values: [apiClientId] }));
  if (source !== undefined) all.push(byFewLanes(inbox, { sql: OF_SOURCE, values: sourceValues(source) }));
  return all;
}

function inLanes(ids: readonly number[]): Condition {
  return { sql: "e.lane in (select value from json_each(?))", values: [JSON.stringify(ids)], narrow: "lane" };
}

/** The condition, which the index of lane keys answers, or the lanes that meet it if they are few. */
function byFewLanes({ db }: OpenInbox, condition: Condition): Condition {
  const select = `select l.id from oncehook_lane l indexed by oncehook_lane_key where ${condition.sql} limit ${FEW_LANES + 1}`;
  const lanes = db.prepare(select).all(...condition.values) as { readonly id: number }[];
  return lanes.length > FEW_LANES ? condition : inLanes(lanes.map(({ id }) => id));
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
  if (query.messageId !== undefined)
    all.push({ sql: OF_MESSAGE_OR_EVENT, values: [query.messageId, query.messageId], narrow: "lane" });
  add(query.acceptedFrom, "e.accepted >= ?");
  add(query.acceptedTo, "e.accepted <= ?");
  return all;
}

/** There are few clients and tags, so that each is a look into the index of lane keys. */
const lanesOf = (tags: readonly number[]) => `select id from oncehook_lane
  where client in (select id from oncehook_client) and tag in (${tags.join(", ")}) and message = ?`;
export const LANES_OF_MESSAGE = lanesOf([TAG.outbound, TAG.inbound, TAG.unlaned]);
/** Also the events of other sources with this identity, or in the lane of this name. */
const OF_MESSAGE_OR_EVENT = `e.id in (select id from oncehook_event ${IN_LANE} where lane in (${lanesOf(Object.values(TAG))})
  union all select id from oncehook_event indexed by oncehook_event_own_identity where identity = ?)`;

const OF_CLIENT = "l.client = (select id from oncehook_client where name = ?)";
/** The clients of an entry: one for each tenant, and one without. */
const OF_SOURCE = `l.tag in (${TAGS_OF_SOURCES.join(", ")}) and l.client in (select id from oncehook_client where name = ? or substr(name, 1, ?) = ?)`;

function sourceValues(source = ""): readonly unknown[] {
  return [source, source.length + 1, `${source}:`];
}

/** One state alone comes in the order of its index. Several would have to be sorted, bodies and all: slices keep that small. */
function stateCondition(codes: readonly number[]): Condition {
  const wanted = `e.state in (${codes.map(() => "?").join(", ")})`;
  if (codes.includes(STATE.done)) return { sql: wanted, values: codes };
  const condition = { sql: `e.state <> 1 and ${wanted}`, values: codes };
  return codes.length === 1 ? { ...condition, narrow: "index" } : condition;
}

export function findQuarantined(inbox: OpenInbox, query: QuarantineQuery): Promise<Page<QuarantineSummary>> {
  return inbox.during(() => {
    const states = (query.states ?? ["held", "replayed", "discarded"]).map((state) => HELD[state]);
    const where = `state in (${states.map(() => "?").join(", ")}) and id < ?`;
    const rows = inbox.db
      .prepare(`${QUARANTINE_SUMMARY} where ${where} order by id desc limit ?`)
      .all(...states, query.after ?? Number.MAX_SAFE_INTEGER, query.limit + 1) as QuarantineSummaryRow[];
    return pageOf(rows, query.limit, toQuarantine<QuarantineSummaryRow>);
  });
}

export function readQuarantined(inbox: OpenInbox, id: number): Promise<QuarantineRecord | null> {
  return inbox.during(() => {
    const row = inbox.db.prepare(`${QUARANTINE} where id = ?`).get(id) as QuarantineRow | undefined;
    return row === undefined ? null : toQuarantine(row);
  });
}

export function readBodies(
  inbox: OpenInbox,
  events: readonly EventId[],
  maxBytes: number,
): Promise<ReadonlyMap<EventId, EventBody>> {
  return inbox.during(() => {
    const read = new Map<EventId, EventBody>();
    let bytes = 0;
    for (const id of events) {
      if (bytes >= maxBytes) break;
      const body = inbox.session.sql.body.get(id);
      if (body === undefined) continue;
      read.set(id, body);
      bytes += body.raw.byteLength;
    }
    return read;
  });
}

// Lanes.

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
    const rows = looks.every(isQuickForLanes)
      ? readAll(inbox, looks, [0, after - 1])
      : await readLanesInSlices(inbox, looks, after);
    return pageOf(rows, limit, toSummary);
  });
}

function isQuickForLanes({ filters, status }: Look): boolean {
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

async function readLanesInSlices(inbox: OpenInbox, looks: readonly Look[], after: number): Promise<SummaryRow[]> {
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

function filtersOf({ tag, apiClientId, source, peer, without = [], quietSince }: LaneQuery): Condition[] {
  const all: Condition[] = [];
  const add = (value: unknown, sql: string, values: readonly unknown[] = [value]) => {
    if (value !== undefined) all.push({ sql, values });
  };
  add(tag, "l.tag = ?", [tag === undefined ? null : TAG[tag]]);
  add(apiClientId, OF_CLIENT);
  add(source, OF_SOURCE, sourceValues(source));
  add(peer, "l.peer is ?");
  const kinds = `select id from oncehook_kind where name in (${without.map(() => "?").join(", ")})`;
  const among = `not exists (select 1 from oncehook_event e where e.lane = l.id and e.kind in (${kinds}))`;
  if (without.length > 0) all.push({ sql: `${KEEPS_CURSOR} and ${among}`, values: without });
  add(quietSince, "not exists (select 1 from oncehook_event e where e.lane = l.id and e.accepted > ?)");
  return all;
}

// Statistics, from kept counters and small indexes.

/** The oldest pending event, by the index of events that are not done. */
export const OLDEST_PENDING =
  "select accepted from oncehook_event where state <> 1 and state = 0 order by state, id limit 1";

export function readStats(inbox: OpenInbox): Promise<InboxStats> {
  return inbox.during(() => {
    const { db } = inbox;
    const rows = db.prepare("select name, value from oncehook_counter").all() as { name: string; value: number }[];
    const values = new Map(rows.map(({ name, value }) => [name, value]));
    const count = (name: Gauge | (typeof COUNTERS)[keyof typeof COUNTERS]) => values.get(name) ?? 0;
    const newestSigned = values.get("newest_signed") ?? -1;
    const oldest = db.prepare(OLDEST_PENDING).get() as { accepted: number } | undefined;
    return {
      gauges: {
        pending: count("pending"),
        dead: count("dead"),
        quarantined: count("held"),
        quarantinedBytes: count("held_bytes"),
        blockedLanes: count("blocked"),
      },
      counters: {
        accepted: count("accepted"),
        duplicates: count("duplicates"),
        conflicts: count("conflicts"),
        late: count("late"),
        handled: count("handled"),
        unhandled: count("unhandled"),
        retried: count("retried"),
        deadLettered: count("dead_lettered"),
        discarded: count("discarded"),
        filtered: count("filtered"),
        gapsSkipped: count("gaps_skipped"),
        quarantined: count("quarantined"),
      },
      oldestPendingAt: oldest?.accepted ?? null,
      newestSignedAt: newestSigned < 0 ? null : newestSigned,
      serviceResigns: values.get("service_resigns") === 1,
      instances: readInstances(db),
    };
  });
}

/** Milliseconds until a lane is due; null for none waiting. */
export function readNextDue(inbox: OpenInbox): Promise<number | null> {
  return inbox.during(() => {
    const { sql } = inbox.session;
    const now = inbox.context.clock.now();
    const soonest = sql.soonest.get()?.at ?? null;
    if (soonest === null) return null;
    if (inbox.clockSteps.wentBack(now)) return 0;
    const farthest = sql.farthest.get()?.at ?? soonest;
    return isDue(soonest, now) || farthest > now + TOO_FAR_AHEAD_MS ? 0 : soonest - now;
  });
}

/** The newest `limit` audit rows, newest first. */
export function readAudit(inbox: OpenInbox, limit: number): Promise<readonly AuditRecord[]> {
  const sql = "select id, at, by, act, detail from oncehook_audit order by id desc limit ?";
  return inbox.during(() => inbox.db.prepare(sql).all(limit) as AuditRecord[]);
}

// Chunks of a large table, by its ids.

export interface Walk {
  readonly table: "oncehook_event" | "oncehook_lane" | "oncehook_quarantine";
  /** Default `"oldest"`. */
  readonly first?: "newest" | "oldest";
  /** The id to begin behind. */
  readonly after?: number | undefined;
}

/** Looks at ids `from` to `to`, both included. Ends the walk with true. */
type LookAt = (from: number, to: number) => Promise<boolean> | boolean;

export async function inSlices({ db, patience }: OpenInbox, walk: Walk, look: LookAt): Promise<void> {
  const { table, first = "oldest", after } = walk;
  const { lowest, highest } = db.prepare(endsSql(table)).get() as Ends;
  if (lowest === null || highest === null) return;
  const up = first === "oldest";
  const pace = new Pace(patience.clock);
  const start = up ? lowest : highest;
  let at = after === undefined ? start : up ? Math.max(start, after + 1) : Math.min(start, after - 1);
  for (let found = false; !found && at >= lowest && at <= highest; ) {
    found = await pace.take(async (size) => {
      const [from, to] = up ? [at, at + size - 1] : [at - size + 1, at];
      at = up ? to + 1 : from - 1;
      return look(from, to);
    });
    await setImmediate();
  }
}

/** Each by itself: asked for both at once, SQLite reads the whole table. */
export function endsSql(table: Walk["table"]): string {
  return `select (select min(id) from ${table}) as lowest, (select max(id) from ${table}) as highest`;
}

interface Ends {
  readonly lowest: number | null;
  readonly highest: number | null;
}

const QUICK_MS = 10;
const SMALLEST = 16;
const LARGEST = 20_000;

/** The size of the next chunk: larger while chunks are quick, smaller otherwise, so that the event loop gets its turn. */
export class Pace {
  readonly #clock: Clock;
  #size = 128;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does `work` for the next `size` rows. */
  async take<T>(work: (size: number) => Promise<T>): Promise<T> {
    const size = this.#size;
    const startedAt = this.#clock.monotonic();
    const result = await work(size);
    const tookMs = this.#clock.monotonic() - startedAt;
    if (tookMs < QUICK_MS) this.#size = Math.min(LARGEST, size * 2);
    else if (tookMs > 2 * QUICK_MS) this.#size = Math.max(SMALLEST, size >> 1);
    return result;
  }
}
