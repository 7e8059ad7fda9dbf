/** Runs write transactions: begins at once or waits on the clock, never on the event loop. */

import { type Clock, sleep } from "../../internal/clock.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { busyTooLong, EffectAborted, isBusy } from "./failures.ts";
import { createWork, type Facts, type Session, type Work } from "./work.ts";

const FIRST_PAUSE_MS = 1;
const LONGEST_PAUSE_MS = 25;

export interface Patience {
  readonly clock: Clock;
  readonly busyTimeoutMs: number;
  readonly location: string;
}

/** Tries `attempt` until no other connection's lock is in the way. */
export async function untilFree<T>(patience: Patience, attempt: () => T): Promise<T> {
  const { clock, busyTimeoutMs, location } = patience;
  const deadline = clock.monotonic() + busyTimeoutMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (clock.monotonic() >= deadline) throw busyTooLong(location, error);
    }
    await sleep(clock, pause);
  }
}

/** Runs `operation` in a write transaction of `session`: all of it is durable when this returns, or nothing happened. */
export function inTransaction<T>(session: Session, facts: Facts, now: number, operation: (work: Work) => T): T {
  const work = createWork(session, facts, now);
  try {
    const result = immediately(session.db, () => {
      const { value: pruned = 0 } = work.sql.readCounter.get("names_pruned") ?? {};
      facts.clients.asOf(pruned);
      facts.kinds.asOf(pruned);
      const answer = operation(work);
      work.ledger.flush();
      return answer;
    });
    facts.clients.committed();
    facts.kinds.committed();
    return result;
  } catch (error) {
    facts.clients.rolledBack();
    facts.kinds.rolledBack();
    // An effect that commits, against the rule, stores what was settled before it, but not the counters.
    if (error instanceof EffectAborted && work.ledger.wasCommitted())
      immediately(session.db, () => work.ledger.flush());
    throw error;
  }
}

/** A deferred transaction that reads and then writes fails at once when another wrote in between; this one does not. */
export function immediately<T>(db: SqliteDatabase, operation: () => T): T {
  if (unended.has(db)) rollBack(db);
  db.exec("begin immediate");
  try {
    const result = operation();
    db.exec("commit");
    return result;
  } catch (error) {
    rollBack(db);
    throw error;
  }
}

/** Connections with a transaction of ours that could not be ended: better-sqlite3 refuses that while an effect's `iterate()` is open. */
const unended = new WeakSet<SqliteDatabase>();

function rollBack(db: SqliteDatabase): void {
  unended.add(db);
  // SQLite may have rolled back by itself, after a full disk for example.
  if (db.inTransaction) db.exec("rollback");
  unended.delete(db);
}
