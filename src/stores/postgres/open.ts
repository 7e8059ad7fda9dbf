/** Opens an inbox: checks the server and the pooler, migrates, and keeps the pools, clock and index cursors while it is open. */
import { SetupError, StoreError } from "../../errors.ts";
import { SequenceBook } from "../../inbox/sequence-rules.ts";
import type { EntryPreset, InboxRules, OpenContext } from "../../inbox/store.ts";
import { type Clock, systemClock, wentBack } from "../../internal/clock.ts";
import { isStatementLost, storeErrorOf } from "./failures.ts";
import { admitRows, insertInstance, removeInstances, Slots } from "./instances.ts";
import { migratePg } from "./migrate.ts";
import {
  ANSWER_MS,
  type Beginning,
  CONNECTIONS,
  NOW,
  type PgAccess,
  type PgClient,
  type PgPool,
  type PgSession,
  PgStatements,
  types,
  withSession,
  withTransaction,
} from "./session.ts";
import type { PgInboxSettings } from "./settings.ts";
import { EventAppeared, LaneAppeared, makeLanes } from "./statements.ts";
import { Wake } from "./wake.ts";

/** How often a transaction may find that one of its events was accepted meanwhile. */
const MOST_APPEARED = 20;

/** Who ends a lease, and when. */
export interface Holder {
  readonly instance: number;
  /** The time of a test's clock, epoch milliseconds; null for the database's. */
  readonly now: number | null;
  /** The row of the instance's counters. */
  readonly slot: number;
}

export class PgInbox {
  readonly context: OpenContext;
  readonly rules: InboxRules;
  /** Of the entries that this process has read. */
  readonly sequences = new SequenceBook();
  readonly access: PgAccess;
  readonly location: string;
  /** The number of this instance, which holds the leases of this open inbox. */
  readonly instance: number;
  readonly wake: Wake;
  /** Where batches start to look for due lanes and for expired leases. */
  readonly cursors: { readonly due: IndexCursor; readonly expired: IndexCursor };
  readonly #ofTurns: PgAccess;
  readonly #isOurs: boolean;
  readonly #clockSteps = new ClockSteps();
  readonly #turns = Slots.ofTurns();
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  constructor(
    parts: Pick<PgInbox, "context" | "rules" | "access" | "location" | "instance"> & {
      /** The pool of `access`, or a separate pool for batches. */
      readonly turns: PgPool;
      readonly isOurs: boolean;
      readonly listen: boolean;
      /** Called once, when LISTEN turns out not to last. */
      readonly onDeaf: () => void;
    },
  ) {
    this.context = parts.context;
    this.rules = parts.rules;
    this.access = parts.access;
    this.location = parts.location;
    this.instance = parts.instance;
    this.#ofTurns = { ...parts.access, pool: parts.turns };
    this.#isOurs = parts.isOurs;
    const { clock } = parts.context;
    this.cursors = { due: new IndexCursor(clock), expired: new IndexCursor(clock) };
    const { listen, instance, onDeaf } = parts;
    this.wake = new Wake(parts.access, { clock, listen, instance, onDeaf });
  }

  /** @param slot - the row of the instance's counters */
  holder(slot: number): Holder {
    return { instance: this.instance, now: this.ownTime(), slot };
  }

  /** Epoch milliseconds, by `readClock`. */
  now(session: PgSession): Promise<number> {
    return readClock(session, this.context.clock);
  }

  /** The time of a test's clock, epoch milliseconds; null for the database's clock, which a statement reads itself. */
  ownTime(): number | null {
    const { clock } = this.context;
    return clock === systemClock ? null : clock.now();
  }

  /** The time for a transaction that writes. @throws ClockWentBack, which `write()` handles */
  async timeToWrite(session: PgSession): Promise<number> {
    const now = await this.now(session);
    this.#clockSteps.writesAt(now);
    return now;
  }

  /** The time at which the transaction began, even after statements were sent. @throws ClockWentBack */
  async timeOfBeginning(session: PgSession): Promise<number> {
    const { clock } = this.context;
    const begunAt = await session.begun;
    const now = clock === systemClock && begunAt !== null ? begunAt : clock.now();
    this.#clockSteps.writesAt(now);
    return now;
  }

  /** Whether the clock is behind this process's last write. */
  wentBack(now: number): boolean {
    return this.#clockSteps.wentBack(now);
  }

  /** The latest time of a write of this process, before a statement that tells its time only afterwards. */
  get latestWrite(): number {
    return this.#clockSteps.latest;
  }

