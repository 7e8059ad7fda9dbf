/** Queries for operators: events, lanes and quarantined bodies by filter, counters, and the audit. */
import { besideCursor, newLane, toEventSummary } from "../../inbox/lane-state.ts";
import type {
  AttemptRecord,
  AuditRecord,
  EventSummary,
  GapRecord,
  InboxStats,
  LaneRecord,
  LaneSummary,
  QuarantineRecord,
  QuarantineSummary,
} from "../../inbox/record.ts";
import type { EventQuery, LaneQuery, LaneRef, Page, QuarantineQuery } from "../../inbox/store.ts";
import { EVENTS_BESIDE_CURSOR, pageOf, plainText } from "../../inbox/store-rules.ts";
import { HELD, heldWord, kindsOf, OUTCOME, orderCode, STATE, STATUS, stateWord } from "../database.ts";
import {
  bytesId,
  bytesTenant,
  bytesText,
  columnNames,
  columns,
  idBytes,
  nullableBytes,
  tenantBytes,
  textBytes,
  transposed,
  unnested,
} from "./encoding.ts";
import { countersOf, readInstanceRows, STATS, type StatsRow } from "./instances.ts";
import {
  eventColumns,
  eventOfRow,
  idsIn,
  keyOfRow,
  type LeaseRow,
  laneColumns,
  laneFacts,
  type PgEventRow,
  type PgLaneRow,
  takeLease,
} from "./lanes.ts";
import type { PgSession } from "./session.ts";

/** The columns and joined tables of an event, as `summaryOf` needs them. */
const EVENT = `select ${eventColumns("e")}, l.name, l.ord, l.leased, l.leased_attempts, l.leased_started
  from {}.event e join {}.lane l on l.id = e.lane`;

interface FullEventRow extends PgEventRow, LeaseRow {
  readonly name: Buffer | null;
  readonly ord: number;
}

function summaryOf(row: FullEventRow): EventSummary {
  const lane = newLane(row.lane, keyOfRow(row));
  const event = eventOfRow(lane, row);
  takeLease(event, row);
  return toEventSummary(event);
}

const BY_ID = `select ${laneColumns("l")} from {}.lane l where id = $1::bigint`;
const BY_KEY = `select ${laneColumns("l")} from {}.lane l
  where l.name = $1::bytea and l.source = $2::text and l.tenant = $3::bytea and l.ord = $4::smallint`;
const BY_EVENT = `select ${laneColumns("l")} from {}.lane l
  where id = (select lane from {}.event where own_id = $1::bytea and source = $2::text and tenant = $3::bytea)`;
const ATTEMPTS = `select a.event as "eventId", a.attempt, a.at, a.duration as "durationMs", a.error_code as "errorCode", a.error
  from {}.attempt a where a.event = any($1::bigint[]) order by a.id`;
const ONE_MORE = EVENTS_BESIDE_CURSOR + 1;
const BESIDE_CURSOR = `(${EVENT} where e.lane = $1::bigint and e.seq < $2::bigint order by e.seq desc, e.id desc limit ${ONE_MORE})
  union all (${EVENT} where e.lane = $1::bigint and e.seq >= $2::bigint order by e.seq, e.id limit ${ONE_MORE})`;
const GAPS = `select lo as "from", hi as "to", skipped as "skippedAt", filled as "filledAt" from {}.gap where lane = $1::bigint order by hi`;

function lookUp(ref: LaneRef): readonly [name: string, text: string, values: readonly unknown[]] {
  if (typeof ref === "number") return ["lane_by_id", BY_ID, [ref]];
  const owner = [ref.source, tenantBytes(ref.tenant)];
  if ("id" in ref) return ["lane_by_event", BY_EVENT, [idBytes(ref.id), ...owner]];
  return ["lane_by_key", BY_KEY, [nullableBytes(ref.name), ...owner, orderCode(ref.order)]];
}

/** A lane with its events, gaps and attempts; null when there is none. */
export async function readLane(session: PgSession, ref: LaneRef): Promise<LaneRecord | null> {
  const [name, text, values] = lookUp(ref);
  const [row] = await session.rows<PgLaneRow>(name, text, values);
  if (row === undefined) return null;
  const near = [row.id, row.cursor ?? Number.MIN_SAFE_INTEGER];
  const found = await session.rows<FullEventRow>("lane_events", BESIDE_CURSOR, near);
  const { events, more } = besideCursor(found.map(summaryOf), row.cursor);
  const gaps = await session.rows<GapRecord>("lane_gaps", GAPS, [row.id]);
  const attempts = await session.rows<AttemptRecord>("attempts", ATTEMPTS, [idsIn(events)]);
  return { ...laneFacts(row), events, more, gaps, attempts };
}

