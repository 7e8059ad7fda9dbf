/** Opening an inbox, and what stays the same while it is open: pools, rules, names, the clock and where looks begin. */
import { SetupError, StoreError } from "../../errors.ts";
import type { InboxRules, OpenContext } from "../../inbox/store.ts";
import { type Clock, systemClock } from "../../internal/clock.ts";
import { wentBack } from "../database.ts";
import { asStoreError, isStatementLost } from "./failures.ts";
import { enterInstance, removeInstances, Slots } from "./instances.ts";
import { migrate } from "./migrate.ts";
import { isOutdated, NameBook, NamesMissing, type Naming } from "./names.ts";
import {
  type Access,
  ANSWER_MS,
  CONNECTIONS,
  inTransaction,
  NOW,
  type PgClient,
  type PgPool,
  type Session,
  Statements,
  types,
  withSession,
} from "./session.ts";
import type { InboxSettings } from "./settings.ts";
import { LaneAppeared, makeLanes } from "./statements.ts";
import { Wake } from "./wake.ts";

// An inbox that is open: its pool, and what stays the same while it is open.

/** So often a transaction may find that names are gone that it was about to use. */
const MOST_NAMES_GONE = 5;

export class OpenInbox {
  readonly context: OpenContext;
  readonly rules: InboxRules;
  readonly access: Access;
  readonly location: string;
  /** This open's number among the instances: the holder of its leases. */
  readonly instance: number;
  readonly names = new NameBook();
  readonly wake: Wake;
  /** For the looks of turns. */
  readonly lookFrom: { readonly due: LookFrom; readonly expired: LookFrom };
  readonly #ofTurns: Access;
  readonly #isOurs: boolean;
  readonly #clockSteps = new ClockSteps();
  readonly #turns = Slots.ofTurns();
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  constructor(parts: {
    readonly context: OpenContext;
    readonly rules: InboxRules;
    readonly access: Access;
    readonly location: string;
    readonly instance: number;
    /** The same as `access`, or a pool for turns alone. */
    readonly turns: PgPool;
    readonly isOurs: boolean;
    readonly listen: boolean;
    /** Called once, when it shows that LISTEN does not last. */
    readonly onDeaf: () => void;
  }) {
    this.context = parts.context;
    this.rules = parts.rules;
    this.access = parts.access;
    this.location = parts.location;
    this.instance = parts.instance;
    this.#ofTurns = { ...parts.access, pool: parts.turns };
    this.#isOurs = parts.isOurs;
    const { clock } = parts.context;
    this.lookFrom = { due: new LookFrom(clock), expired: new LookFrom(clock) };
    const { listen, instance, onDeaf } = parts;
    this.wake = new Wake(parts.access, { clock, listen, instance, onDeaf });
  }

  /** Epoch milliseconds, by `readClock`. */
  now(session: Session): Promise<number> {
    return readClock(session, this.context.clock);
  }

  /** A test's own clock, epoch milliseconds; null for the database's, which a statement reads itself. */
  ownTime(): number | null {
    const { clock } = this.context;
    return clock === systemClock ? null : clock.now();
  }

  /** The time for a transaction that writes. @throws ClockWentBack, which `write()` sees to */
  async timeToWrite(session: Session): Promise<number> {
    const now = await this.now(session);
    this.#clockSteps.writesAt(now);
    return now;
  }

  /** The same as the transaction began, whatever was sent since. @throws ClockWentBack */
  async timeOfBeginning(session: Session): Promise<number> {
    const { clock } = this.context;
    const begunAt = await session.begun;
    const now = clock === systemClock && begunAt !== null ? begunAt : clock.now();
    this.#clockSteps.writesAt(now);
    return now;
  }

  /** Whether the clock shows less than it did when this process wrote last. */
  wentBack(now: number): boolean {
    return this.#clockSteps.wentBack(now);
  }

  transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.during(() => this.write(work));
  }

  /** `write()` for a turn, with its row of the instance's counters, which is locked until it commits. */
  inTurn<T>(work: (session: Session, slot: number) => Promise<T>): Promise<T> {
    return this.#inSlot((slot) => this.#write(this.#ofTurns, (session) => work(session, slot)));
  }

  /**
   * A turn that is one statement, which is not run again, with no transaction around it. Where the clock had gone back by its `now`,
   * ready lanes are made due after it, or by the next who writes.
   */
  async inStatement<T extends { readonly now: number }>(
    work: (session: Session, slot: number) => Promise<T>,
  ): Promise<T> {
    const since = this.#clockSteps.latest;
    const result = await this.#inSlot((slot) => withSession(this.#ofTurns, (session) => work(session, slot)));
    const step = this.#clockSteps.wroteAt(result.now, since);
    if (step !== null) await this.#clockSteps.follow(this.access, step).catch(() => {});
    return result;
  }

  async #inSlot<T>(work: (slot: number) => Promise<T>): Promise<T> {
    const result = await this.#turns.use(work);
    if (result === null) throw closed();
    return result;
  }

  /** A transaction of an operation during which the inbox is kept open already. What was in its way is seen to, and it is run again. */
  write<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#write(this.access, work);
  }

  async #write<T>(access: Access, work: (session: Session) => Promise<T>): Promise<T> {
    for (let hasMadeLanes = false, namesGone = 0; ; ) {
      try {
        return await inTransaction(access, work);
      } catch (error) {
        if (error instanceof ClockWentBack) await this.#clockSteps.follow(this.access, error);
        else if (error instanceof NamesMissing || isOutdated(error)) {
          // Names that were entered may be pruned before they are used, but not again and again.
          namesGone += 1;
          if (namesGone > MOST_NAMES_GONE) throw vanishes(this.location, "names", error);
          hasMadeLanes = false;
          if (error instanceof NamesMissing) await this.enterNames(error.events);
          else this.names.forget();
        } else if (!(error instanceof LaneAppeared)) throw error;
        else if (hasMadeLanes) throw vanishes(this.location, "lanes", error);
        else {
          hasMadeLanes = true;
          // Those that are left could appear one by one, and be in its way each time.
          await withSession(this.access, (session) => makeLanes(session, error.lanes));
        }
      }
    }
  }

  /** Numbers for what these events name, in a transaction of its own and while the inbox is kept open already. */
  async enterNames(events: Naming): Promise<void> {
    // No connection is borrowed for nothing: in almost all turns it would be.
    if (this.names.knows(events)) return;
    await withSession(this.access, (session) => this.names.on(session).enter(session, events));
  }

  read<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.during(() => withSession(this.access, work));
  }

  /** Runs what only reads, or brings its own transactions, while the inbox stays open. */
  during<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#closing !== null) return Promise.reject(closed());
    const running = operation().catch((error: unknown) => {
      throw asStoreError(error, this.location);
    });
    this.#underWay.add(running);
    const done = () => this.#underWay.delete(running);
    running.then(done, done);
    return running;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
    await this.wake.stop();
    // Its row is removed by the next open, once this process is gone.
    await inTransaction(this.access, (session) => removeInstances(session, [this.instance])).catch(() => {});
    if (this.#isOurs) await endAll([this.access.pool, this.#ofTurns.pool]);
  }
}

/** Opens the inbox in `settings.schema` and brings it to this version's schema. */
export async function openInbox(settings: InboxSettings, context: OpenContext): Promise<OpenInbox> {
  const { pool, isOurs } = await settings.pool();
  const turns = (await settings.turns()) ?? pool;
  const { schema, location } = settings;
  const warn = (option: keyof typeof LOST) =>
    context.logger.warn({ code: "transaction_pooler", option, location }, LOST[option]);
  const statements = new Statements(schema, settings.prepares, () => warn("prepare"));
  const access: Access = { pool, clock: context.clock, schema, statements };
  try {
    const { rules, listen } = await withSession(access, async (session) => {
      const { client } = session;
      const pid = await checkServer(client);
      const rules = await migrate({ client, schema, location }, context);
      if (!settings.prepares && !settings.listen) return { rules, listen: false };
      const kept = await lookForPooler(access, session, pid);
      if (settings.listen && !kept.listening) warn("listen");
      if (!kept.statements) statements.lost();
      return { rules, listen: settings.listen && kept.listening };
    });
    await makeReadyLanesDue(access, await withSession(access, (session) => readClock(session, context.clock)));
    const instance = await inTransaction(access, async (session) =>
      enterInstance(session, context.instance, await readClock(session, context.clock)),
    );
    const onDeaf = () => warn("listen");
    return new OpenInbox({ context, rules, access, location, instance, turns, isOurs, listen, onDeaf });
  } catch (error) {
    if (isOurs) await endAll([pool, turns]).catch(() => {});
    throw asStoreError(error, location);
  }
}