  /**
   * Notes the time of a write that is already committed. If the clock had gone back by then, ready lanes are made due now, or by the next
   * transaction that writes.
   *
   * @param since - `latestWrite` before the statement was sent
   */
  async wrote(now: number, since: number): Promise<void> {
    const step = this.#clockSteps.wroteAt(now, since);
    if (step !== null) await this.#clockSteps.follow(this.access, step).catch(() => {});
  }

  /** A statement of its own ended a lease. @param readyAt - since when its lane is ready again; null if it is not */
  endedLease(end: { readonly at: number; readonly readyAt: number | null }, since: number): Promise<void> {
    if (end.readyAt !== null) this.cursors.due.lowerTo(end.readyAt);
    return this.wrote(end.at, since);
  }

  transaction<T>(work: (session: PgSession) => Promise<T>): Promise<T> {
    return this.during(() => this.write(work));
  }

  /** `write()` for a batch, with a row of the instance's counters that is locked until the commit. */
  inTurn<T>(work: (session: PgSession, slot: number) => Promise<T>): Promise<T> {
    return this.#inSlot((slot) => this.#write(this.#ofTurns, (session) => work(session, slot)));
  }

  /** Runs a batch that is one statement, without a transaction and without a retry. */
  async inStatement<T extends { readonly now: number }>(
    work: (session: PgSession, slot: number) => Promise<T>,
  ): Promise<T> {
    const since = this.latestWrite;
    const result = await this.#inSlot((slot) => withSession(this.#ofTurns, (session) => work(session, slot)));
    await this.wrote(result.now, since);
    return result;
  }

  async #inSlot<T>(work: (slot: number) => Promise<T>): Promise<T> {
    const result = await this.#turns.use(work);
    if (result === null) throw inboxClosed();
    return result;
  }

  /**
   * A transaction inside `during()`. Handles the known reasons for a failure and runs it again.
   *
   * @param open - as of `withTransaction()`
   */
  write<T>(work: (session: PgSession) => Promise<T>, open?: Beginning): Promise<T> {
    return this.#write(this.access, work, open);
  }

  async #write<T>(access: PgAccess, work: (session: PgSession) => Promise<T>, open?: Beginning): Promise<T> {
    for (let hasMadeLanes = false, appeared = 0; ; ) {
      try {
        return await withTransaction(access, work, open);
      } catch (error) {
        if (error instanceof EventAppeared) {
          // Each time another transaction accepted one of them, but not again and again.
          appeared += 1;
          if (appeared > MOST_APPEARED) throw error.cause;
        } else if (error instanceof ClockWentBack) await this.#clockSteps.follow(this.access, error);
        else if (!(error instanceof LaneAppeared)) throw error;
        else if (hasMadeLanes) throw lanesVanish(this.location, error);
        else {
          hasMadeLanes = true;
          // Creates all of them, because the others could appear one by one and fail the transaction each time.
          await withSession(this.access, (session) => makeLanes(session, error.lanes));
        }
      }
    }
  }

  /** See `InboxStore.admit`. */
  async admit(entries: readonly EntryPreset[]): Promise<readonly EntryPreset[]> {
    const recorded = await this.transaction((session) => admitRows(session, entries));
    this.sequences.learn(recorded);
    return recorded;
  }

  read<T>(work: (session: PgSession) => Promise<T>): Promise<T> {
    return this.during(() => withSession(this.access, work));
  }

  /** Runs an operation that only reads or has its own transactions; `close()` waits for it. */
  during<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#closing !== null) return Promise.reject(inboxClosed());
    const running = operation().catch((error: unknown) => {
      throw storeErrorOf(error, this.location);
    });
    this.#running.add(running);
    const done = () => this.#running.delete(running);
    running.then(done, done);
    return running;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#running]);
    await this.wake.stop();
    // If this fails, the next open removes the row once this process is gone.
    await withTransaction(this.access, (session) => removeInstances(session, [this.instance])).catch(() => {});
    if (this.#isOurs) await endAll([this.access.pool, this.#ofTurns.pool]);
  }
}

