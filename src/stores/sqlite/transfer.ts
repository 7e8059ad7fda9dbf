/** Exports the SQLite inbox's lanes to another store, and imports another store's. */
import type {
  AttemptRecord,
  ConflictRecord,
  GapRecord,
  ImportAnswer,
  ImportPage,
  LaneRecord,
  QuarantineRecord,
  TransferredEvent,
  TransferredLane,
  TransferredTotals,
} from "../../inbox/record.ts";
import { countIn, withinBytes, withoutLease } from "../../inbox/store-rules.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import {
  HELD,
  idValue,
  keepOf,
  kindsText,
  OUTCOME,
  orderCode,
  orderWord,
  STATE,
  STATUS,
  statusWord,
  tenantOf,
  tenantText,
} from "../database.ts";
import { EVENT, type EventRow, toEvent } from "./records.ts";
import { readMeta, writeMeta } from "./schema.ts";
import type { Work } from "./transaction.ts";

// Gives the SQLite inbox's lanes to another store.

interface LaneFacts extends Omit<LaneRecord, "key" | "status" | "events" | "more" | "gaps" | "attempts"> {
  readonly source: string;
  readonly tenant: string;
  readonly name: string | null;
  readonly ord: number;
  readonly status: number;
  readonly leased: number | null;
}

/** SQLite holds a wait as it was given, and an integer column elsewhere refuses fractions of a millisecond. */
const LANES = `select l.id, l.source, l.tenant, l.name, l.ord, l.cursor, l.status,
  cast(round(l.ready_at) as integer) as readyAt, l.gap_since as gapSince, l.peer, l.reference as externalReference, l.leased
  from oncehook_lane l where l.id > ? order by l.id limit ?`;
const EVENTS = `${EVENT} where e.lane between ? and ? order by e.lane, e.seq, e.id`;
const WAITS = "select id, gap_wait as gapWaitMs from oncehook_event where lane between ? and ?";
const CONFLICTS = `select c.event, c.digest, c.signed as signedAt, c.at, c.raw
  from oncehook_event e cross join oncehook_conflict c on c.event = e.id where e.lane between ? and ?`;
const GAPS = `select lane, lo as "from", hi as "to", skipped as skippedAt, filled as filledAt
  from oncehook_gap where lane between ? and ? order by lane, hi`;
const ATTEMPTS = `select e.lane, a.event as eventId, a.attempt, a.at, a.duration as durationMs, a.error_code as errorCode, a.error
  from oncehook_event e cross join oncehook_attempt a on a.event = e.id where e.lane between ? and ? order by a.id`;

type OfLane<T> = T & { readonly lane: number };

export function exportLanes(db: SqliteDatabase, after: number, limit: number): TransferredLane[] {
  const lanes = withinBytes(db.prepare(LANES).all(after, limit) as LaneFacts[], laneBytes(db));
  const range = [lanes[0]?.id ?? 0, lanes.at(-1)?.id ?? 0];
  const events = eventsOf(db, range);
  const gaps = byLane(db.prepare(GAPS).all(...range) as OfLane<GapRecord>[]);
  const attempts = byLane(db.prepare(ATTEMPTS).all(...range) as OfLane<AttemptRecord>[]);
  return lanes.map(({ source, tenant, name, ord, leased, ...facts }) => {
    const own = events.get(facts.id) ?? [];
    const lane = { ...facts, status: statusWord(facts.status) };
    return {
      ...lane,
      key: { source, tenant: tenantOf(tenant), name, order: orderWord(ord) },
      ...withoutLease(
        lane,
        own.find(({ id }) => id === leased),
      ),
      events: own,
      gaps: gaps.get(facts.id) ?? [],
      attempts: attempts.get(facts.id) ?? [],
    };
  });
}

/** The length of a body is in the header of its row. */
const BYTES = `select (select total(length(raw)) from oncehook_event e cross join oncehook_body b on b.event = e.id where e.lane = :lane)
  + (select total(length(raw)) from oncehook_event e cross join oncehook_conflict c on c.event = e.id where e.lane = :lane) as bytes`;

