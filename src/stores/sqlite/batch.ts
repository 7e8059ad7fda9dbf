/** One write transaction of the core's: settles, due lanes, then what is accepted. */

import { type Arrival, acceptedAs, countDuplicates, leaseOf, repeatsWith } from "../../inbox/lane.ts";
import { laneIsDue } from "../../inbox/lane-port.ts";
import type { EventId, NewEvent, NewQuarantine } from "../../inbox/record.ts";
import type {
  Acceptance,
  ClaimRequest,
  Lease,
  QuarantineAnswer,
  QuarantineQuota,
  Settle,
  SettleResult,
  Turn,
  TurnResult,
} from "../../inbox/store.ts";
import { bodiesGivingWay, isConflict } from "../../inbox/store-rules.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { idValue, KEEP, kindsText, OUTCOME, orderCode, STATE, STATUS, stateWord, tenantText } from "../database.ts";
import { outsideOfEffects } from "./effect-connection.ts";
import { EffectAborted, isFull, isRowFault, storeFull } from "./failures.ts";
import {
  type Claimed,
  claimDue,
  claimLane,
  isEnough,
  recoveryDue,
  type SqliteEntry,
  type SqliteLane,
  SqliteLanes,
  settle,
  toLane,
} from "./lanes.ts";
import type { KnownRow, LaneRow } from "./statements.ts";
import {
  type Facts,
  immediately,
  inTransaction,
  type Patience,
  type Session,
  untilFree,
  type Work,
} from "./transaction.ts";

/** A settle, and its place in the turn. */
type Indexed = readonly [index: number, request: Settle<SqliteDatabase>];

/** What a failed try taught: how the next one differs. */
interface Plan {
  /** Settles that are answered already: committed before the turn, or an effect that ended the transaction. */
  readonly answered: Map<number, SettleResult>;
  /** A row of the turn was at fault: a savepoint around each finds it. */
  careful: boolean;
  /** Nor was it a row: an effect broke a deferred constraint. A transaction for each completion with effects finds it. */
  apart: boolean;
  /** Why nothing is accepted in this turn; settles and claims go on. */
  refusal: Error | null;
}

export function createPlan(): Plan {
  return { answered: new Map(), careful: false, apart: false, refusal: null };
}

export function runTurn(work: Work, turn: Turn<SqliteDatabase>, plan: Plan): TurnResult {
  const { claim } = turn;
  const lanes = new SqliteLanes(work);
  const settled = turn.settles.map((request, index) => plan.answered.get(index) ?? settle(lanes, request));
  const claimed: Claimed = { leases: [], retired: [], untaken: [], bytes: 0 };
  if (claim.lane === undefined) claimDue(lanes, claim, claimed);

  const leaseAtAccept =
    claim.mode === "ordinary" &&
    claim.lane === undefined &&
    !isEnough(claimed, claim.limit, claim.maxBytes) &&
    !recoveryDue(lanes);
  const mode: AcceptMode = { claim: leaseAtAccept ? claim : null, claimed };
  const accepted = acceptAll(lanes, turn, plan, mode);
  const quarantined = turn.quarantines.map(
    (body): QuarantineAnswer =>
      plan.refusal === null ? quarantine(work, body, turn.quarantineQuota) : refuse(work, body, plan.refusal),
  );
  if (claim.lane !== undefined) claimDue(lanes, claim, claimed);
  return { settled, accepted, quarantined, ...indexed(claimed, accepted), recoveryDue: recoveryDue(lanes) };
}

/** Learns from a failure of the turn. False when another try would fail alike. */
export function amend(plan: Plan, turn: Turn<SqliteDatabase>, error: unknown): boolean {
  if (error instanceof EffectAborted) {
    const index = turn.settles.findIndex((request, at) => request.lease === error.lease && !plan.answered.has(at));
    if (index < 0) return false;
    plan.answered.set(index, { status: "effect_failed", error: error.cause });
    return true;
  }
  const accepts = turn.accepts.length + turn.quarantines.length > 0;
  if (isFull(error) && accepts && plan.refusal === null) {
    plan.refusal = storeFull("The disk is full: free some space.", error);
    return true;
  }
  return isRowFault(error) && narrow(plan, turn);
}