/** Opens the inbox in `settings.schema` and brings it to this version's schema. */
export async function openPgInbox(settings: PgInboxSettings, context: OpenContext): Promise<PgInbox> {
  const { pool, isOurs } = await settings.pool();
  const turns = (await settings.turns()) ?? pool;
  const { schema, location } = settings;
  const warn = (option: keyof typeof LOST) =>
    context.logger.warn({ code: "transaction_pooler", option, location }, LOST[option]);
  const statements = new PgStatements(schema, settings.prepares, () => warn("prepare"));
  const access: PgAccess = { pool, clock: context.clock, schema, statements };
  try {
    const { rules, listen } = await withSession(access, async (session) => {
      const { client } = session;
      const pid = await checkServer(client);
      const rules = await migratePg({ client, schema, location }, context);
      if (!settings.prepares && !settings.listen) return { rules, listen: false };
      const kept = await lookForPooler(access, session, pid);
      if (settings.listen && !kept.listening) warn("listen");
      if (!kept.statements) statements.lost();
      return { rules, listen: settings.listen && kept.listening };
    });
    await makeReadyLanesDue(access, await withSession(access, (session) => readClock(session, context.clock)));
    const instance = await withTransaction(access, async (session) =>
      insertInstance(session, context, { now: await readClock(session, context.clock), location }),
    );
    const onDeaf = () => warn("listen");
    return new PgInbox({ context, rules, access, location, instance, turns, isOurs, listen, onDeaf });
  } catch (error) {
    if (isOurs) await endAll([pool, turns]).catch(() => {});
    throw storeErrorOf(error, location);
  }
}

const LOST = {
  prepare:
    "A pooler between here and the server does not keep prepared statements: they are sent without names from now on. Pass { prepare: false } to postgresStore(), or set max_prepared_statements in PgBouncer 1.21 or later.",
  listen:
    "A transaction pooler between here and the server does not keep LISTEN: the inbox is polled every second instead. Pass { listen: false } to postgresStore(), or connect to the server directly.",
} as const;

async function endAll(pools: readonly PgPool[]): Promise<void> {
  await Promise.all([...new Set(pools)].map((pool) => pool.end()));
}

/** The database's clock, which all processes share, or a test's own clock. Epoch milliseconds. */
export async function readClock(session: PgSession, clock: Clock): Promise<number> {
  if (clock !== systemClock) return clock.now();
  if (session.begunAt !== null) return session.begunAt;
  const [row] = await session.rows<{ now: number }>("now", NOW);
  return row?.now ?? clock.now();
}

export function inboxClosed(): StoreError {
  return new StoreError("closed", "The Postgres store is not open.");
}

function lanesVanish(location: string, cause: unknown): StoreError {
  const message = `The inbox ${location} cannot be used now: new lanes do not stay in its tables. Check their triggers, rules and policies.`;
  return new StoreError("store_unavailable", message, { cause });
}

const OLDEST_VERSION = 130_000;

const SERVER = `select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
  current_setting('server_version_num')::int as version,
  current_setting('server_encoding') as encoding, pg_backend_pid() as pid`;

interface Server {
  readonly fsync: string;
  readonly pages: string;
  readonly version: number;
  readonly encoding: string;
  readonly pid: number;
}

/**
 * Checks that the server keeps what it acknowledges. (A new connection to a standby was refused before.)
 *
 * @returns the number of the server's process, which differs from the client's `processID` behind a pooler
 * @throws SetupError `not_durable`, `incompatible_peer` for an old server, `invalid_option` for a database that is not UTF-8
 */
export async function checkServer(client: PgClient): Promise<number> {
  const { rows } = await client.query({ text: SERVER, types, query_timeout: ANSWER_MS });
  const { fsync, pages, version, encoding, pid } = rows[0] as unknown as Server;
  if (version < OLDEST_VERSION) {
    const message = `The inbox needs Postgres 13 or later; this server is ${Math.floor(version / 10_000)}.`;
    throw new SetupError("incompatible_peer", message, { fields: { version } });
  }
  if (encoding !== "UTF8") {
    const message = `The inbox needs a database with the encoding UTF8; this one has ${encoding}: create database … encoding 'UTF8' template template0.`;
    throw new SetupError("invalid_option", message, { fields: { option: "database", encoding } });
  }
  if (fsync === "on" && pages === "on") return pid;
  const message = `This Postgres server may lose what it acknowledged: fsync is ${fsync} and full_page_writes is ${pages}; both must be on. (synchronous_commit is set per transaction.)`;
  throw new SetupError("not_durable", message, { fields: { fsync, fullPageWrites: pages } });
}

/** Which state of a connection outlasts a transaction. */
export interface Kept {
  /** Statements prepared by name. */
  readonly statements: boolean;
  /** `LISTEN`. */
  readonly listening: boolean;
}

const ALL: Kept = { statements: true, listening: true };

