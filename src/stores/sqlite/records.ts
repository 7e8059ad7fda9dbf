/** Turns rows into the records that operators see. */
import type {
  AttemptRecord,
  EventRecord,
  EventSummary,
  GapRecord,
  LaneKey,
  LaneRecord,
  LaneSummary,
  QuarantineRecord,
  QuarantineSummary,
} from "../../inbox/record.ts";
import type { LaneRef } from "../../inbox/store.ts";
import { EVENTS_BESIDE_CURSOR } from "../../inbox/store-rules.ts";
import type { SqliteDatabase, SqliteStatement } from "../../internal/sqlite-driver.ts";
import {
  heldWord,
  idText,
  idValue,
  kindsOf,
  orderCode,
  orderWord,
  outcomeWord,
  stateWord,
  statusWord,
  tenantOf,
  tenantText,
} from "../database.ts";

/** The fields in an event's own row. */
export const OF_EVENT = `e.id, e.lane as laneId, e.seq as sequence, e.type as eventType, e.source, e.tenant, e.state, e.outcome, e.late, e.forced, e.occurred as occurredAt,
  e.signed as signedAt, e.accepted as acceptedAt, e.started as startedAt, e.finished as finishedAt, e.attempts, e.duplicates,
  e.conflict, e.error_code as errorCode, e.error, e.trace, e.digest, e.untimed, e.own_id as ownId`;

/** Columns, joined tables and order of an event with `body`. */
const eventWith = (body: string) => `select ${OF_EVENT}, l.name, l.ord, ${body}
  from oncehook_event e cross join oncehook_lane l on l.id = e.lane left join oncehook_body b on b.event = e.id`;
/** An event as `toEvent` reads it. */
export const EVENT = eventWith("b.raw, b.head");
/** An event as `toEventSummary` reads it: no page of a body is read. */
export const EVENT_SUMMARY = eventWith("b.event is not null as hasBody");

/** The columns of a lane's key. */
interface KeyRow {
  readonly source: string;
  readonly tenant: string;
  readonly name: string | null;
  readonly ord: number;
}

/** The columns of either. */
interface FactsRow
  extends KeyRow,
    Omit<
      EventSummary,
      "lane" | "ownId" | "state" | "outcome" | "late" | "forced" | "conflict" | "untimed" | "hasBody"
    > {
  readonly ownId: string | Buffer | null;
  readonly state: number;
  readonly outcome: number | null;
  readonly late: number;
  readonly forced: number;
  readonly conflict: number;
  readonly untimed: number | null;
}

export interface EventRow extends FactsRow, Pick<EventRecord, "raw" | "head"> {}

export interface EventSummaryRow extends FactsRow {
  readonly hasBody: number;
}

/** The columns of `OF_EVENT`. */
export type RowOfEvent = Omit<EventRow, "name" | "ord" | "raw" | "head">;

/** Field by field: taking a few out of a row by rest and spread takes twenty times as long, and lanes and pages hold many. */
export function toEvent(row: EventRow): EventRecord {
  return { ...factsOf(row), raw: row.raw, head: row.head };
}

export function toEventSummary(row: EventSummaryRow): EventSummary {
  return { ...factsOf(row), hasBody: row.hasBody === 1 };
}

function keyOf({ source, tenant, name, ord }: KeyRow): LaneKey {
  return { source, tenant: tenantOf(tenant), name, order: orderWord(ord) };
}

function factsOf(row: FactsRow) {
  const { id, laneId, sequence, eventType, occurredAt, signedAt, acceptedAt, startedAt, finishedAt } = row;
  const { attempts, duplicates, errorCode, error, trace, digest } = row;
  return {
    id,
    laneId,
    lane: keyOf(row),
    ownId: idText(row.ownId),
    sequence,
    eventType,
    state: stateWord(row.state),
    outcome: outcomeWord(row.outcome),
    late: row.late === 1,
    forced: row.forced === 1,
    occurredAt,
    signedAt,
    untimed: row.untimed === 1,
    acceptedAt,
    startedAt,
    finishedAt,
    attempts,
    duplicates,
    conflict: row.conflict === 1,
    errorCode,
    error,
    trace,
    digest,
  };
}

interface LaneFacts extends KeyRow, Omit<LaneRecord, "key" | "status" | "events" | "more" | "gaps" | "attempts"> {
  readonly status: number;
}

const LANE_FACTS = `l.id, l.source, l.tenant, l.name, l.ord, l.cursor, l.status, l.ready_at as readyAt,
  l.gap_since as gapSince, l.peer, l.reference as externalReference`;
const LANE = `select ${LANE_FACTS} from oncehook_lane l`;

/** Columns, joined tables and order of a lane as `toSummary` reads it. */
export const SUMMARY = `select ${LANE_FACTS}, n.id as newestId, n.type as newestType, n.seq as newestSequence,
  n.accepted as newestAcceptedAt, n.state as newestState, n.own_id as newestOwnId
  from oncehook_lane l cross join oncehook_event n on n.id = (select max(id) from oncehook_event where lane = l.id)`;

