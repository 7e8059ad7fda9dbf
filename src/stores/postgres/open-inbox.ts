/** An inbox that is open: its pool, and what stays the same while it is open. */
import { StoreError } from "../../errors.ts";
import type { InboxRules, OpenContext } from "../../inbox/store.ts";
import { type Clock, systemClock } from "../../internal/clock.ts";
import { ClockSteps, ClockWentBack, makeReadyLanesDue } from "./clock-steps.ts";
import type { PgPool } from "./driver.ts";
import { checkServer } from "./durability.ts";
import { asStoreError } from "./failures.ts";
import { enterInstance, removeInstances } from "./instances.ts";
import { LookFrom } from "./look-from.ts";
import { migrate } from "./migrate.ts";
import { isOutdated, NameBook, NamesMissing, type Naming } from "./names.ts";
import { LaneAppeared, makeLanes } from "./new-lanes.ts";
import { lookForPooler } from "./pooler.ts";
import { type Access, inTransaction, NOW, type Session, Statements, withSession } from "./session.ts";
import type { InboxSettings } from "./settings.ts";
import { Slots } from "./slots.ts";
import { Wake } from "./wake.ts";

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