type Stored<Row> = Omit<Row, "tenant" | "kinds" | "state" | "untimed"> & {
  readonly tenant: Buffer;
  readonly kinds: string;
  readonly state: number;
  readonly untimed: boolean | null;
};

const quarantineWith = (
  body: string,
) => `select id, reason, slot, signer, source, tenant, kinds, state, replayed_as as "replayedAs", signed as "signedAt",
  accepted as "acceptedAt", trace, digest, ${body}, untimed from {}.quarantine`;
const QUARANTINE = quarantineWith("raw, head");
/** The length is in the header of the value: no body is read. */
const QUARANTINE_SUMMARY = quarantineWith("octet_length(raw) as bytes");

function toQuarantine<Row extends Stored<QuarantineRecord> | Stored<QuarantineSummary>>(row: Row) {
  const { tenant, kinds, state, untimed } = row;
  const facts = { tenant: bytesTenant(tenant), kinds: kindsOf(kinds), state: heldWord(state) };
  return { ...row, ...facts, untimed: untimed === true };
}

/** Builds a `where` clause from the filters that are given. */
class Conditions {
  readonly values: unknown[] = [];
  readonly #sql: string[] = [];

  /** `?` in `sql` becomes the parameter; nothing is added for an undefined value. */
  add(value: unknown, sql: string): void {
    if (value !== undefined) this.addBound([value], sql.replaceAll("?", `$${this.values.length + 1}`));
  }

  /** @param sql - with the numbers of the parameters, which follow those of `values` */
  addBound(values: readonly unknown[], sql: string): void {
    this.values.push(...values);
    this.#sql.push(sql);
  }

  get isEmpty(): boolean {
    return this.#sql.length === 0;
  }

  get where(): string {
    return this.#sql.length === 0 ? "" : `where ${this.#sql.join(" and ")}`;
  }
}

export async function findRows(session: PgSession, query: EventQuery): Promise<Page<EventSummary>> {
  const conditions = eventConditions(query);
  const direction = query.order === "oldest" ? "asc" : "desc";
  const owners = conditions.isEmpty ? await ownersOf(session, query) : null;
  if (owners === null) addOwner(conditions, query);
  else ofOwners(conditions, owners, query);
  conditions.add(query.after, direction === "asc" ? "e.id > ?::bigint" : "e.id < ?::bigint");
  const text = `${EVENT} ${conditions.where} order by e.id ${direction} limit ${query.limit + 1}`;
  const rows = await session.rows<FullEventRow>(null, text, conditions.values);
  return pageOf(rows, query.limit, summaryOf);
}

/** Of owners, those who have events. Without an order, the planner could look for an event of theirs among all. */
function ofThose(owners: string): string {
  return `select o.source, o.tenant from ${owners} o cross join lateral (
    select tenant from {}.event where source = o.source and tenant >= o.tenant order by tenant limit 1) n where n.tenant = o.tenant`;
}

/** With more tenants, a source is looked for among all events. */
const MOST_OWNERS = 1_000;
/** Each source, and each tenant of one, is a look into the index `event_owner`. */
const TENANTS_OF = `with recursive owner as ((select source, tenant from {}.event where source = $1::text order by source, tenant limit 1)
  union all select n.* from owner o cross join lateral (
    select source, tenant from {}.event where source = o.source and tenant > o.tenant order by source, tenant limit 1) n)
  select source, tenant from owner limit ${MOST_OWNERS + 1}`;
const SOURCES_OF = `with recursive owner as ((select source, $1::bytea as tenant from {}.event order by source limit 1)
  union all select n.* from owner o cross join lateral (
    select source, o.tenant from {}.event where source > o.source order by source limit 1) n)
  ${ofThose("owner")} limit ${MOST_OWNERS + 1}`;
const IS_OWNER = ofThose("(select $1::text as source, $2::bytea as tenant)");

interface Owner {
  readonly source: string;
  readonly tenant: Buffer;
}

/** Whose events a query is about, of those who have any. Null if it may be about anyone's, or about too many. */
async function ownersOf(
  session: PgSession,
  { source, tenant }: Pick<EventQuery, "source" | "tenant">,
): Promise<readonly Owner[] | null> {
  if (source === undefined && tenant === undefined) return null;
  const owners = await lookForOwners(session, source, tenant);
  return owners.length > MOST_OWNERS ? null : owners;
}

