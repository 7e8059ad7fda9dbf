/** Ends leases, each only while it is still held; effects commit with the completion of their event. */
import { SetupError } from "../../errors.ts";
import { refuseUnrun, refuseUnwaited } from "../../inbox/effect.ts";
import { settled } from "../../inbox/lanes/settling.ts";
import type { Outcome } from "../../inbox/record.ts";
import type { Effect, Failure, LeaseRef, Settle, SettleResult } from "../../inbox/store.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { KEEP, OUTCOME, STATE, STATUS } from "../codes.ts";
import { EffectAborted, metLock } from "./failures.ts";
import { goOnAfterDead, rearm, schedule, writeLane } from "./lanes.ts";
import { effectEndedTransaction } from "./lending.ts";
import type { Change, LaneRow } from "./statements.ts";
import type { Work } from "./work.ts";

/** The user's own type of connection is not known here: effects get the connection that the completion is written on. */
type AnySettle = Settle<SqliteDatabase>;

const SETTLED: SettleResult = { status: "settled" };
const LOST: SettleResult = { status: "lost" };

export function settle(work: Work, request: AnySettle): SettleResult {
  if (request.kind === "complete") {
    const { lease, outcome, effects } = request;
    return effects.length === 0 ? complete(work, lease, outcome) : completeWith(work, lease, outcome, effects);
  }
  const lane = heldLane(work, request.lease);
  if (lane === null) return LOST;
  const { event } = request.lease;
  let beginsToWait = false;
  switch (request.kind) {
    case "retry":
      recordFailure(work, event, request.failure);
      work.ledger.add("retried");
      schedule(work, lane, STATUS.backoff, work.now + request.delayMs);
      writeLane(work, lane);
      break;
    case "dead":
      recordFailure(work, event, request.failure);
      work.sql.finishEvent.run(STATE.dead, KEEP.dead, work.now, event);
      work.ledger.add("pending", -1);
      work.ledger.add("dead");
      work.ledger.add("dead_lettered");
      beginsToWait = goOnAfterDead(work, lane, request.onDead);
      break;
    case "release":
      work.sql.releaseEvent.run(event);
      if (request.delayMs === 0) beginsToWait = rearm(work, lane);
      else {
        schedule(work, lane, STATUS.backoff, work.now + request.delayMs);
        writeLane(work, lane);
      }
      break;
    default:
      return request satisfies never;
  }
  return settled(beginsToWait);
}

/** The lane of a lease that is still this open's; null when it is lost. */
function heldLane({ sql, facts }: Work, { lane, epoch, event }: LeaseRef): LaneRow | null {
  return sql.heldLane.get(lane, epoch, event, facts.holder) ?? null;
}

function complete(work: Work, lease: LeaseRef, outcome: Outcome): SettleResult {
  return makeIdle(work, lease) ? finishDone(work, lease.event, outcome) : completeAndRearm(work, lease, outcome);
}

/** The common end of a lease, guard and all, in one statement: false when it is lost, or when more waits in its lane. */
function makeIdle({ sql, facts }: Work, { lane, epoch, event }: LeaseRef): boolean {
  return sql.idleLane.run(lane, epoch, event, facts.holder).changes === 1;
}

function completeAndRearm(work: Work, lease: LeaseRef, outcome: Outcome): SettleResult {
  const lane = heldLane(work, lease);
  if (lane === null) return LOST;
  finishDone(work, lease.event, outcome);
  return settled(rearm(work, lane));
}

function finishDone(work: Work, event: number, outcome: Outcome): SettleResult {
  const keep = outcome === "handled" ? KEEP.handled : KEEP.other;
  work.sql.completeEvent.run(OUTCOME[outcome], keep, work.now, event);
  work.ledger.add(outcome);
  work.ledger.add("pending", -1);
  work.ledger.finished(event);
  return SETTLED;
}

/**
 * Guard first: a lost lease runs no effect. An effect that throws takes back its neighbours. One that commits, against the rule,
 * must not store a half: its own completion comes last.
 */
function completeWith(
  work: Work,
  lease: LeaseRef,
  outcome: Outcome,
  effects: readonly Effect<SqliteDatabase>[],
): SettleResult {
  if (heldLane(work, lease) === null) return LOST;
  work.sql.savepoint.run();
  const { rollbackTo, release } = work.sql;
  try {
    for (const effect of effects) refuseUnwaited(effect, "never");
    const { connection, during } = work.lending;
    during(() => {
      for (const effect of effects) refuseUnrun(effect(connection), "never");
    });
  } catch (cause) {
    const error = metLock(cause) ? otherConnection(cause) : cause;
    if (!ends(work, rollbackTo, release)) throw new EffectAborted(lease, error);
    return { status: "effect_failed", error };
  }
  if (!ends(work, release)) throw new EffectAborted(lease, effectEndedTransaction());
  return complete(work, lease, outcome);
}

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

function recordFailure(work: Work, event: number, failure: Failure): void {
  const attempt = work.sql.eventState.get(event)?.attempts ?? 0;
  work.sql.failEvent.run(failure.code, failure.message, event);
  work.sql.insertAttempt.run(event, attempt, work.now, failure.durationMs, failure.code, failure.message);
}
