/** Claims due lanes of the SQLite inbox, and ends their leases. What is leased and what a lane does next is the shared rules' to say. */

import { SetupError } from "../../errors.ts";
import { FRESH_MS, type Missing, PLACES, TOO_FAR_AHEAD_MS } from "../../inbox/gap.ts";
import { LaneRules, leaseOf, untakenOf } from "../../inbox/lane.ts";
import type { LaneOrder } from "../../inbox/lane-key.ts";
import { type Heads, isFresh, type Lane, type LaneEntry, type LanePort, laneIsDue } from "../../inbox/lane-port.ts";
import type { Mutable } from "../../inbox/lane-state.ts";
import type { EventId, EventRecord, EventState, LaneId, Outcome } from "../../inbox/record.ts";
import type {
  ClaimRequest,
  Effect,
  Failure,
  Lease,
  LeaseRef,
  SequenceRules,
  Settle,
  SettleResult,
  Untaken,
} from "../../inbox/store.ts";
import { entryOf, refuseUnrun, refuseUnwaited, roomLeft } from "../../inbox/store-rules.ts";
import type { SqliteDatabase, SqliteStatement } from "../../internal/sqlite-driver.ts";
import {
  idText,
  KEEP,
  keepOf,
  ORDER,
  OUTCOME,
  orderWord,
  STATE,
  STATUS,
  stateWord,
  statusWord,
  tenantOf,
} from "../database.ts";
import { effectEndedTransaction } from "./effect-connection.ts";
import { EffectAborted, metLock } from "./failures.ts";
import { ENTRY } from "./instances.ts";
import { toEvent } from "./records.ts";
import {
  type Change,
  type EntryRow,
  type HeadRow,
  IN_LANE,
  type InTurnRow,
  type KeyedLaneRow,
  LANES_PER_PAGE,
  type LaneRow,
} from "./statements.ts";
import type { Ledger, Work } from "./transaction.ts";

// Claims due lanes, oldest first; the rules lease their heads or retire them.

/** What the scans for due lanes found so far. */
export interface Claimed {
  readonly leases: Lease[];
  readonly retired: EventRecord[];
  readonly untaken: Untaken[];
  /** Of the bodies of what is leased and retired. */
  bytes: number;
}

const END = Number.MAX_SAFE_INTEGER;

/** Claims what `request` asks for. With `recover` it is one expired lease, otherwise due lanes, oldest first. */
export function claimDue(lanes: SqliteLanes, request: ClaimRequest, claimed: Claimed): void {
  const limit = request.mode === "recover" ? Math.min(1, request.limit) : request.limit;
  // A lane whose event has ended may be due again at once: then the scan begins anew.
  const ended = () => claimed.retired.length + claimed.untaken.length;
  let endedBefore = -1;
  while (!isEnough(claimed, limit, request.maxBytes) && ended() > endedBefore) {
    endedBefore = ended();
    if (request.lane !== undefined) claimOnly(lanes, request.lane, request, claimed);
    else {
      const { now } = lanes;
      const fresh = Math.min(limit, request.fresh ?? 0);
      if (fresh > 0) scan(lanes, { request, claimed, limit: fresh, from: now - FRESH_MS + 1, to: now, takes: isFresh });
      scan(lanes, { request, claimed, limit, from: Number.MIN_SAFE_INTEGER, to: now });
      // The clock went back: what lies further ahead than any wait is due as well.
      scan(lanes, { request, claimed, limit, from: now + TOO_FAR_AHEAD_MS + 1, to: END });
    }
  }
}

export function isEnough({ leases, retired, untaken, bytes }: Claimed, limit: number, maxBytes?: number): boolean {
  return roomLeft({ leased: leases, retired, untaken, bytes }, limit, maxBytes) <= 0;
}

/** True while an expired lease is due. */
export function recoveryDue({ work, now }: SqliteLanes): boolean {
  const { sql } = work;
  return sql.expiredLease.get(now) !== undefined || sql.farLease.get(now + TOO_FAR_AHEAD_MS) !== undefined;
}

interface Scan {
  readonly request: ClaimRequest;
  readonly claimed: Claimed;
  readonly limit: number;
  readonly from: number;
  readonly to: number;
  /** Default: all lanes. */
  readonly takes?: (lane: SqliteLane, now: number) => boolean;
}