/** Looks for the fault in smaller parts of the turn; false when there are none. */
function narrow(plan: Plan, turn: Turn<SqliteDatabase>): boolean {
  if (!plan.careful && turn.accepts.length > 0) plan.careful = true;
  else if (!plan.apart && openEffects(turn, plan).length > 0) plan.apart = true;
  else return false;
  return true;
}

/** Completions with effects that are not answered yet, each with its place in the turn. */
function openEffects(turn: Turn<SqliteDatabase>, plan: Plan): readonly Indexed[] {
  return [...turn.settles.entries()].filter(
    ([index, request]) => request.kind === "complete" && request.effects.length > 0 && !plan.answered.has(index),
  );
}

function acceptAll(lanes: SqliteLanes, turn: Turn<SqliteDatabase>, plan: Plan, mode: AcceptMode): Acceptance[] {
  const { refusal } = plan;
  if (refusal !== null) return turn.accepts.map((incoming) => refuse(lanes.work, incoming, refusal));
  if (!plan.careful) return turn.accepts.map((incoming, index) => accept(lanes, incoming, index, mode));
  return turn.accepts.map((incoming, index) =>
    acceptCarefully(lanes.work, mode, () => accept(lanes, incoming, index, mode)),
  );
}

/**
 * Pruning goes by the newest verified timestamp: if those of refused deliveries did not count, an inbox that is full would
 * never be pruned again. A disk that is full takes not even that.
 */
function refuse(
  work: Work,
  incoming: Pick<NewEvent, "signedAt" | "untimed">,
  refusal: Error,
): { outcome: "failed"; error: Error } {
  if (!isFull(refusal.cause) && !incoming.untimed) work.ledger.signed(incoming.signedAt);
  return { outcome: "failed", error: refusal };
}

/** A row that cannot be stored leaves nothing behind, and fails none of its neighbours. */
function acceptCarefully(work: Work, mode: AcceptMode, store: () => Acceptance): Acceptance {
  const { leases, untaken, bytes } = mode.claimed;
  const [leased, ended] = [leases.length, untaken.length];
  const ledger = work.ledger.snapshot();
  work.sql.savepoint.run();
  try {
    return store();
  } catch (error) {
    if (!isRowFault(error) || !work.db.inTransaction) throw error;
    work.sql.rollbackTo.run();
    work.ledger.restore(ledger);
    leases.length = leased;
    untaken.length = ended;
    mode.claimed.bytes = bytes;
    return { outcome: "failed", error };
  } finally {
    if (work.db.inTransaction) work.sql.release.run();
  }
}

/** Tells the core which of its own events a lease is for, so that it need not parse them again. */
function indexed(claimed: Claimed, accepted: readonly Acceptance[]): Claimed {
  const { leases } = claimed;
  if (leases.length === 0 || accepted.length === 0) return claimed;
  const indexes = new Map<number, number>();
  accepted.forEach((acceptance, index) => {
    if (acceptance.outcome === "accepted" || acceptance.outcome === "late") indexes.set(acceptance.event, index);
  });
  const withIndex = leases.map((lease): Lease => {
    const acceptIndex = indexes.get(lease.event) ?? null;
    return acceptIndex === lease.acceptIndex ? lease : { ...lease, acceptIndex };
  });
  return { ...claimed, leases: withIndex };
}

// Takes correctly signed bodies that are no events, within their quota.

const NOTHING = { rows: 0, bytes: 0 };

function quarantine(work: Work, incoming: NewQuarantine, quota: QuarantineQuota): QuarantineAnswer {
  const { sql, ledger, now } = work;
  const { reason, slot, signer, source, kinds, signedAt, untimed, digest, raw, trace, head = null } = incoming;
  if (!untimed) ledger.signed(signedAt);
  if (sql.quarantineKnown.get(digest) !== undefined) return "duplicate";
  const held = sql.quarantineHeld.get(signer) ?? NOTHING;
  const isFull = held.rows >= quota.maxRows || held.bytes + raw.byteLength > quota.maxBytes;
  const dropped = isFull ? bodiesGivingWay(sql.quarantineRows.all(signer), raw.byteLength, quota) : [];
  if (dropped === null) return "full";
  for (const row of dropped) {
    sql.dropQuarantined.run(row.id);
    ledger.gauge("held", -1);
    ledger.gauge("held_bytes", -row.bytes);
  }
  const kept = [raw.byteLength, trace, raw, head, untimed ? 1 : null];
  const owner = [source, tenantText(incoming.tenant), kindsText(kinds)];
  sql.insertQuarantine.run(digest, reason, slot, signer, ...owner, signedAt, now, ...kept);
  ledger.count("quarantined");
  ledger.gauge("held");
  ledger.gauge("held_bytes", raw.byteLength);
  return dropped.length === 0 ? "held" : { outcome: "made_room", dropped: dropped.length };
}