function laneBytes(db: SqliteDatabase): (lane: LaneFacts) => number {
  const bytes = db.prepare(BYTES);
  return ({ id }) => (bytes.get({ lane: id }) as { readonly bytes: number }).bytes;
}

function eventsOf(db: SqliteDatabase, range: readonly number[]): ReadonlyMap<number, TransferredEvent[]> {
  const waits = db.prepare(WAITS).all(...range) as { readonly id: number; readonly gapWaitMs: number }[];
  const conflicts = db.prepare(CONFLICTS).all(...range) as (ConflictRecord & { readonly event: number })[];
  const waitOf = new Map(waits.map(({ id, gapWaitMs }) => [id, gapWaitMs]));
  const conflictOf = new Map(conflicts.map(({ event, ...conflict }) => [event, conflict]));
  const rows = (db.prepare(EVENTS).all(...range) as EventRow[]).map(toEvent);
  return byLane(
    rows.map(({ laneId, lane: _key, ...facts }) => ({
      ...facts,
      lane: laneId,
      gapWaitMs: waitOf.get(facts.id) ?? 0,
      conflicting: conflictOf.get(facts.id) ?? null,
    })),
  );
}

function byLane<T>(rows: readonly OfLane<T>[]): ReadonlyMap<number, T[]> {
  const lanes = new Map<number, T[]>();
  for (const { lane, ...row } of rows) {
    const own = lanes.get(lane) ?? [];
    // The rest of the row, without its lane, is the record.
    own.push(row as unknown as T);
    lanes.set(lane, own);
  }
  return lanes;
}

// Takes another store's lanes into the SQLite inbox.

const EMPTY = `select not exists (select 1 from oncehook_lane) and not exists (select 1 from oncehook_quarantine)
  and not exists (select 1 from oncehook_audit) as empty`;

export function importPage(work: Work, page: ImportPage): ImportAnswer {
  const { db } = work;
  if (!isFrom(db, page.source)) return { ok: false };
  writeMeta(db, "copied_from", page.source);
  const finished = readMeta(db, "copy_finished") !== undefined;
  if (!finished) take(work, page);
  const { last } = db.prepare("select coalesce(max(id), 0) as last from oncehook_lane").get() as { last: number };
  return { ok: true, lastLane: last, finished: finished || page.totals !== null };
}

function isFrom(db: SqliteDatabase, source: string): boolean {
  const recorded = readMeta(db, "copied_from");
  if (recorded !== undefined) return recorded === source;
  return (db.prepare(EMPTY).get() as { readonly empty: number }).empty === 1;
}

function take(work: Work, page: ImportPage): void {
  const insert = prepareInserts(work.db);
  for (const lane of page.lanes) takeLane(work, insert, lane);
  for (const row of page.quarantined) takeQuarantined(work, insert, row);
  for (const row of page.audit) insert.audit.run(row.id, row.at, row.by, row.act, row.detail);
  if (page.totals !== null) takeTotals(work, page.totals);
}

type Inserts = ReturnType<typeof prepareInserts>;

function prepareInserts(db: SqliteDatabase) {
  const into = (table: string, columns: string) =>
    db.prepare(
      `insert into oncehook_${table} (${columns}) values (${columns.replace(/[^,]+/g, "?")}) on conflict do nothing`,
    );
  return {
    lane: into(
      "lane",
      "id, name, source, tenant, ord, status, ready_at, cursor, gap_since, token, below, peer, reference",
    ),
    event: into(
      "event",
      `id, lane, seq, type, source, tenant, state, outcome, keep, finished, attempts, started, late, forced, duplicates, conflict, gap_wait,
       occurred, signed, accepted, error_code, error, digest, trace, untimed, own_id`,
    ),
    body: into("body", "event, raw, head"),
    conflict: into("conflict", "event, digest, signed, at, raw"),
    gap: into("gap", "lane, hi, lo, skipped, filled"),
    attempt: into("attempt", "event, attempt, at, duration, error_code, error"),
    quarantine: into(
      "quarantine",
      "id, digest, reason, slot, signer, source, tenant, kinds, state, replayed_as, signed, accepted, bytes, trace, raw, head, untimed",
    ),
    audit: into("audit", "id, at, by, act, detail"),
  };
}