const LOST = {
  prepare:
    "A pooler between here and the server does not keep prepared statements: they are sent without names from now on. Pass { prepare: false } to postgresStore(), or set max_prepared_statements in PgBouncer 1.21 or later.",
  listen:
    "A transaction pooler between here and the server does not keep LISTEN: the inbox is looked at every second instead. Pass { listen: false } to postgresStore(), or connect to the server directly.",
} as const;

async function endAll(pools: readonly PgPool[]): Promise<void> {
  await Promise.all([...new Set(pools)].map((pool) => pool.end()));
}

/** The database's clock, which all processes share; a test's own clock instead. Epoch milliseconds. */
export async function readClock(session: Session, clock: Clock): Promise<number> {
  if (clock !== systemClock) return clock.now();
  if (session.begunAt !== null) return session.begunAt;
  const [row] = await session.rows<{ now: number }>("now", NOW);
  return row?.now ?? clock.now();
}

export function closed(): StoreError {
  return new StoreError("closed", "The Postgres store is not open.");
}

function vanishes(location: string, what: "lanes" | "names", cause: unknown): StoreError {
  const message = `The inbox ${location} cannot be used now: ${what} that are made in it are not there. Look for triggers, rules and policies on its tables.`;
  return new StoreError("store_unavailable", message, { cause });
}

// Whether the server keeps what it acknowledges, and takes what the inbox writes.

const OLDEST_VERSION = 130_000;

const SERVER = `select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
  pg_is_in_recovery() as standby, current_setting('server_version_num')::int as version,
  current_setting('server_encoding') as encoding, pg_backend_pid() as pid`;

interface Server {
  readonly fsync: string;
  readonly pages: string;
  readonly standby: boolean;
  readonly version: number;
  readonly encoding: string;
  readonly pid: number;
}

/**
 * @returns the number of the server's process, which a pooler's client is not told as its own
 * @throws SetupError `not_durable`, `incompatible_peer` for an old server, `invalid_option` for a database that is not UTF-8
 */
export async function checkServer(client: PgClient): Promise<number> {
  const { rows } = await client.query({ text: SERVER, types, query_timeout: ANSWER_MS });
  const { fsync, pages, standby, version, encoding, pid } = rows[0] as unknown as Server;
  if (version < OLDEST_VERSION) {
    const message = `The inbox needs Postgres 13 or later; this server is ${Math.floor(version / 10_000)}.`;
    throw new SetupError("incompatible_peer", message, { fields: { version } });
  }
  if (encoding !== "UTF8") {
    const message = `The inbox needs a database of the encoding UTF8, and this one is ${encoding}: create database … encoding 'UTF8' template template0.`;
    throw new SetupError("invalid_option", message, { fields: { option: "database", encoding } });
  }
  if (standby) {
    throw new SetupError(
      "not_durable",
      "This Postgres server is a standby, which can not be written to: connect to the primary.",
    );
  }
  if (fsync === "on" && pages === "on") return pid;
  const message = `This Postgres server may lose what it acknowledged: fsync is ${fsync} and full_page_writes is ${pages}; both must be on. (synchronous_commit is set per transaction.)`;
  throw new SetupError("not_durable", message, { fields: { fsync, fullPageWrites: pages } });
}

// Finds out whether a pooler gives each transaction another connection of the server, and what of a connection's state it keeps.

/** What of a connection's state outlasts a transaction. */
export interface Kept {
  /** Statements that were prepared by name. */
  readonly statements: boolean;
  /** `LISTEN`. */
  readonly listening: boolean;
}

const ALL: Kept = { statements: true, listening: true };

const PID = "select pg_catalog.pg_backend_pid() as pid";
const PROBE = { name: "oncehook_probe", text: PID, types, query_timeout: ANSWER_MS };

