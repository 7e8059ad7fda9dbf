/** Queries for operators: events, lanes and quarantined bodies by filter, counters, and the audit. */
import { besideCursor, newLane, toEventSummary } from "../../inbox/lane-state.ts";
import type {
  AttemptRecord,
  AuditRecord,
  EventSummary,
  GapRecord,
  InboxStats,
  LaneKey,
  LaneRecord,
  LaneSummary,
  QuarantineRecord,
  QuarantineSummary,
} from "../../inbox/record.ts";
import type { EventQuery, LaneQuery, Page, QuarantineQuery } from "../../inbox/store.ts";
import { EVENTS_BESIDE_CURSOR, pageOf, plainText } from "../../inbox/store-rules.ts";
import { HELD, heldWord, OUTCOME, STATE, STATUS, stateWord, TAG, TAGS_OF_SOURCES, tagWord } from "../database.ts";
import { bytesText, textBytes } from "./encoding.ts";
import { countersOf, readInstanceRows, STATS, type StatsRow } from "./instances.ts";
import {
  eventColumns,
  eventOfRow,
  idsIn,
  LANE_IDS_OF_MESSAGE,
  type LeaseRow,
  laneColumns,
  laneFacts,
  type PgEventRow,
  type PgLaneRow,
  takeLease,
} from "./lanes.ts";
import { idsOf, type Names } from "./names.ts";
import type { PgSession } from "./session.ts";

/** The columns and joined tables of an event, as `summaryOf` needs them. */
const EVENT = `select ${eventColumns("e")}, l.tag, l.message, l.leased, l.leased_attempts, l.leased_started,
  k.name as kind_name, c.name as client_name
  from {}.event e join {}.lane l on l.id = e.lane join {}.kind k on k.id = e.kind join {}.client c on c.id = l.client`;

interface FullEventRow extends PgEventRow, LeaseRow {
  readonly tag: number;
  readonly message: Buffer;
  readonly kind_name: Buffer;
  readonly client_name: Buffer;
}

function summaryOf(row: FullEventRow): EventSummary {
  const key = { apiClientId: bytesText(row.client_name), tag: tagWord(row.tag), messageId: bytesText(row.message) };
  const lane = newLane(row.lane, key);
  const event = eventOfRow(lane, row, bytesText(row.kind_name));
  takeLease(event, row);
  return toEventSummary(event);
}

const BY_ID = `select ${laneColumns("l")} from {}.lane l where id = $1::bigint`;
const BY_KEY = `select ${laneColumns("l")} from {}.lane l join {}.client c on c.id = l.client
  where c.name = $1::bytea and l.tag = $2::smallint and l.message = $3::bytea`;
const ATTEMPTS = `select a.event as "eventId", a.attempt, a.at, a.duration as "durationMs", a.error_code as "errorCode", a.error
  from {}.attempt a where a.event = any($1::bigint[]) order by a.id`;
const ONE_MORE = EVENTS_BESIDE_CURSOR + 1;
const BESIDE_CURSOR = `(${EVENT} where e.lane = $1::bigint and e.seq < $2::bigint order by e.seq desc, e.id desc limit ${ONE_MORE})
  union all (${EVENT} where e.lane = $1::bigint and e.seq >= $2::bigint order by e.seq, e.id limit ${ONE_MORE})`;
const GAPS = `select lo as "from", hi as "to", skipped as "skippedAt", filled as "filledAt" from {}.gap where lane = $1::bigint order by hi`;