/** A lane that is there was taken by an earlier call, whole. */
function takeLane(work: Work, insert: Inserts, lane: TransferredLane): void {
  const { id, key, status, cursor, events } = lane;
  const tenant = tenantText(key.tenant);
  const below = events.some((e) => e.state === "pending" && (e.late || (cursor !== null && e.sequence < cursor)));
  const position = [STATUS[status], lane.readyAt, cursor, lane.gapSince, 0, below ? 1 : 0];
  const names = [lane.peer, lane.externalReference];
  const { changes } = insert.lane.run(id, key.name, key.source, tenant, orderCode(key.order), ...position, ...names);
  if (changes === 0) return;
  for (const event of events) takeEvent(work, insert, { lane: id, source: key.source, tenant, event });
  for (const { from, to, skippedAt, filledAt } of lane.gaps) insert.gap.run(id, to, from, skippedAt, filledAt);
  for (const { eventId, attempt, at, durationMs, errorCode, error } of lane.attempts) {
    insert.attempt.run(eventId, attempt, at, durationMs, errorCode, error);
  }
  work.ledger.gauge("pending", countIn(events, "pending"));
  work.ledger.gauge("dead", countIn(events, "dead"));
  if (status === "blocked") work.ledger.gauge("blocked");
  work.sql.raiseCounter.run(id + 1, "next_lane");
}

interface Owned {
  readonly lane: number;
  readonly source: string;
  readonly tenant: string;
  readonly event: TransferredEvent;
}

function takeEvent(work: Work, insert: Inserts, { lane, source, tenant, event }: Owned): void {
  const { id, raw, conflicting, outcome, state } = event;
  insert.event.run(
    id,
    lane,
    event.sequence,
    event.eventType,
    source,
    tenant,
    STATE[state],
    outcome === null ? null : OUTCOME[outcome],
    keepOf({ state, outcome, hasBody: raw !== null }),
    event.finishedAt,
    event.attempts,
    event.startedAt,
    event.late ? 1 : 0,
    event.forced ? 1 : 0,
    event.duplicates,
    event.conflict ? 1 : 0,
    event.gapWaitMs,
    event.occurredAt,
    event.signedAt,
    event.acceptedAt,
    event.errorCode,
    event.error,
    event.digest,
    event.trace,
    event.untimed ? 1 : null,
    event.ownId === null ? null : idValue(event.ownId),
  );
  if (raw !== null) insert.body.run(id, raw, event.head);
  if (conflicting !== null) {
    insert.conflict.run(id, conflicting.digest, conflicting.signedAt, conflicting.at, conflicting.raw);
  }
  work.sql.raiseCounter.run(id + 1, "next_event");
}

function takeQuarantined(work: Work, insert: Inserts, row: QuarantineRecord): void {
  const { id, digest, reason, slot, signer, kinds, state, replayedAs, signedAt, acceptedAt, trace, raw, head } = row;
  const bytes = raw?.byteLength ?? 0;
  const owner = [row.source, tenantText(row.tenant), kindsText(kinds)];
  const source = [digest, reason, slot, signer, ...owner, HELD[state], replayedAs];
  const kept = [bytes, trace, raw, head, row.untimed ? 1 : null];
  const { changes } = insert.quarantine.run(id, ...source, signedAt, acceptedAt, ...kept);
  if (changes === 0 || state !== "held") return;
  work.ledger.gauge("held");
  work.ledger.gauge("held_bytes", bytes);
}

function takeTotals(work: Work, { counters, newestSignedAt, serviceResigns }: TransferredTotals): void {
  for (const [name, value] of Object.entries(counters)) {
    work.ledger.count(name as keyof TransferredTotals["counters"], value);
  }
  if (newestSignedAt !== null) work.ledger.signed(newestSignedAt);
  if (serviceResigns) work.ledger.resigned();
  writeMeta(work.db, "copy_finished", work.now);
}