/**
 * A client of a pooler gets another process number than the server's. Two clients that reach the same process of the server share it by
 * the transaction; and where both prepare a statement of one name there, the second fails unless the pooler keeps them apart. Under load
 * they may reach different ones, which shows nothing: then the first statement that is lost shows it.
 *
 * @param pid - the process of the server that answered `session`
 */
export async function lookForPooler(access: Access, session: Session, pid: number): Promise<Kept> {
  const { processID } = session.client;
  const connections = access.pool.options?.max ?? CONNECTIONS;
  if (typeof processID !== "number" || processID === pid || connections < 2) return ALL;
  try {
    const first = await probe(session.client);
    const second = await withSession(access, ({ client }) => probe(client));
    return { statements: true, listening: first !== second };
  } catch (error) {
    // Any other failure shows nothing either: no second connection may be free.
    return isStatementLost(error) ? { statements: false, listening: false } : ALL;
  }
}

async function probe(client: PgClient): Promise<unknown> {
  const { rows } = await client.query<{ readonly pid: number }>(PROBE);
  return rows[0]?.pid;
}

// Notices that the clock was set back: else a lane that is ready would wait until the clock has caught up.

/** What became ready at a time that has not come again waits for nothing. Sorted, as all locks of several lanes. */
const MAKE_DUE = `update {}.lane set ready_at = $1::bigint where id = any(array(
    select id from {}.lane where status = 3 and ready_at > $1::bigint order by id for update
  ))`;

/** Ready lanes must be made due first: the transaction that noticed is run again after it. */
class ClockWentBack extends Error {
  readonly now: number;

  constructor(now: number) {
    super("The clock went back.");
    this.now = now;
  }
}

class ClockSteps {
  #latest = Number.NEGATIVE_INFINITY;

  /** Whether the clock shows less than it did when this process wrote last. */
  wentBack(now: number): boolean {
    return wentBack(now, this.#latest);
  }

  /** @throws ClockWentBack */
  writesAt(now: number): void {
    const step = this.wroteAt(now, this.#latest);
    if (step !== null) throw step;
  }

  /** The latest time that this process wrote at. */
  get latest(): number {
    return this.#latest;
  }

  /**
   * Of what is committed already. Others may have written meanwhile, and later than it began: that is no step.
   *
   * @param since - `latest` before it was sent
   * @returns what is to be followed where the clock had gone back by then
   */
  wroteAt(now: number, since: number): ClockWentBack | null {
    if (wentBack(now, since)) return new ClockWentBack(now);
    this.#latest = Math.max(this.#latest, now);
    return null;
  }

  async follow(access: Access, { now }: ClockWentBack): Promise<void> {
    await makeReadyLanesDue(access, now);
    this.#latest = now;
  }
}

/**
 * Gaps, backoffs and leases wait on: `TOO_FAR_AHEAD_MS` bounds them. In a transaction of its own: with these lanes in hand, one that locks
 * others could wait for a transaction that waits for it.
 */
async function makeReadyLanesDue(access: Access, now: number): Promise<void> {
  await inTransaction(access, (session) => session.rows("make_due", MAKE_DUE, [now]));
}

// Where a look into an index of `ready_at` begins.

/** Then what was passed over is looked at again, as a lane that somebody had locked. */
const WHOLE_EVERY_MS = 1_000;

/**
 * An entry stays in the index when its lane goes on, until the server cleans up: at its low end lie as many as lanes have gone on since
 * then. Each look would pass all of them, so it begins where the one before found the first that was left.
 */
export class LookFrom {
  readonly #clock: Clock;
  #readyAt = 0;
  #wholeAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The least `ready_at` to look at, epoch milliseconds; 0 for all of the index, as for one look every second. */
  next(): number {
    const now = this.#clock.now();
    const isRecent = now >= this.#wholeAt && now < this.#wholeAt + WHOLE_EVERY_MS;
    if (isRecent && this.#readyAt > 0) return this.#readyAt;
    this.#wholeAt = now;
    return 0;
  }

  /** Tells that what lay before is done with, or 0 to have all of the index looked at next. */
  goesOnFrom(readyAt: number): void {
    this.#readyAt = readyAt;
  }
}
