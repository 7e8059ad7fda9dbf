/** An inbox that is open: its connection, and how transactions are run on it. */
import { existsSync, realpathSync } from "node:fs";
import { SetupError, StoreError } from "../../errors.ts";
import { SequenceBook } from "../../inbox/sequence-rules.ts";
import type { EntryPreset, InboxRules, OpenContext, Turn, TurnResult } from "../../inbox/store.ts";
import { noInbox, refuseUnrun, refuseUnwaited } from "../../inbox/store-rules.ts";
import type { Clock, Timer } from "../../internal/clock.ts";
import { wentBack } from "../../internal/clock.ts";
import {
  loadDriver,
  type SqliteDatabase,
  type SqliteDriver,
  type SqliteStatement,
} from "../../internal/sqlite-driver.ts";
import { AheadSettles, amend, createPlan, runTurn } from "./batch.ts";
import { cautionsAbout, checkDurable, checkFiles, openConnection, prepareFile, refuseDirectory } from "./connection.ts";
import { Checkpoints, OpenFiles, Space, type SpaceLimits } from "./disk-space.ts";
import { type Lending, lend, lendOfUser } from "./effect-connection.ts";
import { asStoreError } from "./failures.ts";
import { admit, enterInstance, leaveInstance } from "./instances.ts";
import { LaneReader } from "./records.ts";
import { applyRules, holdsInbox, migrate } from "./schema.ts";
import type { Statements } from "./statements.ts";
import {
  createSession,
  type Facts,
  immediately,
  inTransaction,
  type Patience,
  type Session,
  untilFree,
  type Work,
} from "./transaction.ts";

const CHECK_DURABLE_EVERY_MS = 3_600_000;

export interface InboxSettings extends SpaceLimits {
  /** Absolute. */
  readonly path: string;
  readonly location: string;
  readonly busyTimeoutMs: number;
  readonly driver: SqliteDriver | undefined;
  /** The user's own connection to the same file, for completions with effects. */
  readonly effects: SqliteDatabase | undefined;
  /** The application's own set-up, on the connection that effects get. */
  readonly onOpen: ((db: SqliteDatabase) => unknown) | undefined;
}

export class OpenInbox {
  readonly context: OpenContext;
  readonly rules: InboxRules;
  readonly session: Session;
  readonly lanes: LaneReader;
  readonly facts: Facts;
  readonly wake: Wake;
  readonly patience: Patience;
  readonly clockSteps: ClockSteps;
  readonly #files: OpenFiles;
  readonly #space: Space;
  readonly #checkpoints: Checkpoints;
  readonly #ahead: AheadSettles;
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;
  /** Negative until the first write: a driver may say one thing and do another. */
  #checkedAt = Number.NEGATIVE_INFINITY;
  #broken: StoreError | null = null;

  constructor(file: string, settings: InboxSettings, context: OpenContext, db: SqliteDatabase) {
    const { clock, instance } = context;
    const { rules, holder, latest } = immediately(db, () => {
      migrate(db, context.migrate);
      forgetStatistics(db);
      const rules = applyRules(db, context, settings.location);
      return { rules, latest: latestWrittenAt(db), holder: enterInstance(db, instance, clock.now()) };
    });
    const { own, ofEffects } = setUp(db, settings, holder);
    this.context = context;
    this.session = own;
    this.rules = rules;
    this.lanes = new LaneReader(db);
    this.facts = { sequences: new SequenceBook(), holder };
    this.wake = new Wake(db, clock);
    this.clockSteps = new ClockSteps(latest);
    this.patience = { clock, busyTimeoutMs: settings.busyTimeoutMs, location: settings.location };
    this.#files = new OpenFiles(file);
    this.#space = new Space(this.#files, settings, clock);
    this.#checkpoints = new Checkpoints(db, this.#files, clock);
    this.#ahead = new AheadSettles(ofEffects, db, this.patience);
  }

  get db(): SqliteDatabase {
    return this.session.db;
  }

  async step(turn: Turn<SqliteDatabase>): Promise<TurnResult> {
    return this.during(async () => {
      const plan = createPlan();
      if (turn.accepts.length + turn.quarantines.length > 0) plan.refusal = this.#space.refusal(this.db);
      for (;;) {
        try {
          await this.#ahead.run(turn, plan, this.facts);
          return await this.#commit((work) => runTurn(work, turn, plan));
        } catch (error) {
          if (amend(plan, turn, error)) continue;
          this.#ahead.remember(turn, plan);
          throw error;
        }
      }
    });
  }