/** A lane with its events, gaps and attempts; null when there is none. */
export async function readLane(session: PgSession, names: Names, ref: LaneKey | number): Promise<LaneRecord | null> {
  const [name, text, values] =
    typeof ref === "number"
      ? ["lane_by_id", BY_ID, [ref]]
      : ["lane_by_key", BY_KEY, [textBytes(ref.apiClientId), TAG[ref.tag], textBytes(ref.messageId)]];
  const [row] = await session.rows<PgLaneRow>(name, text, values);
  if (row === undefined) return null;
  await names.learn(session, { clients: [row.client], kinds: [] });
  const near = [row.id, row.cursor ?? Number.MIN_SAFE_INTEGER];
  const found = await session.rows<FullEventRow>("lane_events", BESIDE_CURSOR, near);
  const { events, more } = besideCursor(found.map(summaryOf), row.cursor);
  const gaps = await session.rows<GapRecord>("lane_gaps", GAPS, [row.id]);
  const attempts = await session.rows<AttemptRecord>("attempts", ATTEMPTS, [idsIn(events)]);
  return { ...laneFacts(row, names.client(row.client)), events, more, gaps, attempts };
}

type Stored<Row> = Omit<Row, "state" | "untimed"> & { readonly state: number; readonly untimed: boolean | null };

const quarantineWith = (
  body: string,
) => `select id, reason, slot, signer, scope, state, replayed_as as "replayedAs", signed as "signedAt",
  accepted as "acceptedAt", trace, digest, ${body}, untimed from {}.quarantine`;
const QUARANTINE = quarantineWith("raw, head");
/** The length is in the header of the value: no body is read. */
const QUARANTINE_SUMMARY = quarantineWith("octet_length(raw) as bytes");

function toQuarantine<Row extends Stored<QuarantineRecord> | Stored<QuarantineSummary>>(row: Row) {
  return { ...row, state: heldWord(row.state), untimed: row.untimed === true };
}

/** Builds a `where` clause from the filters that are given. */
class Conditions {
  readonly values: unknown[] = [];
  readonly #sql: string[] = [];

  /** `?` in `sql` becomes the parameter; nothing is added for an undefined value. */
  add(value: unknown, sql: string): void {
    if (value === undefined) return;
    this.values.push(value);
    this.#sql.push(sql.replaceAll("?", `$${this.values.length}`));
  }

  get where(): string {
    return this.#sql.length === 0 ? "" : `where ${this.#sql.join(" and ")}`;
  }
}

export async function findRows(session: PgSession, query: EventQuery): Promise<Page<EventSummary>> {
  const conditions = eventConditions(query);
  const { eventType, apiClientId } = query;
  if (eventType !== undefined) conditions.add(await idsOf(session, "kind", [eventType]), "e.kind = any(?::int[])");
  if (apiClientId !== undefined)
    conditions.add(await idsOf(session, "client", [apiClientId]), "l.client = any(?::int[])");
  if (query.source !== undefined) conditions.add(await clientsOf(session, query.source), OF_SOURCE);
  const direction = query.order === "oldest" ? "asc" : "desc";
  conditions.add(query.after, direction === "asc" ? "e.id > ?::bigint" : "e.id < ?::bigint");
  const text = `${EVENT} ${conditions.where} order by e.id ${direction} limit ${query.limit + 1}`;
  const rows = await session.rows<FullEventRow>(null, text, conditions.values);
  return pageOf(rows, query.limit, summaryOf);
}

const OF_SOURCE = `l.tag in (${TAGS_OF_SOURCES.join(", ")}) and l.client = any(?::int[])`;
const CLIENTS_OF = `select id from {}.client where name = $1::bytea or substring(name for $2::int) = $3::bytea`;

/** The clients of an entry: one for each tenant, and one without. */
async function clientsOf(session: PgSession, source: string): Promise<readonly number[]> {
  const values = [textBytes(source), source.length + 1, textBytes(`${source}:`)];
  return idsIn(await session.rows<{ id: number }>("clients_of", CLIENTS_OF, values));
}

/** Also the events of other sources with this identity, or in the lane of this name. */
const OF_MESSAGE_OR_EVENT = `e.id = any(array(select id from {}.event where lane = any(array(${LANE_IDS_OF_MESSAGE("?")}))
  union all select id from {}.event where identity = ?::bytea))`;