function scan(lanes: SqliteLanes, { request, claimed, limit, from, to, takes }: Scan): void {
  const { sql } = lanes.work;
  const due = request.mode === "recover" ? sql.expiredLanes : sql.dueLanes;
  let [readyAt, id] = [from, 0];
  while (!isEnough(claimed, limit, request.maxBytes)) {
    const page = due.all(readyAt, to, readyAt, id);
    for (const row of page) {
      if (isEnough(claimed, limit, request.maxBytes)) return;
      [readyAt, id] = [row.readyAt ?? from, row.id];
      const lane = toLane(row, row);
      if (takes === undefined || takes(lane, lanes.now)) claimLane(lanes, lane, request, claimed);
    }
    if (page.length < LANES_PER_PAGE) return;
  }
}

function claimOnly(lanes: SqliteLanes, id: number, request: ClaimRequest, claimed: Claimed): void {
  const lane = lanes.lane(id);
  if (lane === undefined || !laneIsDue(lane, lanes.now)) return;
  if ((lane.status === "leased") === (request.mode === "recover")) claimLane(lanes, lane, request, claimed);
}

export function claimLane(lanes: SqliteLanes, lane: SqliteLane, request: ClaimRequest, claimed: Claimed): void {
  const claim = lanes.rules.claim(lane, request);
  if (claim === null) return;
  const { sql } = lanes.work;
  const { event } = claim;
  const { key, eventType } = lanes.names(lane, event);
  const rest = sql.claimed.get(event.id);
  if (rest === undefined) throw new RangeError("An event was claimed, but is not there.");
  const { signedAt, trace, head } = rest;
  const ownId = idText(rest.ownId);
  if (claim.kind === "untaken") return void claimed.untaken.push(untakenOf(lane, claim, { key, ownId, eventType }));
  claimed.bytes += rest.raw?.byteLength ?? 0;
  if (claim.kind === "retired") {
    const row = sql.event.get(event.id);
    if (row !== undefined)
      claimed.retired.push(toEvent({ ...row, name: lane.name, ord: lane.ord, raw: rest.raw, head }));
    return;
  }
  // A pending event always has its body: pruning and erasing finish it first.
  const raw = rest.raw ?? new Uint8Array();
  claimed.leases.push(leaseOf(lane, claim, { key, ownId, eventType, signedAt, trace, raw, head }, null));
}

// Ends leases, each only while it is still held; effects commit with the completion of their event.

/** The user's own type of connection is not known here: effects get the connection that the completion is written on. */
type AnySettle = Settle<SqliteDatabase>;
type Complete = Extract<AnySettle, { kind: "complete" }>;

const SETTLED: SettleResult = { status: "settled" };
const LOST: SettleResult = { status: "lost" };

export function settle(lanes: SqliteLanes, request: AnySettle): SettleResult {
  if (request.kind !== "complete") return endLease(lanes, request);
  return request.effects.length === 0 ? complete(lanes, request) : completeWith(lanes, request);
}

function endLease(lanes: SqliteLanes, request: AnySettle): SettleResult {
  const held = heldIn(lanes, request.lease);
  return held === null ? LOST : lanes.rules.endLease(held.lane, held.event, request);
}

/** The lane and the event of a lease that is still this open's. Null when it is lost. */
function heldIn(lanes: SqliteLanes, ref: LeaseRef): { readonly lane: SqliteLane; readonly event: SqliteEntry } | null {
  const lane = lanes.lane(ref.lane);
  const event = lanes.rules.heldEvent(lane, ref);
  return lane === undefined || event === null ? null : { lane, event };
}

/** False when the lease is lost. */
export function extend(lanes: SqliteLanes, ref: LeaseRef, leaseMs: number): boolean {
  const held = heldIn(lanes, ref);
  if (held === null) return false;
  held.lane.readyAt = lanes.now + leaseMs;
  lanes.save(held.lane);
  return true;
}

function complete(lanes: SqliteLanes, request: Complete): SettleResult {
  return completeLast(lanes, request) ? SETTLED : endLease(lanes, request);
}

/**
 * Fast path: the common end of a lease, guard and all, in one statement. False when the lease is lost, or when more waits in its lane:
 * then nothing is written, and the rules decide. A test compares what it writes with what the rules write.
 */
export function completeLast({ work, tally }: SqliteLanes, { lease, outcome }: Omit<Complete, "effects">): boolean {
  const { sql, facts, now } = work;
  if (sql.idleLane.run(lease.lane, lease.token, lease.event, facts.holder).changes === 0) return false;
  const keep = keepOf({ state: "done", outcome, hasBody: true });
  sql.finishEvent.run(STATE.done, OUTCOME[outcome], keep, now, lease.event);
  tally.count(outcome);
  tally.gauge("pending", -1);
  tally.finished(lease.event);
  return true;
}