// Completions with effects that are committed before their turn: those on the user's own connection, and those of a turn that
// cannot commit with all of them.

const UNFINISHED: SettleResult = { status: "unfinished" };

export class AheadSettles {
  readonly #session: Session;
  readonly #own: SqliteDatabase;
  readonly #patience: Patience;
  /**
   * By the token of the lease. Committed here while the turn they belong to failed: the core asks again, and must not be told that they are
   * lost.
   */
  readonly #committed = new Map<number, SettleResult>();

  constructor(session: Session, own: SqliteDatabase, patience: Patience) {
    this.#session = session;
    this.#own = own;
    this.#patience = patience;
  }

  /** Settles what cannot wait for the turn's own transaction, and enters the results into `plan`. */
  async run(turn: Turn<SqliteDatabase>, plan: Plan, facts: Facts): Promise<void> {
    if (this.#committed.size > 0) for (const entry of turn.settles.entries()) this.#recall(plan, entry);
    if (this.#session.db === this.#own && !plan.apart) return;
    const open = openEffects(turn, plan);
    if (plan.apart) return this.#settleApart(open, plan, facts);
    if (open.length > 0) await this.#settle(open, plan, facts);
  }

  /** The turn failed after all: its effects stay committed. */
  remember(turn: Turn<SqliteDatabase>, plan: Plan): void {
    for (const [index, { lease }] of turn.settles.entries()) {
      const result = plan.answered.get(index);
      if (result?.status === "settled") this.#committed.set(lease.token, result);
    }
  }

  #recall(plan: Plan, [index, { lease }]: Indexed): void {
    const result = this.#committed.get(lease.token);
    if (result === undefined) return;
    this.#committed.delete(lease.token);
    plan.answered.set(index, result);
  }

  /** Each in a transaction of its own: an effect may break what is checked at the commit only, and then fails alone. */
  async #settleApart(requests: readonly Indexed[], plan: Plan, facts: Facts): Promise<void> {
    for (const request of requests) {
      try {
        await this.#settle([request], plan, facts);
      } catch (error) {
        if (!isRowFault(error)) throw error;
        plan.answered.set(request[0], { status: "effect_failed", error });
      }
    }
  }

