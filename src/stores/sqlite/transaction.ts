/** One write transaction under way: what every operation gets to work with. */
import type { Tally } from "../../inbox/lane-port.ts";
import type { SequenceBook } from "../../inbox/sequence-rules.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { COUNTERS, STATE } from "../database.ts";
import type { Lending } from "./effect-connection.ts";
import { busyTooLong, EffectAborted, isBusy } from "./failures.ts";
import { prepareStatements, type Statements } from "./statements.ts";

/** What stays the same while the inbox is open. */
export interface Facts {
  /** Of the entries that this open has read. */
  readonly sequences: SequenceBook;
  /** This open's number among the instances: the holder of its leases. */
  readonly holder: number;
}

/** A connection with its prepared statements. */
export interface Session {
  readonly db: SqliteDatabase;
  /** For effects. */
  readonly lending: Lending;
  readonly sql: Statements;
}

export interface Work extends Session {
  readonly facts: Facts;
  readonly ledger: Ledger;
  /** Epoch milliseconds, the same for all of the transaction. */
  readonly now: number;
}

export function createSession(db: SqliteDatabase): Omit<Session, "lending"> {
  return { db, sql: prepareStatements(db) };
}

function createWork(session: Session, facts: Facts, now: number): Work {
  return { ...session, facts, ledger: new Ledger(session.sql), now };
}

// Runs write transactions: begins at once or waits on the clock, never on the event loop.

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
    return immediately(session.db, () => {
      const answer = operation(work);
      work.ledger.flush();
      return answer;
    });
  } catch (error) {
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

// Counters, gauges and ids of one transaction: read at most once, written once per name that changed.

export type Gauge = "pending" | "dead" | "held" | "held_bytes" | "blocked";
type Sequence = "next_event" | "next_lane";

interface LedgerSnapshot {
  readonly changes: ReadonlyMap<string, number>;
  readonly next: ReadonlyMap<Sequence, number>;
}

export class Ledger implements Tally {
  readonly #sql: Statements;
  #changes: Map<string, number> = new Map();
  #next: Map<Sequence, number> = new Map();
  #newestSigned = -1;
  #serviceResigns = false;
  #witness: number | null = null;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  gauge(name: Gauge, by = 1): void {
    this.#add(name, by);
  }

  count(name: keyof typeof COUNTERS, by = 1): void {
    this.#add(COUNTERS[name], by);
  }

  #add(name: string, by: number): void {
    if (by !== 0) this.#changes.set(name, (this.#changes.get(name) ?? 0) + by);
  }

  /** The id the next row will get; it is used up by `take`. */
  peek(name: Sequence): number {
    const known = this.#next.get(name);
    if (known !== undefined) return known;
    const value = this.#sql.readCounter.get(name)?.value ?? 1;
    this.#next.set(name, value);
    return value;
  }

  take(name: Sequence): number {
    const id = this.peek(name);
    this.#next.set(name, id + 1);
    this.#add(name, 1);
    return id;
  }

  signed(at: number): void {
    if (at > this.#newestSigned) this.#newestSigned = at;
  }

  resigned(): void {
    this.#serviceResigns = true;
  }

  /** Notes an event that is no longer pending once the transaction is committed. */
  finished(event: number): void {
    this.#witness ??= event;
  }

  /** Whether the transaction was committed by somebody else, as an event that was finished in it tells. */
  wasCommitted(): boolean {
    return this.#witness !== null && this.#sql.eventState.get(this.#witness)?.state !== STATE.pending;
  }

  /** What `restore` goes back to when a savepoint is rolled back. */
  snapshot(): LedgerSnapshot {
    return { changes: new Map(this.#changes), next: new Map(this.#next) };
  }

  restore({ changes, next }: LedgerSnapshot): void {
    this.#changes = new Map(changes);
    this.#next = new Map(next);
  }

  flush(): void {
    for (const [name, by] of this.#changes) if (by !== 0) this.#sql.addCounter.run(by, name);
    if (this.#newestSigned >= 0) this.#sql.raiseCounter.run(this.#newestSigned, "newest_signed");
    if (this.#serviceResigns) this.#sql.raiseCounter.run(1, "service_resigns");
  }
}