  /** Runs `operation` in a write transaction. */
  write<T>(operation: (work: Work) => T): Promise<T> {
    return this.during(() => this.#commit(operation));
  }

  /** See `InboxStore.admit`. */
  async admit(entries: readonly EntryPreset[]): Promise<readonly EntryPreset[]> {
    const recorded = await this.write(({ db }) => admit(db, entries));
    this.facts.sequences.learn(recorded);
    return recorded;
  }

  /** Of what a caller takes for done, besides accepted events. @throws StoreError if the inbox's files were moved, removed or replaced */
  checkFiles(): void {
    this.#files.check(this.db);
  }

  /** Runs what only reads, or brings its own transactions, while the inbox stays open. */
  during<T>(operation: () => Promise<T> | T): Promise<T> {
    if (this.#closing !== null) return Promise.reject(closed());
    const running = (async () => operation())().catch((error: unknown) => {
      throw asStoreError(error, this.patience.location);
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

  async #commit<T>(operation: (work: Work) => T): Promise<T> {
    if (this.#broken !== null) throw this.#broken;
    const result = await untilFree(this.patience, () => this.#try(operation));
    this.#checkpoints.wrote();
    this.#checkNowAndThen();
    return result;
  }

  #try<T>(operation: (work: Work) => T): T {
    const now = this.context.clock.now();
    const result = inTransaction(this.session, this.facts, now, (work) => {
      this.clockSteps.makeReadyLanesDue(work.sql, now);
      return operation(work);
    });
    this.clockSteps.committed(now);
    return result;
  }

  /** After the first write and hourly: what somebody turned off later would lose acknowledged events in silence. */
  #checkNowAndThen(): void {
    const now = this.context.clock.monotonic();
    if (now - this.#checkedAt < CHECK_DURABLE_EVERY_MS) return;
    this.#checkedAt = now;
    try {
      checkDurable(this.db);
    } catch (error) {
      if (error instanceof StoreError) this.#broken = error;
      throw error;
    }
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
    this.wake.stop();
    this.#checkpoints.stop();
    leave(this.db, this.facts.holder);
    this.db.close();
  }
}

/** Opens the file at `settings.path` and brings it to this version's schema. */
export async function openInbox(settings: InboxSettings, context: OpenContext): Promise<OpenInbox> {
  const driver = settings.driver ?? (await loadDriver());
  if (context.rules === "recorded" && !isInbox(driver, settings)) throw noInbox(settings.location);
  const file = prepareFile(settings.path);
  checkEffects(settings.effects, file);
  const cautions = cautionsAbout(file);
  const patience = { ...settings, clock: context.clock };
  let inbox: OpenInbox;
  try {
    inbox = await untilFree(patience, () => {
      const db = openConnection(driver, file);
      try {
        return new OpenInbox(file, settings, context, db);
      } catch (error) {
        db.close();
        throw error;
      }
    });
  } catch (error) {
    throw asStoreError(error, settings.location);
  }
  // For a file that is not an inbox they would be misleading.
  for (const { message, ...fields } of cautions) {
    context.logger.warn({ ...fields, location: settings.location }, message);
  }
  return inbox;
}

/** Looks before anything is made or set: the file may be somebody else's. */
function isInbox(driver: SqliteDriver, { path, location, busyTimeoutMs }: InboxSettings): boolean {
  if (!existsSync(path)) return false;
  refuseDirectory(path);
  const file = realpathSync(path);
  checkFiles(file);
  try {
    const db = new driver(file, { timeout: busyTimeoutMs, fileMustExist: true });
    try {
      return holdsInbox(db);
    } finally {
      db.close();
    }
  } catch (error) {
    throw asStoreError(error, location);
  }
}

/** What may refuse an open that is entered already: without its row taken out, each try of a living process would leave one. */
function setUp(db: SqliteDatabase, { effects, onOpen }: InboxSettings, holder: number) {
  try {
    checkDurable(db);
    const own = createSession(db);
    const ofEffects = effects === undefined ? own : createSession(effects);
    // After the inbox's own statements were made, which need no watching.
    const lending = effects === undefined ? lend(db) : lendOfUser(effects);
    if (onOpen !== undefined) runOnOpen(onOpen, lending);
    return { own: { ...own, lending }, ofEffects: { ...ofEffects, lending } };
  } catch (error) {
    leave(db, holder);
    throw error;
  }
}

function leave(db: SqliteDatabase, holder: number): void {
  try {
    // The application's set-up may have failed within a transaction of its own.
    if (db.inTransaction) db.exec("rollback");
    immediately(db, () => leaveInstance(db, holder));
  } catch {
    // Its row is removed by the next open, once this process is gone.
  }
}

function runOnOpen(onOpen: (db: SqliteDatabase) => unknown, { connection, during }: Lending): void {
  try {
    refuseUnwaited(onOpen, "never");
    refuseUnrun(
      during(() => onOpen(connection), "onOpen"),
      "never",
    );
  } catch (cause) {
    if (!(cause instanceof SetupError && cause.code === "async_effect")) throw cause;
    const message = `Option "onOpen" is async or returned a promise or a query that was not run, but nothing waits for it: work synchronously in it.`;
    throw new SetupError("invalid_option", message, { cause, fields: { option: "onOpen" } });
  }
}

function checkEffects(effects: SqliteDatabase | undefined, file: string): void {
  if (effects === undefined) return;
  const other = effects.open && effects.name !== "" && effects.name !== ":memory:" ? realpathSync(effects.name) : "";
  if (other === file) return;
  throw new SetupError("invalid_option", `Option "effects" must be an open connection to the inbox's own file.`);
}

export function closed(): StoreError {
  return new StoreError("closed", "The SQLite store is not open.");
}

// Notices commits of other processes on the same file.

const LOOK_EVERY_MS = 100;

class Wake {
  /** Prepared once: it is run ten times a second, as long as the inbox is open. */
  readonly #dataVersion: SqliteStatement;
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #timer: Timer | null = null;
  #version: unknown = null;

  constructor(db: SqliteDatabase, clock: Clock) {
    this.#dataVersion = db.prepare("pragma data_version");
    this.#clock = clock;
  }

  add(listener: () => void): () => void {
    // Its own function, so that adding the same listener twice means being called twice.
    const entry = () => listener();
    this.#listeners.add(entry);
    if (this.#timer === null) {
      this.#version = this.#read();
      this.#schedule();
    }
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #schedule(): void {
    this.#timer = this.#clock.setTimeout(() => {
      this.#schedule();
      const version = this.#read();
      if (version === this.#version) return;
      this.#version = version;
      for (const listener of [...this.#listeners]) listener();
    }, LOOK_EVERY_MS);
  }

  /** Changes only with commits of other connections. */
  #read(): unknown {
    try {
      return (this.#dataVersion.get() as { readonly data_version: number }).data_version;
    } catch {
      return this.#version;
    }
  }
}

// Notices that the wall clock was set back: otherwise a lane that is ready would wait until the clock has caught up.

class ClockSteps {
  #latest: number;

  /** @param latest - the latest wall clock known to have been written by, epoch milliseconds */
  constructor(latest: number) {
    this.#latest = latest;
  }

  wentBack(now: number): boolean {
    return wentBack(now, this.#latest);
  }

  /** Makes ready lanes due again, in the transaction under way. Gaps, backoffs and leases wait on: `TOO_FAR_AHEAD_MS` bounds them. */
  makeReadyLanesDue(sql: Statements, now: number): void {
    if (this.wentBack(now)) sql.readyNow.run(now, now);
  }

  committed(now: number): void {
    this.#latest = this.wentBack(now) ? now : Math.max(this.#latest, now);
  }
}

/** The latest wall clock in the file: of its newest event, and of the processes that use it. */
function latestWrittenAt(db: SqliteDatabase): number {
  const row = db
    .prepare(
      `select max(coalesce((select accepted from oncehook_event order by id desc limit 1), 0),
        coalesce((select max(max(opened, coalesce(seen, 0))) from oncehook_instance), 0)) as at`,
    )
    .get() as { readonly at: number };
  return row.at;
}

// Keeps out of the inbox's queries what an application's `analyze` has found of its tables.

/**
 * Taken while the tables held next to nothing, statistics make SQLite scan them ever after, and the application may never
 * `analyze` again: without any the plans are right at every size. Those of its own tables stay.
 */
function forgetStatistics(db: SqliteDatabase): void {
  const tables = db.prepare("select name from sqlite_master where name in ('sqlite_stat1', 'sqlite_stat4')").all();
  let changes = 0;
  for (const { name } of tables as { name: string }[]) {
    changes += db.prepare(`delete from ${name} where tbl like 'oncehook\\_%' escape '\\'`).run().changes;
  }
  // They were read when the connection first looked into the file.
  if (changes > 0) db.exec("analyze sqlite_schema");
}