/**
 * Guard first: a lost lease runs no effect. An effect that throws takes back its neighbours. One that commits, against the rule,
 * must not store a half: its own completion comes last.
 */
function completeWith(lanes: SqliteLanes, request: Complete): SettleResult {
  const { lease, effects } = request;
  const { work } = lanes;
  if (heldIn(lanes, lease) === null) return LOST;
  work.sql.savepoint.run();
  const { rollbackTo, release } = work.sql;
  try {
    for (const effect of effects) if (typeof effect === "function") refuseUnwaited(effect, "never");
    const { connection, during } = work.lending;
    during(() => {
      for (const effect of effects) runEffect(connection, effect);
    });
  } catch (cause) {
    const error = metLock(cause) ? otherConnection(cause) : cause;
    if (!ends(work, rollbackTo, release)) throw new EffectAborted(lease, error);
    return { status: "effect_failed", error };
  }
  if (!ends(work, release)) throw new EffectAborted(lease, effectEndedTransaction());
  return complete(lanes, request);
}

function runEffect(connection: SqliteDatabase, effect: Effect<SqliteDatabase>): void {
  if (typeof effect === "function") return refuseUnrun(effect(connection), "never");
  let known = declared.get(connection);
  if (known === undefined || known.size === MOST_DECLARED) {
    known = new Map();
    declared.set(connection, known);
  }
  const statement = known.get(effect.text) ?? connection.prepare(effect.text);
  known.set(effect.text, statement);
  statement.run(...effect.values);
}

/** The statements of declared effects, by their texts. */
const declared = new WeakMap<SqliteDatabase, Map<string, SqliteStatement>>();
/** For each connection: then they are prepared anew, because a text may have its values in it. */
const MOST_DECLARED = 100;

/**
 * Runs `statements`, which end our savepoint. False when it is gone with the transaction: SQLite ends that by itself on some
 * errors, such as a full disk or `raise(rollback)`, and an effect can, and can even begin another one.
 */
function ends({ db }: Work, ...statements: readonly Change[]): boolean {
  if (!db.inTransaction) return false;
  try {
    for (const statement of statements) statement.run();
    return true;
  } catch {
    return false;
  }
}

/** The inbox's own connection has the write lock, so it is another connection that met one. */
function otherConnection(cause: unknown): SetupError {
  const message =
    'An effect of ctx.commit wrote through another connection and found its database locked (SQLITE_BUSY). While effects run, the inbox holds the write lock of its own file, so the other connection blocks the process until its busy timeout, in vain. Write with the connection that ctx.commit gives, or give your ORM\'s connection to sqliteStore() as the option "effects".';
  return new SetupError("invalid_argument", message, { cause });
}

/** A lane's row as the rules change it. */
export interface SqliteLane extends Lane {
  readonly name: string | null;
  readonly source: string;
  readonly tenant: string;
  readonly ord: number;
  /** 1 while its number or its reference is not known. */
  readonly bare: number;
  /** See the schema. */
  below: number;
  /** What the database holds of it. */
  readonly stored: LaneRow;
}

/** An event's row as far as the rules read it. */
export interface SqliteEntry extends Mutable<LaneEntry> {
  readonly type: string;
}

/** The lanes of one transaction. */
export class SqliteLanes implements LanePort<SqliteLane, SqliteEntry> {
  readonly now: number;
  readonly holder: number;
  readonly tally: Ledger;
  readonly work: Work;
  readonly rules = new LaneRules<SqliteLane, SqliteEntry>(this);

  constructor(work: Work) {
    this.work = work;
    this.now = work.now;
    this.holder = work.facts.holder;
    this.tally = work.ledger;
  }

  lane(id: LaneId): SqliteLane | undefined {
    const row = this.work.sql.laneById.get(id);
    return row === undefined ? undefined : toLane(row, row);
  }

  order({ ord }: SqliteLane): LaneOrder | null {
    return orderWord(ord);
  }

  /** Reads the entry unless it is known: another process may have recorded it just now. */
  sequenceRules({ source }: SqliteLane): SequenceRules {
    const { facts, sql } = this.work;
    if (!facts.sequences.knows(source)) {
      const row = sql.recorded.get(ENTRY + source);
      if (row !== undefined) facts.sequences.learn([entryOf(source, row.text)]);
    }
    return facts.sequences.of(source);
  }