function eventConditions(query: EventQuery): Conditions {
  const all = new Conditions();
  const bytes = (text: string | undefined) => (text === undefined ? undefined : textBytes(text));
  all.add(
    query.states?.map((state) => STATE[state]),
    "e.state = any(?::smallint[])",
  );
  all.add(query.outcome === undefined ? undefined : OUTCOME[query.outcome], "e.outcome = ?::smallint");
  all.add(query.late, "e.late = ?::boolean");
  all.add(query.conflict, "e.conflict = ?::boolean");
  all.add(query.errorCode === undefined ? undefined : plainText(query.errorCode), "e.error_code = ?::text");
  all.add(bytes(query.messageId), OF_MESSAGE_OR_EVENT);
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

const SUMMARY = `select ${laneColumns("l")}, c.name as client_name, n.id as newest_id, k.name as newest_kind, n.seq as newest_seq,
  n.accepted as newest_accepted, n.state as newest_state
  from {}.lane l join {}.client c on c.id = l.client
  cross join lateral (select id, kind, seq, accepted, state from {}.event where lane = l.id order by id desc limit 1) n
  join {}.kind k on k.id = n.kind`;

interface SummaryRow extends PgLaneRow {
  readonly client_name: Buffer;
  readonly newest_id: number;
  readonly newest_kind: Buffer;
  readonly newest_seq: number;
  readonly newest_accepted: number;
  readonly newest_state: number;
}

/** Lanes per statement if their events are searched: over a whole large inbox, one statement would exceed the time limit. */
const SLICE = 100_000;
const ENDS = "select coalesce(min(id), 0) as lowest, coalesce(max(id), -1) as highest from {}.lane";

export async function findLaneRows(session: PgSession, query: LaneQuery): Promise<Page<LaneSummary>> {
  const { after = Number.MAX_SAFE_INTEGER, limit } = query;
  const filters = await filtersOf(session, query);
  const [ends] = await session.rows<{ lowest: number; highest: number }>("lane_ends", ENDS);
  const { lowest, highest } = ends ?? { lowest: 0, highest: -1 };
  const looksIntoEvents = query.without !== undefined || query.quietSince !== undefined;
  const size = looksIntoEvents ? SLICE : Number.MAX_SAFE_INTEGER;
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

async function filtersOf(session: PgSession, query: LaneQuery): Promise<readonly Filter[]> {
  const { statuses, tag, apiClientId, source, peer, without, quietSince } = query;
  const ofSource = source === undefined ? undefined : await clientsOf(session, source);
  const clients = apiClientId === undefined ? undefined : await idsOf(session, "client", [apiClientId]);
  const kinds = without === undefined ? undefined : await idsOf(session, "kind", without);
  return [
    [statuses?.map((status) => STATUS[status]), "l.status = any(?::smallint[])"],
    [tag === undefined ? undefined : TAG[tag], "l.tag = ?::smallint"],
    [clients, "l.client = any(?::int[])"],
    [ofSource, OF_SOURCE],
    [typeof peer === "string" ? textBytes(peer) : undefined, "l.peer = ?::bytea"],
    [peer === null ? true : undefined, "(l.peer is null) = ?::boolean"],
    [kinds, `not ${HAS("e.kind = any(?::int[])")}`],
    // Pruned events may have been of any type.
    [without?.length ? true : undefined, `(l.cursor is null or ${HAS("e.seq = l.cursor")}) = ?::boolean`],
    [quietSince, `not ${HAS("e.accepted > ?::bigint")}`],
  ];
}

const HAS = (what: string): string => `exists (select 1 from {}.event e where e.lane = l.id and ${what})`;

function toSummary(row: SummaryRow): LaneSummary {
  return {
    ...laneFacts(row, bytesText(row.client_name)),
    newest: {
      id: row.newest_id,
      eventType: bytesText(row.newest_kind),
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