function lookForOwners(session: PgSession, source?: string, tenant?: string | null): Promise<readonly Owner[]> {
  if (tenant === undefined) return session.rows<Owner>("tenants_of", TENANTS_OF, [source]);
  const bytes = tenantBytes(tenant);
  if (source === undefined) return session.rows<Owner>("sources_of", SOURCES_OF, [bytes]);
  return session.rows<Owner>("is_owner", IS_OWNER, [source, bytes]);
}

const OWNER = columns("source text, tenant bytea");

/** The newest or oldest events of owners. */
function ofOwners(
  conditions: Conditions,
  owners: readonly Owner[],
  { order = "newest", after, limit }: EventQuery,
): void {
  const isUp = order === "oldest";
  const from = after === undefined ? "" : `and id ${isUp ? ">" : "<"} ${after}`;
  const sorted = `order by id ${isUp ? "asc" : "desc"} limit ${limit + 1}`;
  const text = `e.id = any(array(select id from ${unnested(OWNER, conditions.values.length)} as o (${columnNames(OWNER)})
    cross join lateral (select id from {}.event where source = o.source and tenant = o.tenant ${from} ${sorted}) k ${sorted}))`;
  const rows = owners.map(({ source, tenant }) => [source, tenant]);
  conditions.addBound(transposed(OWNER, rows), text);
}

function addOwner(conditions: Conditions, { source, tenant }: EventQuery): void {
  conditions.add(source, "e.source = ?::text");
  conditions.add(tenant === undefined ? undefined : tenantBytes(tenant), "e.tenant = ?::bytea");
}

/** All filters except those of `addOwner()`. */
function eventConditions(query: EventQuery): Conditions {
  const all = new Conditions();
  const bytes = (text: string | undefined) => (text === undefined ? undefined : textBytes(text));
  all.add(
    query.states?.map((state) => STATE[state]),
    "e.state = any(?::smallint[])",
  );
  all.add(bytes(query.eventType), "e.type = ?::bytea");
  all.add(query.outcome === undefined ? undefined : OUTCOME[query.outcome], "e.outcome = ?::smallint");
  all.add(query.late, "e.late = ?::boolean");
  all.add(query.conflict, "e.conflict = ?::boolean");
  all.add(query.errorCode === undefined ? undefined : plainText(query.errorCode), "e.error_code = ?::text");
  all.add(bytes(query.lane), "e.lane = any(array(select id from {}.lane where name = ?::bytea))");
  all.add(query.id === undefined ? undefined : idBytes(query.id), "e.own_id = ?::bytea");
  all.add(bytes(query.externalReference), "l.reference = ?::bytea");
  all.add(bytes(query.peer), "l.peer = ?::bytea");
  all.add(query.acceptedFrom, "e.accepted >= ?::bigint");
  all.add(query.acceptedTo, "e.accepted <= ?::bigint");
  return all;
}

export async function findQuarantineRows(session: PgSession, query: QuarantineQuery): Promise<Page<QuarantineSummary>> {
  const states = (query.states ?? ["held", "replayed", "discarded"]).map((state) => HELD[state]);
  const text = `${QUARANTINE_SUMMARY} where state = any($1::smallint[]) and id < $2::bigint order by id desc limit $3::int`;
  const values = [states, query.after ?? Number.MAX_SAFE_INTEGER, query.limit + 1];
  const rows = await session.rows<Stored<QuarantineSummary>>("find_quarantined", text, values);
  return pageOf(rows, query.limit, toQuarantine<Stored<QuarantineSummary>>);
}

export async function readQuarantinedRow(session: PgSession, id: number): Promise<QuarantineRecord | null> {
  const text = `${QUARANTINE} where id = $1::bigint`;
  const [row] = await session.rows<Stored<QuarantineRecord>>("quarantined", text, [id]);
  return row === undefined ? null : toQuarantine(row);
}

const SUMMARY = `select ${laneColumns("l")}, n.id as newest_id, n.type as newest_type, n.seq as newest_seq,
  n.accepted as newest_accepted, n.state as newest_state, n.own_id as newest_own_id
  from {}.lane l cross join lateral (select id, type, seq, accepted, state, own_id from {}.event where lane = l.id order by id desc limit 1) n`;

interface SummaryRow extends PgLaneRow {
  readonly newest_id: number;
  readonly newest_type: Buffer;
  readonly newest_seq: number;
  readonly newest_accepted: number;
  readonly newest_state: number;
  readonly newest_own_id: Buffer | null;
}