  /** Looks below the cursor only while something may be there. */
  heads(lane: SqliteLane): Heads<SqliteEntry> {
    const { sql } = this.work;
    const { id, cursor, below } = lane;
    if (below === 0 || cursor === null)
      return { head: toHead(sql.head.get(id, cursor ?? Number.MIN_SAFE_INTEGER)), late: null };
    const isByPosition = this.order(lane) === "position";
    const lowest = toHead(isByPosition ? sql.replayBelow.get(id, cursor) : sql.head.get(id, Number.MIN_SAFE_INTEGER));
    const late = toHead(isByPosition ? sql.lateByPosition.get(id, cursor) : sql.lateHead.get(id));
    const isBelow = late !== null || (lowest !== null && lowest.sequence < cursor);
    lane.below = isBelow ? 1 : 0;
    return { head: lowest ?? toHead(sql.head.get(id, cursor)), late };
  }

  names({ name, source, tenant, ord }: SqliteLane, { type }: SqliteEntry) {
    return { key: { source, tenant: tenantOf(tenant), name, order: orderWord(ord) }, eventType: type };
  }

  event(_lane: SqliteLane, id: EventId): SqliteEntry | null {
    const row = this.work.sql.entry.get(id);
    return row === undefined ? null : toEntry(row);
  }

  isSettledAt(lane: SqliteLane, sequence: number): boolean {
    return this.work.sql.settledAt.get(lane.id, sequence) !== undefined;
  }

  /** A lane without a cursor has no gap: the first gap comes with the first lease. */
  gapEndingAt(lane: SqliteLane, sequence: number): Missing | null {
    if (lane.ord !== ORDER.sequence || lane.cursor === null) return null;
    return this.work.sql.gapBefore.get(lane.id, sequence) ?? null;
  }

  heldSince(lane: SqliteLane): number {
    return this.work.sql.heldSince.get(lane.id, lane.cursor ?? Number.MIN_SAFE_INTEGER)?.since ?? this.now;
  }

  highest({ id }: SqliteLane, from: number): number | null {
    // A lane that is not stored yet has no events.
    if (id === this.tally.peek("next_lane")) return null;
    return this.work.sql.highest.get(id, from, from + PLACES - 1)?.seq ?? null;
  }

  inTurn(lane: SqliteLane): readonly InTurnRow[] {
    const { cursor } = this.order(lane) === "position" ? lane : { cursor: null };
    return this.work.sql.inTurn.all(lane.id, cursor ?? Number.MIN_SAFE_INTEGER);
  }

  /** Writes nothing if nothing changed: most lanes stay as they are when an event arrives. */
  save(lane: SqliteLane): void {
    const { stored, readyAt, cursor, gapSince, token, holder, leased, below, id } = lane;
    const status = STATUS[lane.status];
    if (status === stored.status && readyAt === stored.readyAt && cursor === stored.cursor && below === stored.below) {
      if (gapSince === stored.gapSince && token === stored.token && leased === stored.leased) return;
    }
    this.work.sql.updateLane.run(status, readyAt, cursor, gapSince, token, holder, leased, below, id);
    this.tally.gauge("blocked", Number(status === STATUS.blocked) - Number(stored.status === STATUS.blocked));
    stored.status = status;
    stored.readyAt = readyAt;
    stored.cursor = cursor;
    stored.gapSince = gapSince;
    stored.token = token;
    stored.leased = leased;
    stored.below = below;
  }

  addGap(lane: SqliteLane, { from, to }: Missing): void {
    this.work.sql.insertGap.run(lane.id, to, from, this.now);
  }

  fillGaps(lane: SqliteLane, sequence: number): void {
    this.work.sql.fillGaps.run(this.now, lane.id, sequence, sequence);
  }

  markLate(_lane: SqliteLane, event: SqliteEntry): void {
    event.late = true;
    this.work.sql.markLate.run(event.id);
  }

  start(_lane: SqliteLane, event: SqliteEntry): void {
    event.attempts++;
    this.work.sql.startEvent.run(this.now, event.id);
  }

  takeBackAttempt(_lane: SqliteLane, event: SqliteEntry): void {
    event.attempts--;
    this.work.sql.releaseEvent.run(event.id);
  }

  addAttempt(_lane: SqliteLane, { id, attempts }: SqliteEntry, { code, message, durationMs }: Failure): void {
    this.work.sql.insertAttempt.run(id, attempts, this.now, durationMs, code, message);
  }

