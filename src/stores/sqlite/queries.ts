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
import { type COUNTERS, HELD, idValue, OUTCOME, orderCode, STATE, STATUS, tenantText } from "../database.ts";
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
import type { Gauge } from "./transaction.ts";

// Events and quarantined bodies.

/** A source or a tenant with no more events is found by them: among all events it might be looked for in vain. */
const FEW_EVENTS = 2_000;
/** With more tenants, a source is looked for among all events. */
const MOST_OWNERS = 1_000;

/** Part of a `where`, with its values. */
interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
  /** `lane`: it names a few events. `index`: an index has them in order, but they may be many, for another filter to sift. */
  readonly narrow?: "lane" | "index";
}

export function find(inbox: OpenInbox, query: EventQuery): Promise<Page<EventSummary>> {
  return inbox.during(async () => {
    const others = [...conditionsOf(query), ...(await laneConditions(inbox, query))];
    const wanted = query.limit + 1;
    const conditions = [...others, ...ownerConditions(inbox, query, others.length === 0 ? wanted : null)];
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

/** Filters on lanes whose answer depends on what there is. */
async function laneConditions(inbox: OpenInbox, query: EventQuery): Promise<Condition[]> {
  const { peer, externalReference } = query;
  const all: Condition[] = [];
  if (peer !== undefined) all.push(inLanes(await lanesWith(inbox, "peer", peer)));
  if (externalReference !== undefined) all.push(inLanes(await lanesWith(inbox, "reference", externalReference)));
  return all;
}

function inLanes(ids: readonly number[]): Condition {
  return { sql: "e.lane in (select value from json_each(?))", values: [JSON.stringify(ids)], narrow: "lane" };
}

type Owner = readonly [source: string, tenant: string];

/**
 * The events of a source, of a tenant, or of both: by their ids if they are few, or if nothing else is asked for.
 *
 * @param wanted - how many, if there is no other filter
 */
function ownerConditions(inbox: OpenInbox, query: EventQuery, wanted: number | null): Condition[] {
  const { source, tenant } = query;
  if (source === undefined && tenant === undefined) return [];
  const owners = ownersOf(inbox, query);
  const find = () => (wanted === null ? allOf(inbox, owners) : firstOf(inbox, owners, query, wanted));
  const ids = owners.length > MOST_OWNERS ? null : find();
  if (ids !== null)
    return [{ sql: "e.id in (select value from json_each(?))", values: [JSON.stringify(ids)], narrow: "lane" }];
  // The plus keeps each slice to the order of ids.
  return [
    ...(source === undefined ? [] : [{ sql: "+e.source = ?", values: [source] }]),
    ...(tenant === undefined ? [] : [{ sql: "+e.tenant = ?", values: [tenantText(tenant)] }]),
  ];
}

export const OWNED = "from oncehook_event indexed by oncehook_event_owner where source = ? and tenant = ?";
export const NEXT_SOURCE =
  "select min(source) as next from oncehook_event indexed by oncehook_event_owner where source > ?";
export const NEXT_TENANT =
  "select min(tenant) as next from oncehook_event indexed by oncehook_event_owner where source = ? and tenant >= ?";

/** Whose events these are. Each source, and each tenant of one, is a look into the index. */
function ownersOf({ db }: OpenInbox, { source, tenant }: EventQuery): Owner[] {
  const nextSource = db.prepare(NEXT_SOURCE);
  const nextTenant = db.prepare(NEXT_TENANT);
  const next = (row: unknown) => (row as { readonly next: string | null }).next;
  const sources = source === undefined ? [] : [source];
  if (source === undefined)
    for (let at = next(nextSource.get("")); at !== null; at = next(nextSource.get(at))) sources.push(at);
  if (tenant !== undefined) return sources.map((one) => [one, tenantText(tenant)]);
  const owners: Owner[] = [];
  for (const one of sources) {
    let at = next(nextTenant.get(one, ""));
    while (at !== null && owners.length <= MOST_OWNERS) {
      owners.push([one, at]);
      // The least text above it.
      at = next(nextTenant.get(one, `${at}\u0000`));
    }
  }
  return owners;
}

/** Ids of all their events. Null if they are too many. */
function allOf({ db }: OpenInbox, owners: readonly Owner[]): number[] | null {
  const select = db.prepare(`select id ${OWNED} limit ?`);
  const ids: number[] = [];
  for (const [source, tenant] of owners) {
    for (const { id } of select.all(source, tenant, FEW_EVENTS + 1) as { readonly id: number }[]) ids.push(id);
    if (ids.length > FEW_EVENTS) return null;
  }
  return ids;
}

/** Ids of their first events. Of each owner one is looked up, and the next one once that is taken, because there may be many owners. */
function firstOf({ db }: OpenInbox, owners: readonly Owner[], query: EventQuery, wanted: number): number[] {
  const isUp = query.order === "oldest";
  const [isBehind, direction] = isUp ? [">", "asc"] : ["<", "desc"];
  const select = db.prepare(`select id ${OWNED} and id ${isBehind} ? order by id ${direction} limit 1`);
  const next = ([source, tenant]: Owner, after: number) =>
    (select.get(source, tenant, after) as { readonly id: number } | undefined)?.id;
  const start = query.after ?? (isUp ? 0 : Number.MAX_SAFE_INTEGER);
  const heads = owners.map((owner) => next(owner, start));
  const ids: number[] = [];
  while (ids.length < wanted) {
    let first = -1;
    for (const [index, id] of heads.entries()) {
      const best = heads[first];
      if (id !== undefined && (best === undefined || (isUp ? id < best : id > best))) first = index;
    }
    const [id, owner] = [heads[first], owners[first]];
    if (id === undefined || owner === undefined) break;
    ids.push(id);
    heads[first] = next(owner, id);
  }
  return ids;
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
  add(query.eventType, "e.type = ?");
  narrow(query.lane, IN_NAMED_LANE, "lane");
  if (query.id !== undefined) all.push({ sql: WITH_OWN_ID, values: [idValue(query.id)], narrow: "lane" });
  add(query.acceptedFrom, "e.accepted >= ?");
  add(query.acceptedTo, "e.accepted <= ?");
  return all;
}

const IN_NAMED_LANE = "e.lane in (select id from oncehook_lane where name = ?)";
const WITH_OWN_ID = "e.id in (select id from oncehook_event indexed by oncehook_event_own_id where own_id = ?)";

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

function filtersOf({ order, source, tenant, peer, without = [], quietSince }: LaneQuery): Condition[] {
  const all: Condition[] = [];
  const add = (value: unknown, sql: string, values: readonly unknown[] = [value]) => {
    if (value !== undefined) all.push({ sql, values });
  };
  add(order, "l.ord = ?", [orderCode(order ?? null)]);
  add(source, "l.source = ?");
  add(tenant, "l.tenant = ?", [tenantText(tenant ?? null)]);
  add(peer, "l.peer is ?");
  const types = without.map(() => "?").join(", ");
  const among = `not exists (select 1 from oncehook_event e where e.lane = l.id and e.type in (${types}))`;
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
