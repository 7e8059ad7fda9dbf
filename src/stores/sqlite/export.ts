/** Gives the SQLite inbox's lanes to another store. */
import type {
  AttemptRecord,
  ConflictRecord,
  GapRecord,
  LaneRecord,
  TransferredEvent,
  TransferredLane,
} from "../../inbox/record.ts";
import { withoutLease } from "../../inbox/store-rules.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { statusWord, tagWord } from "../codes.ts";
import { EVENT, type EventRow, toEvent } from "./records.ts";

interface LaneFacts extends Omit<LaneRecord, "key" | "status" | "events" | "gaps" | "attempts"> {
  readonly apiClientId: string;
  readonly tag: number;
  readonly messageId: string;
  readonly status: number;
  readonly leased: number | null;
}

/** SQLite holds a wait as it was given, and an integer column elsewhere refuses fractions of a millisecond. */
const LANES = `select l.id, c.name as apiClientId, l.tag, l.message as messageId, l.cursor, l.status,
  cast(round(l.ready_at) as integer) as readyAt, l.gap_since as gapSince, l.epoch, l.peer, l.reference as externalReference, l.leased
  from oncehook_lane l cross join oncehook_client c on c.id = l.client where l.id > ? order by l.id limit ?`;
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
  const lanes = db.prepare(LANES).all(after, limit) as LaneFacts[];
  const range = [lanes[0]?.id ?? 0, lanes.at(-1)?.id ?? 0];
  const events = eventsOf(db, range);
  const gaps = byLane(db.prepare(GAPS).all(...range) as OfLane<GapRecord>[]);
  const attempts = byLane(db.prepare(ATTEMPTS).all(...range) as OfLane<AttemptRecord>[]);
  return lanes.map(({ apiClientId, tag, messageId, leased, ...facts }) => {
    const own = events.get(facts.id) ?? [];
    const lane = { ...facts, status: statusWord(facts.status) };
    return {
      ...lane,
      key: { apiClientId, tag: tagWord(tag), messageId },
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
    // What is left of a row without its lane is what it was read for.
    own.push(row as unknown as T);
    lanes.set(lane, own);
  }
  return lanes;
}