  fail(_lane: SqliteLane, event: SqliteEntry, { code, message }: Pick<Failure, "code" | "message">): void {
    this.work.sql.failEvent.run(code, message, event.id);
  }

  finish(lane: SqliteLane, event: SqliteEntry, state: Exclude<EventState, "pending">, outcome: Outcome | null): void {
    const { id, hasBody } = event;
    const keep = keepOf({ state, outcome, hasBody });
    this.work.sql.finishEvent.run(STATE[state], outcome === null ? null : OUTCOME[outcome], keep, this.now, id);
    this.#enter(event, state);
    this.tally.finished(id);
    // The cursor may pass a pending event, such as one of sequence 0.
    if (state === "discarded") lane.below = 1;
  }

  reopen(lane: SqliteLane, event: SqliteEntry): void {
    this.work.sql.reopenEvent.run(event.id);
    this.#enter(event, "pending");
    // It may lie below the cursor.
    lane.below = 1;
  }

  #enter(event: SqliteEntry, state: EventState): void {
    this.tally.gauge("pending", Number(state === "pending") - Number(event.state === "pending"));
    this.tally.gauge("dead", Number(state === "dead") - Number(event.state === "dead"));
    event.state = state;
  }

  endGapWait(_lane: SqliteLane, event: SqliteEntry): void {
    this.work.sql.endGapWait.run(event.id);
  }

  erase({ id }: SqliteLane, events: ReadonlySet<EventId> | null): number {
    const { db } = this.work;
    const all =
      events === null
        ? db
            .prepare(EVENTS_OF)
            .all(id)
            .map((row) => (row as { readonly id: number }).id)
        : events;
    const ids = JSON.stringify([...all]);
    for (const text of ERASE) db.prepare(text).run(ids);
    if (events === null) db.prepare(ERASE_NAMES).run(id);
    const { changes: discarded } = db.prepare(DISCARD_PENDING).run(STATE.discarded, KEEP.identity, this.now, ids);
    db.prepare(ERASE_ERRORS).run(KEEP.identity, ids);
    this.tally.gauge("pending", -discarded);
    return discarded;
  }
}

const EVENTS_OF = `select id from oncehook_event ${IN_LANE} where lane = ?`;
const AMONG = "in (select value from json_each(?))";
const ERASE = [
  `delete from oncehook_body where event ${AMONG}`,
  `delete from oncehook_conflict where event ${AMONG}`,
  `update oncehook_attempt set error = '' where event ${AMONG}`,
];
const ERASE_NAMES = "update oncehook_lane set peer = null, reference = null where id = ?";
const DISCARD_PENDING = `update oncehook_event set state = ?, keep = ?, finished = ? where id ${AMONG} and state = 0`;
const ERASE_ERRORS = `update oncehook_event set error = null, keep = iif(state = 2, keep, ?) where id ${AMONG}`;

/** Field by field, like every object of which there are many: see decision 22. */
export function toLane(
  stored: LaneRow,
  { name, source, tenant }: Pick<KeyedLaneRow, "name" | "source" | "tenant">,
): SqliteLane {
  const { id, ord, cursor, readyAt, gapSince, token, holder, leased, below, bare } = stored;
  const status = statusWord(stored.status);
  return {
    id,
    name,
    source,
    tenant,
    ord,
    bare,
    cursor,
    status,
    readyAt,
    gapSince,
    token,
    holder,
    leased,
    below,
    stored,
  };
}

function toHead(row: HeadRow | undefined): SqliteEntry | null {
  if (row === undefined) return null;
  const { id, sequence, type, gapWaitMs, occurredAt, acceptedAt, attempts } = row;
  const [late, forced, state, finishedAt, hasBody] = [row.late === 1, row.forced === 1, "pending", null, true] as const;
  return { id, sequence, type, late, forced, gapWaitMs, occurredAt, acceptedAt, state, finishedAt, attempts, hasBody };
}

export function toEntry(row: EntryRow): SqliteEntry {
  const { id, sequence, type, gapWaitMs, occurredAt, acceptedAt, finishedAt, attempts } = row;
  const [late, forced, hasBody, state] = [row.late === 1, row.forced === 1, row.hasBody === 1, stateWord(row.state)];
  return { id, sequence, type, late, forced, gapWaitMs, occurredAt, acceptedAt, state, finishedAt, attempts, hasBody };
}