/** Lanes per statement if many may be passed over: over a whole large inbox, one statement would exceed the time limit. */
const SLICE = 100_000;
const ENDS = "select coalesce(min(id), 0) as lowest, coalesce(max(id), -1) as highest from {}.lane";

export async function findLaneRows(session: PgSession, query: LaneQuery): Promise<Page<LaneSummary>> {
  const { after = Number.MAX_SAFE_INTEGER, limit } = query;
  const owners = await ownersOf(session, query);
  if (owners?.length === 0) return { items: [], next: null };
  const filters = filtersOf(query);
  const [ends] = await session.rows<{ lowest: number; highest: number }>("lane_ends", ENDS);
  const { lowest, highest } = ends ?? { lowest: 0, highest: -1 };
  const looksIntoEvents = query.without !== undefined || query.quietSince !== undefined;
  const size = looksIntoEvents || owners !== null ? SLICE : Number.MAX_SAFE_INTEGER;
  const rows: SummaryRow[] = [];
  for (let to = Math.min(highest, after - 1); to >= lowest && rows.length <= limit; to -= size) {
    const { where, values } = laneConditions([...filters, [to - size, "l.id > ?::bigint"], [to, "l.id <= ?::bigint"]]);
    const text = `${SUMMARY} ${where} order by l.id desc limit ${limit + 1 - rows.length}`;
    rows.push(...(await session.rows<SummaryRow>(null, text, values)));
  }
  return pageOf(rows, limit, toSummary);
}

type Filter = readonly [value: unknown, sql: string];

function laneConditions(filters: readonly Filter[]): Conditions {
  const all = new Conditions();
  for (const [value, sql] of filters) all.add(value, sql);
  return all;
}

function filtersOf(query: LaneQuery): readonly Filter[] {
  const { statuses, order, source, tenant, peer, without, quietSince } = query;
  return [
    [statuses?.map((status) => STATUS[status]), "l.status = any(?::smallint[])"],
    [order === undefined ? undefined : orderCode(order), "l.ord = ?::smallint"],
    [source, "l.source = ?::text"],
    [tenant === undefined ? undefined : tenantBytes(tenant), "l.tenant = ?::bytea"],
    [typeof peer === "string" ? textBytes(peer) : undefined, "l.peer = ?::bytea"],
    [peer === null ? true : undefined, "(l.peer is null) = ?::boolean"],
    [without?.map(textBytes), `not ${HAS("e.type = any(?::bytea[])")}`],
    // Pruned events may have been of any type.
    [without?.length ? true : undefined, `(l.cursor is null or ${HAS("e.seq = l.cursor")}) = ?::boolean`],
    [quietSince, `not ${HAS("e.accepted > ?::bigint")}`],
  ];
}

const HAS = (what: string): string => `exists (select 1 from {}.event e where e.lane = l.id and ${what})`;

function toSummary(row: SummaryRow): LaneSummary {
  return {
    ...laneFacts(row),
    newest: {
      id: row.newest_id,
      ownId: row.newest_own_id && bytesId(row.newest_own_id),
      eventType: bytesText(row.newest_type),
      sequence: row.newest_seq,
      acceptedAt: row.newest_accepted,
      state: stateWord(row.newest_state),
    },
  };
}

/** Pending is the lowest state. A direct query for it could be planned as a scan of all events in the order of their ids. */
const OLDEST = `select accepted from (select state, accepted from {}.event where state <> 1 order by state, id limit 1) oldest
  where state = 0`;

export async function readTallyRows(session: PgSession): Promise<InboxStats> {
  const [row] = await session.rows<StatsRow>("stats", STATS);
  if (row === undefined) throw new RangeError("The inbox has no counters.");
  const [oldest] = await session.rows<{ accepted: number }>("oldest_pending", OLDEST);
  return {
    gauges: {
      pending: row.pending,
      dead: row.dead,
      quarantined: row.held,
      quarantinedBytes: row.held_bytes,
      blockedLanes: row.blocked,
    },
    counters: countersOf(row),
    oldestPendingAt: oldest?.accepted ?? null,
    newestSignedAt: row.newest_signed,
    serviceResigns: row.resigned,
    instances: await readInstanceRows(session),
  };
}

const AUDIT = "select id, at, by, act, detail from {}.audit order by id desc limit $1::int";

/** The newest `limit` audit rows, newest first. */
export function readAuditRows(session: PgSession, limit: number): Promise<readonly AuditRecord[]> {
  return session.rows<AuditRecord>("audit", AUDIT, [limit]);
}
