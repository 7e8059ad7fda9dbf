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
import { EVENTS_BESIDE_CURSOR } from "../../inbox/store-rules.ts";
import type { SqliteDatabase, SqliteStatement } from "../../internal/sqlite-driver.ts";
import { heldWord, outcomeWord, stateWord, statusWord, TAG, tagWord } from "../database.ts";

/** The fields in an event's own row. */
export const OF_EVENT = `e.id, e.lane as laneId, e.seq as sequence, e.state, e.outcome, e.late, e.forced, e.occurred as occurredAt,
  e.signed as signedAt, e.accepted as acceptedAt, e.started as startedAt, e.finished as finishedAt, e.attempts, e.duplicates,
  e.conflict, e.error_code as errorCode, e.error, e.trace, e.digest, e.untimed, e.identity`;

/** Columns, joined tables and order of an event with `body`. */
const eventWith = (
  body: string,
) => `select ${OF_EVENT}, c.name as apiClientId, l.tag, l.message as messageId, k.name as eventType, ${body}
  from oncehook_event e cross join oncehook_lane l on l.id = e.lane cross join oncehook_client c on c.id = l.client
  cross join oncehook_kind k on k.id = e.kind left join oncehook_body b on b.event = e.id`;
/** An event as `toEvent` reads it. */
export const EVENT = eventWith("b.raw, b.head");
/** An event as `toEventSummary` reads it: no page of a body is read. */
export const EVENT_SUMMARY = eventWith("b.event is not null as hasBody");

/** The columns of either. */
interface FactsRow
  extends Omit<EventSummary, "lane" | "state" | "outcome" | "late" | "forced" | "conflict" | "untimed" | "hasBody"> {
  readonly apiClientId: string;
  readonly tag: number;
  readonly messageId: string;
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
export type RowOfEvent = Omit<EventRow, "apiClientId" | "tag" | "messageId" | "eventType" | "raw" | "head">;

/** Field by field: taking a few out of a row by rest and spread takes twenty times as long, and lanes and pages hold many. */
export function toEvent(row: EventRow): EventRecord {
  return { ...factsOf(row), raw: row.raw, head: row.head };
}

export function toEventSummary(row: EventSummaryRow): EventSummary {
  return { ...factsOf(row), hasBody: row.hasBody === 1 };
}

function factsOf(row: FactsRow) {
  const { id, laneId, sequence, eventType, occurredAt, signedAt, acceptedAt, startedAt, finishedAt } = row;
  const { attempts, duplicates, errorCode, error, trace, digest } = row;
  return {
    id,
    laneId,
    lane: { apiClientId: row.apiClientId, tag: tagWord(row.tag), messageId: row.messageId },
    identity: row.identity,
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

interface LaneFacts extends Omit<LaneRecord, "key" | "status" | "events" | "more" | "gaps" | "attempts"> {
  readonly apiClientId: string;
  readonly tag: number;
  readonly messageId: string;
  readonly status: number;
}

const LANE_FACTS = `l.id, c.name as apiClientId, l.tag, l.message as messageId, l.cursor, l.status, l.ready_at as readyAt,
  l.gap_since as gapSince, l.peer, l.reference as externalReference`;
const LANE = `select ${LANE_FACTS} from oncehook_lane l join oncehook_client c on c.id = l.client`;

/** Columns, joined tables and order of a lane as `toSummary` reads it. */
export const SUMMARY = `select ${LANE_FACTS}, n.id as newestId, k.name as newestType, n.seq as newestSequence,
  n.accepted as newestAcceptedAt, n.state as newestState
  from oncehook_lane l cross join oncehook_client c on c.id = l.client
  cross join oncehook_event n on n.id = (select max(id) from oncehook_event where lane = l.id)
  cross join oncehook_kind k on k.id = n.kind`;

export interface SummaryRow extends LaneFacts {
  readonly newestId: number;
  readonly newestType: string;
  readonly newestSequence: number;
  readonly newestAcceptedAt: number;
  readonly newestState: number;
}

export function toSummary(row: SummaryRow): LaneSummary {
  const { newestId, newestType, newestSequence, newestAcceptedAt, newestState, ...lane } = row;
  return {
    ...toLaneFacts(lane),
    newest: {
      id: newestId,
      eventType: newestType,
      sequence: newestSequence,
      acceptedAt: newestAcceptedAt,
      state: stateWord(newestState),
    },
  };
}

function toLaneFacts({ apiClientId, tag, messageId, status, ...facts }: LaneFacts) {
  return { ...facts, key: { apiClientId, tag: tagWord(tag), messageId }, status: statusWord(status) };
}

const LANE_BY_ID = `${LANE} where l.id = ?`;
const LANE_BY_KEY = `${LANE} where c.name = ? and l.tag = ? and l.message = ?`;
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
  read(ref: LaneKey | number): LaneRecord | null {
    const row = (
      typeof ref === "number"
        ? this.#statement(LANE_BY_ID).get(ref)
        : this.#statement(LANE_BY_KEY).get(ref.apiClientId, TAG[ref.tag], ref.messageId)
    ) as LaneFacts | undefined;
    if (row === undefined) return null;
    const { events, more } = this.#eventsOf(row);
    const gaps = this.#statement(LANE_GAPS).all(row.id) as GapRecord[];
    const attempts = this.#statement(LANE_ATTEMPTS).all(JSON.stringify(events.map(({ id }) => id))) as AttemptRecord[];
    return { ...toLaneFacts(row), events, more, gaps, attempts };
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

type Stored<Row> = Omit<Row, "state" | "untimed"> & { readonly state: number; readonly untimed: number | null };

export type QuarantineRow = Stored<QuarantineRecord>;
export type QuarantineSummaryRow = Stored<QuarantineSummary>;

const quarantineWith = (
  body: string,
) => `select id, reason, slot, signer, scope, state, replayed_as as replayedAs, signed as signedAt,
  accepted as acceptedAt, trace, digest, ${body}, untimed from oncehook_quarantine`;
export const QUARANTINE = quarantineWith("raw, head");
/** The length is in the header of the row: no page of a body is read. */
export const QUARANTINE_SUMMARY = quarantineWith("length(raw) as bytes");

export function toQuarantine<Row extends QuarantineRow | QuarantineSummaryRow>(row: Row) {
  return { ...row, state: heldWord(row.state), untimed: row.untimed === 1 };
}