const PID = "select pg_catalog.pg_backend_pid() as pid";
const PROBE = { name: "oncehook_probe", text: PID, types, query_timeout: ANSWER_MS };

/**
 * Finds out whether a pooler gives each transaction another connection of the server. A pooler's client gets a different process number
 * than the server's. If two clients reach the same process of the server, they share it transaction by transaction. If both prepare a
 * statement with the same name there, the second fails unless the pooler separates them. Under load they may reach different processes,
 * which proves nothing: then the first lost statement reveals the pooler.
 *
 * @param pid - the process of the server that answered `session`
 */
export async function lookForPooler(access: PgAccess, session: PgSession, pid: number): Promise<Kept> {
  const { processID } = session.client;
  const connections = access.pool.options?.max ?? CONNECTIONS;
  if (typeof processID !== "number" || processID === pid || connections < 2) return ALL;
  try {
    const first = await probe(session.client);
    const second = await withSession(access, ({ client }) => probe(client));
    return { statements: true, listening: first !== second };
  } catch (error) {
    // Any other failure proves nothing: there may be no second free connection.
    return isStatementLost(error) ? { statements: false, listening: false } : ALL;
  }
}

async function probe(client: PgClient): Promise<unknown> {
  const { rows } = await client.query<{ readonly pid: number }>(PROBE);
  return rows[0]?.pid;
}

/** Makes lanes due that became ready in what is now the future. Sorted, as all locks of several lanes. */
const MAKE_DUE = `update {}.lane set ready_at = $1::bigint where id = any(array(
    select id from {}.lane where status = 3 and ready_at > $1::bigint order by id for update
  ))`;

/** Ready lanes must be made due first; then the transaction that noticed is run again. */
class ClockWentBack extends Error {
  readonly now: number;

  constructor(now: number) {
    super("The clock went back.");
    this.now = now;
  }
}

/** Notices that the clock was set back. Otherwise ready lanes would wait until the clock has caught up. */
class ClockSteps {
  #latest = Number.NEGATIVE_INFINITY;

  /** Whether `now` is before this process's last write. */
  wentBack(now: number): boolean {
    return wentBack(now, this.#latest);
  }

  /** @throws ClockWentBack */
  writesAt(now: number): void {
    const step = this.wroteAt(now, this.#latest);
    if (step !== null) throw step;
  }

  /** The latest time of a write of this process. */
  get latest(): number {
    return this.#latest;
  }

  /**
   * Notes a write that is already committed. Other writes with later times in the meantime do not mean that the clock went back.
   *
   * @param since - `latest` before the statement was sent
   * @returns an error to `follow()` if the clock had gone back
   */
  wroteAt(now: number, since: number): ClockWentBack | null {
    if (wentBack(now, since)) return new ClockWentBack(now);
    this.#latest = Math.max(this.#latest, now);
    return null;
  }

  async follow(access: PgAccess, { now }: ClockWentBack): Promise<void> {
    await makeReadyLanesDue(access, now);
    this.#latest = now;
  }
}

/**
 * Leaves gaps, backoffs and leases, which `TOO_FAR_AHEAD_MS` bounds. A transaction of its own: with these lanes locked, locking others
 * could deadlock.
 */
async function makeReadyLanesDue(access: PgAccess, now: number): Promise<void> {
  await withTransaction(access, (session) => session.rows("make_due", MAKE_DUE, [now]));
}

/** How often to look at the whole index, for lanes that were passed over because they were locked. */
const WHOLE_EVERY_MS = 1_000;

/**
 * Where to start reading an index of `ready_at`. The entry of a lane that moved on stays in the index until the next vacuum, so dead entries
 * pile up at its low end. To avoid passing all of them, each look starts where the last one found the first live entry.
 */
export class IndexCursor {
  readonly #clock: Clock;
  #readyAt = 0;
  #wholeAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The least `ready_at` to look at, epoch milliseconds; 0 for the whole index, once every second. */
  start(): number {
    const now = this.#clock.now();
    const isRecent = now >= this.#wholeAt && now < this.#wholeAt + WHOLE_EVERY_MS;
    if (isRecent && this.#readyAt > 0) return this.#readyAt;
    this.#wholeAt = now;
    return 0;
  }

  /** A lane became ready that waits since `readyAt`. */
  lowerTo(readyAt: number): void {
    this.#readyAt = Math.min(this.#readyAt, readyAt);
  }

  /** Skips everything before `readyAt` from now on; 0 makes the next look read the whole index. */
  moveTo(readyAt: number): void {
    this.#readyAt = readyAt;
  }
}
