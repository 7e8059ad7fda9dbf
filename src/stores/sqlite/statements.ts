/** Every statement of the hot path, prepared once per connection. */
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { OF_EVENT, type RowOfEvent } from "./records.ts";

/** A prepared query whose rows have the shape that its SQL names. */
export interface Query<Row> {
  get(...params: unknown[]): Row | undefined;
  all(...params: unknown[]): Row[];
}

/** A prepared change. */
export interface Change {
  run(...params: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
}

/** What a decision needs to know of a lane; `below`: see the schema. */
export interface LaneRow {
  readonly id: number;
  readonly ord: number;
  status: number;
  readyAt: number | null;
  cursor: number | null;
  gapSince: number | null;
  token: number;
  holder: number | null;
  leased: number | null;
  below: number;
  /** 1 while its peer or its reference is not known. */
  readonly bare: number;
}

/** With its key. An accept knows the key, and reading it would cost a fortieth of its time. */
export interface KeyedLaneRow extends LaneRow {
  readonly name: string | null;
  readonly source: string;
  readonly tenant: string;
}

export interface HeadRow {
  readonly id: number;
  readonly sequence: number;
  readonly type: string;
  readonly late: number;
  readonly forced: number;
  readonly gapWaitMs: number;
  readonly occurredAt: number;
  readonly acceptedAt: number;
  readonly attempts: number;
}

export interface EntryRow extends HeadRow {
  readonly lane: number;
  readonly state: number;
  readonly finishedAt: number | null;
  readonly hasBody: number;
}

export interface InTurnRow {
  readonly id: number;
  readonly acceptedAt: number;
}

/** Fields of a leased event that the rules do not read. */
export interface ClaimRow {
  readonly signedAt: number;
  readonly trace: string | null;
  readonly ownId: string | Buffer | null;
  readonly raw: Buffer | null;
  readonly head: string | null;
}

export interface KnownRow {
  readonly id: number;
  readonly lane: number;
  readonly state: number;
  readonly digest: Buffer;
  readonly signedAt: number;
  readonly conflict: number;
  /** Of an event that is alone in its lane. */
  readonly reference: string | null;
}

/** A constant, because SQLite prepares a statement anew whenever a bound limit changes; small, because often few slots are free. */
export const LANES_PER_PAGE = 8;

const LANE = `id, ord, status, ready_at as readyAt, cursor, gap_since as gapSince, token, holder, leased, below,
  (peer is null or reference is null) as bare`;
const KEYED_LANE = `name, source, tenant, ${LANE}`;
const HEAD =
  "id, seq as sequence, type, late, forced, gap_wait as gapWaitMs, occurred as occurredAt, accepted as acceptedAt, attempts";

const KNOWN = "id, lane, state, digest, signed as signedAt, conflict";

/** A lane's events in their order. Named where SQLite might choose: see `SQL`. */
export const IN_LANE = "indexed by oncehook_event_place";

/**
 * The SQL by name; also what the test of query plans explains. The application may `analyze` the file while it holds next to
 * nothing, and SQLite then takes scans for cheaper, also when there are a million events. It never does for a look-up in one table
 * by its whole key: so none joins tables, and where it would, the index is named.
 */
export const SQL = {
  laneByKey: `select ${LANE} from oncehook_lane where name = ? and source = ? and tenant = ? and ord = ?`,
  laneById: `select ${KEYED_LANE} from oncehook_lane where id = ?`,
  insertLane: `insert into oncehook_lane
    (id, name, source, tenant, ord, status, ready_at, cursor, gap_since, token, holder, leased, below, peer, reference)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)`,
  updateLane: `update oncehook_lane set status = ?, ready_at = ?, cursor = ?, gap_since = ?, token = ?, holder = ?, leased = ?,
    below = ? where id = ?`,
  nameLane: "update oncehook_lane set peer = coalesce(peer, ?), reference = coalesce(reference, ?) where id = ?",
  // The common end of a lease, decided in one statement: its event is pending, and nothing else waits in the lane. No `exists` for
  // the event: SQLite would make a join of that.
  idleLane: `update oncehook_lane set status = 0, ready_at = null, gap_since = null, holder = null, leased = null
    where id = ? and token = ? and leased = ? and holder = ? and status = 2 and below = 0
      and (select state from oncehook_event where id = oncehook_lane.leased) = 0
      and not exists (select 1 from oncehook_event as waiting ${IN_LANE} where waiting.lane = oncehook_lane.id
        and waiting.seq >= coalesce(oncehook_lane.cursor, -9007199254740991) and waiting.state = 0
        and waiting.id <> oncehook_lane.leased)`,

  head: `select ${HEAD} from oncehook_event ${IN_LANE} where lane = ? and seq >= ? and state = 0 and late = 0 order by seq, id limit 1`,
  lateHead: `select ${HEAD} from oncehook_event ${IN_LANE} where lane = ? and state = 0 and late = 1 order by seq, id limit 1`,
  // By position what lies below the cursor is late, except replays.
  replayBelow: `select ${HEAD} from oncehook_event ${IN_LANE} where lane = ? and seq < ? and state = 0 and forced = 1 order by seq, id limit 1`,
  lateByPosition: `select ${HEAD} from oncehook_event ${IN_LANE} where lane = ? and seq < ? and state = 0 and forced = 0 order by seq, id limit 1`,
  settledAt: `select 1 as settled from oncehook_event ${IN_LANE} where lane = ? and seq = ? and state <> 0 limit 1`,
  inTurn: `select id, accepted as acceptedAt from oncehook_event ${IN_LANE} where lane = ? and seq >= ? and state = 0 and late = 0 and forced = 0
    order by seq, id limit 2`,
  // A pending event always has its body: pruning and erasing finish it first.
  entry: `select lane, state, finished as finishedAt, ${HEAD},
    state = 0 or exists (select 1 from oncehook_body where event = oncehook_event.id) as hasBody from oncehook_event where id = ?`,
  insertEvent: `insert into oncehook_event (id, lane, seq, type, source, tenant, state, outcome, keep, finished, attempts, started, late, forced,
    duplicates, conflict, gap_wait, occurred, signed, accepted, digest, trace, untimed, own_id)
    values (?, ?, ?, ?, ?, ?, ?, null, ?, ?, ?, ?, ?, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
  insertBody: "insert into oncehook_body (event, raw) values (?, ?)",
  insertHeadedBody: "insert into oncehook_body (event, raw, head) values (?, ?, ?)",
  known: `select ${KNOWN}, null as reference from oncehook_event where lane = ? and seq = ? and type = ?`,
  // Whatever type an unsigned header gave it.
  knownById: `select ${KNOWN},
    (select reference from oncehook_lane where id = oncehook_event.lane and name is null) as reference
    from oncehook_event indexed by oncehook_event_own_id where own_id = ? and source = ? and tenant = ?`,
  highest: `select max(seq) as seq from oncehook_event ${IN_LANE} where lane = ? and seq between ? and ?`,
  heldSince: `select min(accepted) as since from oncehook_event ${IN_LANE}
    where lane = ? and seq >= ? and state = 0 and forced = 0`,
  body: "select raw, head from oncehook_body where event = ?",
  countDuplicates: "update oncehook_event set duplicates = duplicates + ? where id = ?",
  markConflict: "update oncehook_event set conflict = 1 where id = ?",
  insertConflict: "insert or ignore into oncehook_conflict (event, digest, signed, at, raw) values (?, ?, ?, ?, ?)",
  fillGaps: "update oncehook_gap set filled = ? where lane = ? and hi >= ? and lo <= ? and filled is null",

  dueLanes: `select ${KEYED_LANE} from oncehook_lane where status >= 3 and ready_at >= ? and ready_at <= ?
    and (ready_at > ? or id > ?) order by ready_at, id limit ${LANES_PER_PAGE}`,
  expiredLanes: `select ${KEYED_LANE} from oncehook_lane where status = 2 and ready_at >= ? and ready_at <= ?
    and (ready_at > ? or id > ?) order by ready_at, id limit ${LANES_PER_PAGE}`,
  expiredLease: "select 1 as due from oncehook_lane where status = 2 and (ready_at <= ?) limit 1",
  farLease: "select 1 as due from oncehook_lane where status = 2 and (ready_at > ?) limit 1",
  claimed: `select e.signed as signedAt, e.trace, e.own_id as ownId,
    (select raw from oncehook_body where event = e.id) as raw, (select head from oncehook_body where event = e.id) as head
    from oncehook_event e where e.id = ?`,
  markLate: "update oncehook_event set late = 1 where id = ?",
  startEvent: "update oncehook_event set attempts = attempts + 1, started = coalesce(started, ?) where id = ?",
  insertGap: "insert or ignore into oncehook_gap (lane, hi, lo, skipped) values (?, ?, ?, ?)",
  gapBefore: `select lo as "from", hi as "to" from oncehook_gap where lane = ? and hi = ?`,

  eventState: "select state from oncehook_event where id = ?",
  failEvent: "update oncehook_event set error_code = ?, error = ? where id = ?",
  finishEvent: "update oncehook_event set state = ?, outcome = ?, keep = ?, finished = ? where id = ?",
  releaseEvent: "update oncehook_event set attempts = attempts - 1 where id = ?",
  reopenEvent: `update oncehook_event set state = 0, outcome = null, keep = null, finished = null, forced = 1, late = 0, attempts = 0
    where id = ?`,
  endGapWait: "update oncehook_event set gap_wait = 0 where id = ?",
  event: `select ${OF_EVENT} from oncehook_event e where e.id = ?`,
  insertAttempt:
    "insert into oncehook_attempt (event, attempt, at, duration, error_code, error) values (?, ?, ?, ?, ?, ?)",

  quarantineKnown: "select 1 as known from oncehook_quarantine where digest = ?",
  quarantineHeld:
    "select count(*) as rows, coalesce(sum(bytes), 0) as bytes from oncehook_quarantine where state = 0 and signer = ?",
  quarantineRows: "select id, bytes, reason from oncehook_quarantine where state = 0 and signer = ? order by id",
  dropQuarantined: "update oncehook_quarantine set state = 2, raw = null, head = null where id = ?",
  insertQuarantine: `insert into oncehook_quarantine (digest, reason, slot, signer, source, tenant, kinds, state, signed, accepted, bytes, trace, raw,
    head, untimed) values (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)`,

  /** By the key in `meta`. */
  recorded: "select value as text from oncehook_meta where key = ?",
  readCounter: "select value from oncehook_counter where name = ?",
  addCounter: "update oncehook_counter set value = value + ? where name = ?",
  raiseCounter: "update oncehook_counter set value = max(value, ?) where name = ?",

  soonest: `select min(at) as at from (
    select min(ready_at) as at from oncehook_lane where status >= 3
    union all select min(ready_at) from oncehook_lane where status = 2)`,
  readyNow:
    "update oncehook_lane indexed by oncehook_lane_due set ready_at = ? where status >= 3 and ready_at > ? and status = 3",
  farthest: `select max(at) as at from (
    select max(ready_at) as at from oncehook_lane where status >= 3
    union all select max(ready_at) from oncehook_lane where status = 2)`,

  savepoint: "savepoint oncehook_row",
  release: "release oncehook_row",
  rollbackTo: "rollback to oncehook_row",
} as const;

type Rows = {
  laneByKey: LaneRow;
  laneById: KeyedLaneRow;
  head: HeadRow;
  lateHead: HeadRow;
  replayBelow: HeadRow;
  lateByPosition: HeadRow;
  settledAt: { readonly settled: 1 };
  inTurn: InTurnRow;
  entry: EntryRow;
  known: KnownRow;
  knownById: KnownRow;
  highest: { readonly seq: number | null };
  heldSince: { readonly since: number | null };
  body: { readonly raw: Buffer; readonly head: string | null };
  dueLanes: KeyedLaneRow;
  expiredLanes: KeyedLaneRow;
  expiredLease: { readonly due: 1 };
  farLease: { readonly due: 1 };
  claimed: ClaimRow;
  gapBefore: { readonly from: number; readonly to: number };
  event: RowOfEvent;
  eventState: { readonly state: number };
  quarantineKnown: { readonly known: 1 };
  quarantineHeld: { readonly rows: number; readonly bytes: number };
  quarantineRows: { readonly id: number; readonly bytes: number; readonly reason: string };
  recorded: { readonly text: string };
  readCounter: { readonly value: number };
  soonest: { readonly at: number | null };
  farthest: { readonly at: number | null };
};

export type Statements = {
  readonly [Name in keyof typeof SQL]: Name extends keyof Rows ? Query<Rows[Name]> : Change;
};

/** Prepares them all on `db`. The shape of a row is what its SQL selects: this is the one place that says so. */
export function prepareStatements(db: SqliteDatabase): Statements {
  const prepared = Object.entries(SQL).map(([name, sql]) => {
    const statement = db.prepare(sql);
    // A connection of the user's may be set to give BigInts.
    statement.safeIntegers(false);
    return [name, statement];
  });
  return Object.fromEntries(prepared) as Statements;
}