export interface SummaryRow extends LaneFacts {
  readonly newestId: number;
  readonly newestType: string;
  readonly newestSequence: number;
  readonly newestAcceptedAt: number;
  readonly newestState: number;
  readonly newestOwnId: string | Buffer | null;
}

export function toSummary(row: SummaryRow): LaneSummary {
  const { newestId, newestType, newestSequence, newestAcceptedAt, newestState, newestOwnId, ...lane } = row;
  return {
    ...toLaneFacts(lane),
    newest: {
      id: newestId,
      ownId: idText(newestOwnId),
      eventType: newestType,
      sequence: newestSequence,
      acceptedAt: newestAcceptedAt,
      state: stateWord(newestState),
    },
  };
}

function toLaneFacts({ source, tenant, name, ord, status, ...facts }: LaneFacts) {
  return { ...facts, key: keyOf({ source, tenant, name, ord }), status: statusWord(status) };
}

const LANE_BY_ID = `${LANE} where l.id = ?`;
const LANE_BY_KEY = `${LANE} where l.name = ? and l.source = ? and l.tenant = ? and l.ord = ?`;
const LANE_OF_EVENT = `${LANE} where l.id = (select lane from oncehook_event indexed by oncehook_event_own_id
  where own_id = ? and source = ? and tenant = ?)`;
const FROM_CURSOR = `${EVENT_SUMMARY} where e.lane = ? and e.seq >= ? order by e.seq, e.id limit ${EVENTS_BESIDE_CURSOR + 1}`;
const BEFORE_CURSOR = `${EVENT_SUMMARY} where e.lane = ? and e.seq < ? order by e.seq desc, e.id desc limit ${EVENTS_BESIDE_CURSOR + 1}`;
const LANE_GAPS = `select lo as "from", hi as "to", skipped as skippedAt, filled as filledAt
  from oncehook_gap where lane = ? order by hi`;
const LANE_ATTEMPTS = `select a.event as eventId, a.attempt, a.at, a.duration as durationMs, a.error_code as errorCode, a.error
  from json_each(?) e cross join oncehook_attempt a on a.event = e.value order by a.id`;

/** Reads lanes with their events. */
export class LaneReader {
  readonly #db: SqliteDatabase;
  /** Prepared when first needed: it takes longer than reading, but not every open reads a lane. */
  readonly #prepared = new Map<string, SqliteStatement>();

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  /** Null when there is no such lane. */
  read(ref: LaneRef): LaneRecord | null {
    const row = this.#find(ref) as LaneFacts | undefined;
    if (row === undefined) return null;
    const { events, more } = this.#eventsOf(row);
    const gaps = this.#statement(LANE_GAPS).all(row.id) as GapRecord[];
    const attempts = this.#statement(LANE_ATTEMPTS).all(JSON.stringify(events.map(({ id }) => id))) as AttemptRecord[];
    return { ...toLaneFacts(row), events, more, gaps, attempts };
  }

  #find(ref: LaneRef): unknown {
    if (typeof ref === "number") return this.#statement(LANE_BY_ID).get(ref);
    const tenant = tenantText(ref.tenant);
    if ("id" in ref) return this.#statement(LANE_OF_EVENT).get(idValue(ref.id), ref.source, tenant);
    return this.#statement(LANE_BY_KEY).get(ref.name, ref.source, tenant, orderCode(ref.order));
  }

  /** As `LaneRecord`; one more of each side shows whether there are more. */
  #eventsOf({ id, cursor }: LaneFacts): Pick<LaneRecord, "events" | "more"> {
    const from = cursor ?? Number.MIN_SAFE_INTEGER;
    const behind = this.#statement(FROM_CURSOR).all(id, from) as EventSummaryRow[];
    const before = this.#statement(BEFORE_CURSOR).all(id, from) as EventSummaryRow[];
    const shown = [...before.slice(0, EVENTS_BESIDE_CURSOR).reverse(), ...behind.slice(0, EVENTS_BESIDE_CURSOR)];
    return { events: shown.map(toEventSummary), more: shown.length < before.length + behind.length };
  }

  #statement(sql: string): SqliteStatement {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}

type Stored<Row> = Omit<Row, "tenant" | "kinds" | "state" | "untimed"> & {
  readonly tenant: string;
  readonly kinds: string;
  readonly state: number;
  readonly untimed: number | null;
};

export type QuarantineRow = Stored<QuarantineRecord>;
export type QuarantineSummaryRow = Stored<QuarantineSummary>;

const quarantineWith = (
  body: string,
) => `select id, reason, slot, signer, source, tenant, kinds, state, replayed_as as replayedAs, signed as signedAt,
  accepted as acceptedAt, trace, digest, ${body}, untimed from oncehook_quarantine`;
export const QUARANTINE = quarantineWith("raw, head");
/** The length is in the header of the row: no page of a body is read. */
export const QUARANTINE_SUMMARY = quarantineWith("length(raw) as bytes");

export function toQuarantine<Row extends QuarantineRow | QuarantineSummaryRow>(row: Row) {
  const { tenant, kinds, state, untimed } = row;
  const facts = { tenant: tenantOf(tenant), kinds: kindsOf(kinds), state: heldWord(state) };
  return { ...row, ...facts, untimed: untimed === 1 };
}