  async #settle(requests: readonly Indexed[], plan: Plan, facts: Facts): Promise<void> {
    const attempt = () => {
      // What the user does may last: the core asks again.
      if (isInUse(this.#session.db)) return requests.map(([index]) => [index, UNFINISHED] as const);
      // The user's connection may be set to wait for locks by blocking; ours finds out first that there is none.
      immediately(this.#own, () => {});
      return inTransaction(this.#session, facts, this.#patience.clock.now(), (work) => {
        const lanes = new SqliteLanes(work);
        return requests.map(([index, request]) => [index, settle(lanes, request)] as const);
      });
    };
    const results = await untilFree(this.#patience, () => outsideOfEffects(attempt));
    for (const [index, result] of results) plan.answered.set(index, result);
  }
}

/**
 * Whether the user is at work on the connection: in a transaction of their own, which must not be joined, or reading row by row,
 * and then better-sqlite3 refuses everything else.
 */
function isInUse(db: SqliteDatabase): boolean {
  if (db.inTransaction) return true;
  try {
    db.exec("");
    return false;
  } catch {
    // A closed one will not be free again: what is tried on it next says so.
    return db.open;
  }
}

/** How events are accepted in this transaction. */
export interface AcceptMode {
  /** Null when an accepted event must not be leased at once. */
  readonly claim: ClaimRequest | null;
  readonly claimed: Claimed;
}

/** Where an event goes: its lane's row, and its own place there. */
export interface Placed {
  readonly incoming: NewEvent;
  readonly lane: SqliteLane;
  readonly isNew: boolean;
  readonly arrival: Arrival;
}

/** Stores an event unless it is known, and arms its lane. `index` is its place in the turn. */
export function accept(lanes: SqliteLanes, incoming: NewEvent, index: number | null, mode: AcceptMode): Acceptance {
  const first = knownById(lanes.work, incoming);
  if (first !== undefined) return countDuplicate(lanes, incoming, first);
  const placed = place(lanes, incoming);
  const isAlone = placed.lane.status === "idle" && placed.arrival.state === "pending";
  return isAlone ? acceptAlone(lanes, placed, index, mode) : acceptByRules(lanes, placed, mode);
}

export function place(lanes: SqliteLanes, incoming: NewEvent): Placed {
  const { work, rules, tally } = lanes;
  const { source, name, order } = incoming.lane;
  const [tenant, ord] = [tenantText(incoming.lane.tenant), orderCode(order)];
  const known = name === null ? undefined : work.sql.laneByKey.get(name, source, tenant, ord);
  const lane = toLane(known ?? newLane(tally.peek("next_lane"), ord), { name, source, tenant });
  return {
    incoming,
    lane,
    isNew: known === undefined,
    arrival: rules.arrivalOf(lane, incoming, tally.peek("next_event")),
  };
}

/** The event with the id that the source gives this one. */
function knownById({ sql }: Work, { lane, ownId }: NewEvent): KnownRow | undefined {
  return ownId === undefined ? undefined : sql.knownById.get(idValue(ownId), lane.source, tenantText(lane.tenant));
}

/**
 * Fast path: an idle lane holds no pending event, so the one that comes is its head. No event is read, and the lane is written once, with
 * the lease if there is one. A test compares what it writes with what `acceptByRules` writes. An event that no handler takes is the rules'.
 */
export function acceptAlone(lanes: SqliteLanes, placed: Placed, index: number | null, mode: AcceptMode): Acceptance {
  const { incoming, lane, arrival } = placed;
  const { rules } = lanes;
  const event = newEntry(lanes, placed);
  const arming = rules.arm(lane, arrival.below ? { head: null, late: event } : { head: event, late: null });
  const claim = arming.status === "ready" && hasRoom(mode) ? mode.claim : null;
  if (claim !== null && !claim.takes(incoming.lane, incoming.eventType, arrival.below))
    return acceptByRules(lanes, placed, mode);
  if (!insertEvent(lanes, placed, claim !== null)) return countRepeat(lanes, placed);
  let gapBegins = false;
  if (arming.status === "ready" && claim !== null) {
    lane.gapSince = arming.gapSince;
    event.attempts++;
    const { lane: key, ownId = null, eventType, signedAt, trace, raw, head = null } = incoming;
    const leased = rules.lease(lane, event, arming.missing, claim.leaseMs);
    mode.claimed.bytes += raw.byteLength;
    mode.claimed.leases.push(leaseOf(lane, leased, { key, ownId, eventType, signedAt, trace, raw, head }, index));
  } else gapBegins = rules.apply(lane, arming);
  if (arrival.below) lane.below = 1;
  storeLane(lanes, placed);
  return accepted(lanes, placed, event.id, gapBegins);
}

/** Any event into any lane, as the rules say. */
export function acceptByRules(lanes: SqliteLanes, placed: Placed, mode: AcceptMode): Acceptance {
  const { lane, arrival } = placed;
  const event = newEntry(lanes, placed);
  if (!insertEvent(lanes, placed, false)) return countRepeat(lanes, placed);
  storeLane(lanes, placed);
  // The cursor may pass a pending event, such as one that is retried.
  if (arrival.state === "done" || arrival.below) lane.below = 1;
  const gapBegins = lanes.rules.armArrival(lane, event);
  const isDue = lane.status !== "leased" && laneIsDue(lane, lanes.now);
  if (isDue && mode.claim !== null && hasRoom(mode)) claimLane(lanes, lane, mode.claim, mode.claimed);
  return accepted(lanes, placed, event.id, gapBegins);
}

function hasRoom({ claim, claimed }: AcceptMode): boolean {
  return claim !== null && !isEnough(claimed, claim.limit, claim.maxBytes);
}

function accepted(lanes: SqliteLanes, placed: Placed, event: EventId, gapBegins: boolean): Acceptance {
  const { incoming, lane, arrival } = placed;
  lanes.rules.countArrival(lane, incoming, arrival);
  if (arrival.state === "pending") lanes.tally.gauge("pending");
  const acceptance = { outcome: acceptedAs(arrival), event, lane: lane.id };
  return gapBegins ? { ...acceptance, gapBegins } : acceptance;
}

/** False when the event is known already; then nothing was written. */
function insertEvent({ work, now, tally }: SqliteLanes, placed: Placed, isLeased: boolean): boolean {
  const { incoming, lane, arrival } = placed;
  const { ownId, eventType, gapWaitMs, occurredAt, signedAt, untimed, digest, trace, raw, head } = incoming;
  const isPending = arrival.state === "pending";
  const id = tally.peek("next_event");
  const { changes } = work.sql.insertEvent.run(
    id,
    lane.id,
    arrival.sequence,
    eventType,
    lane.source,
    lane.tenant,
    STATE[arrival.state],
    isPending ? null : KEEP.other,
    isPending ? null : now,
    isLeased ? 1 : 0,
    isLeased ? now : null,
    arrival.late ? 1 : 0,
    gapWaitMs,
    occurredAt,
    signedAt,
    now,
    digest,
    trace,
    untimed ? 1 : null,
    ownId === undefined ? null : idValue(ownId),
  );
  if (changes === 0) return false;
  tally.take("next_event");
  if (incoming.repeats !== undefined) work.sql.countDuplicates.run(incoming.repeats.count, id);
  if (arrival.state === "done") work.sql.finishEvent.run(STATE.done, OUTCOME.filtered, KEEP.identity, now, id);
  else if (head === undefined) work.sql.insertBody.run(id, raw);
  else work.sql.insertHeadedBody.run(id, raw, head);
  return true;
}

/** The number and the reference stand once per lane, from the first event that knows them. */
function storeLane(lanes: SqliteLanes, { incoming, lane, isNew }: Placed): void {
  const { sql } = lanes.work;
  const { peer, externalReference } = incoming;
  if (!isNew) {
    lanes.save(lane);
    if (lane.bare === 1 && (peer !== null || externalReference !== null)) {
      sql.nameLane.run(peer, externalReference, lane.id);
    }
    return;
  }
  const { id, name, source, tenant, ord, readyAt, cursor, gapSince, token, holder, leased } = lane;
  lanes.tally.take("next_lane");
  sql.insertLane.run(
    id,
    name,
    source,
    tenant,
    ord,
    STATUS[lane.status],
    readyAt,
    cursor,
    gapSince,
    token,
    holder,
    leased,
    peer,
    externalReference,
  );
}

/** A repeat by sequence: the row itself was refused. */
function countRepeat(lanes: SqliteLanes, { incoming, lane, arrival }: Placed): Acceptance {
  const first = lanes.work.sql.known.get(lane.id, arrival.sequence, incoming.eventType);
  if (first === undefined) throw new RangeError("An event was refused as known, but is not there.");
  return countDuplicate(lanes, incoming, first);
}

function countDuplicate({ work, tally, now }: SqliteLanes, incoming: NewEvent, first: KnownRow): Acceptance {
  const { sql } = work;
  const { signedAt, digest, raw } = incoming;
  const body = first.digest.equals(digest) ? undefined : sql.body.get(first.id);
  const conflict = isConflict(incoming, first.digest, body);
  const repeats = repeatsWith(incoming);
  sql.countDuplicates.run(repeats.count, first.id);
  countDuplicates(tally, first, repeats, incoming.lane.order);
  if (conflict) {
    tally.count("conflicts");
    if (first.conflict === 0) {
      sql.markConflict.run(first.id);
      sql.insertConflict.run(first.id, digest, signedAt, now, raw);
    }
  }
  const state = stateWord(first.state);
  return {
    outcome: "duplicate",
    event: first.id,
    lane: first.lane,
    state,
    digest: first.digest,
    signedAt: first.signedAt,
    conflict,
    reference: first.reference,
  };
}

function newEntry({ tally, now }: SqliteLanes, { incoming, arrival: { sequence, late, state } }: Placed): SqliteEntry {
  const { eventType: type, gapWaitMs, occurredAt } = incoming;
  const finishedAt = state === "pending" ? null : now;
  return {
    id: tally.peek("next_event"),
    sequence,
    type,
    late,
    forced: false,
    gapWaitMs,
    occurredAt,
    acceptedAt: now,
    state,
    finishedAt,
    attempts: 0,
    hasBody: state !== "done",
  };
}

function newLane(id: number, ord: number): LaneRow {
  return {
    id,
    ord,
    status: STATUS.idle,
    readyAt: null,
    cursor: null,
    gapSince: null,
    token: 0,
    holder: null,
    leased: null,
    below: 0,
    bare: 0,
  };
}
