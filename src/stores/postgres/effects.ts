/**
 * Completions with effects, each in a transaction of its own, in which the handler's writes and the end of its lease commit together. They
 * run in parallel to the batches, so that an effect that waits or hangs delays neither deliveries nor other events (I9).
 */
import { setMaxListeners } from "node:events";
import type { LeaseRef, SettleResult, Turn } from "../../inbox/store.ts";
import { sleep } from "../../internal/clock.ts";
import { STATE } from "../database.ts";
import { type Answered, settleRows } from "./batch.ts";
import { DeclaredWrites, isDeclared } from "./declared-effects.ts";
import {
  CHECK,
  checkOpen,
  EffectFailed,
  type EffectOpening,
  failureAfter,
  isTooSlow,
  opening,
  runEffects,
  takeBack,
} from "./effect-connection.ts";
import { type Completion, Executables, endOf, isCommon } from "./end-lease.ts";
import { isCutOff, isUnanswered, refusesWrites, sqlState } from "./failures.ts";
import { Slots } from "./instances.ts";
import type { PgInbox } from "./open.ts";
import { CONNECT_MS, type PgClient, type PgSession, withSession } from "./session.ts";
import { openWorkspace } from "./workspace.ts";

/** How long a batch waits for the effects that start with it. A later batch, which does not wait for them, reports slower ones. */
const PATIENCE_MS = 100;

/** The first retry after an outage is immediate. From the second interruption of the same effects on they wait, each time twice as long. */
const PAUSE_MS = { first: 50, longest: 1_000 } as const;

/** How often the same effects may be interrupted by something they may have caused; then it counts as their failure (I7, I9). */
const MOST_SUSPICIONS = 5;

const UNFINISHED: SettleResult = { status: "unfinished" };

const IS_DONE = `select 1 from {}.event e join {}.lane l on l.id = e.lane
  where l.id = $1::bigint and l.token = $2::bigint and e.id = $3::bigint and e.state = ${STATE.done}`;
const FATE = "select pg_xact_status($1::text::xid8) as fate";
const STILL_THERE = { text: "select 1", query_timeout: CONNECT_MS };
/** The SQLSTATE for a transaction number in the future: this is a different server, which does not know the transaction. */
const UNKNOWN = "22023";

/** Another worker took over the lease while the effects ran; they are rolled back. */
class Overtaken extends Error {}

/** The common end failed, for whatever reason: the effects run again, and the rules decide. */
class Undecided extends Error {}

/** A completion in progress. */
interface Job {
  readonly ended: Promise<void>;
  /** Kept until a batch has reported it: after a failed batch the request is repeated, and would otherwise look like a lost lease. */
  result: SettleResult | null;
}

/** One attempt to run the effects and commit. */
interface Trial {
  readonly slot: number;
  /** The common end failed: the rules decide. */
  byRules: boolean;
  session: PgSession | null;
  /** Whether the effects started: they cannot have caused an earlier failure. */
  hasBegun: boolean;
  /** The number of the transaction, once only its commit is left. */
  transaction: string | null;
}

/** What is known about earlier attempts that an outage interrupted. */
interface Interrupted {
  readonly times: number;
  /** How many of them the effects may have caused, for instance by a statement that ends its connection each time. */
  readonly suspicions: number;
  /** The transaction whose commit was sent but not answered. */
  readonly transaction: string | null;
  /** Its transaction is not known, but may have been committed. */
  readonly mayBeDone: boolean;
}

const NEVER: Interrupted = { times: 0, suspicions: 0, transaction: null, mayBeDone: false };

export class EffectSettles {
  readonly #inbox: PgInbox;
  readonly #slots: Slots;
  readonly #executables: Executables;
  readonly #writes: DeclaredWrites;
  /** By the token of the lease, as below. */
  readonly #jobs = new Map<number, Job>();
  readonly #interrupted = new Map<number, Interrupted>();
  readonly #closing = new AbortController();

  constructor(inbox: PgInbox) {
    this.#inbox = inbox;
    this.#slots = Slots.ofCompletions(inbox.access.pool.options?.max);
    this.#executables = new Executables(inbox.access);
    this.#writes = new DeclaredWrites(inbox, this.#slots, this.#executables);
    // Each effect that waits for the end of an outage adds a listener.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Runs the completions with effects. A slow one is answered as unfinished and continues. */
  async run(turn: Turn<PgClient>): Promise<Answered> {
    const asked = turn.settles.flatMap((request, index) =>
      request.kind === "complete" && request.effects.length > 0 ? [{ request, index }] : [],
    );
    const begun = asked.flatMap(({ request }) => (this.#jobs.has(request.lease.token) ? [] : [this.#begin(request)]));
    await this.#waitFor(begun);
    return new Map(
      asked.map(({ request, index }) => [index, this.#jobs.get(request.lease.token)?.result ?? UNFINISHED]),
    );
  }

  /** Forgets the results that a successful batch has reported. */
  passed(turn: Turn<PgClient>, answered: Answered): void {
    for (const [index, { status }] of answered) {
      const lease = turn.settles[index]?.lease;
      if (lease !== undefined && status !== "unfinished") this.#jobs.delete(lease.token);
    }
  }

  /** Completions that have not started are unfinished at once; otherwise closing the store would wait for one after the other. */
  close(): void {
    this.#closing.abort();
    this.#slots.close();
  }

  async #waitFor(jobs: readonly Job[]): Promise<void> {
    if (jobs.length === 0) return;
    const ended = new AbortController();
    const all = Promise.all(jobs.map((job) => job.ended)).then(() => ended.abort());
    await Promise.race([all, sleep(this.#inbox.context.clock, PATIENCE_MS, ended.signal)]);
    ended.abort();
  }

  #begin(request: Completion): Job {
    const key = request.lease.token;
    const ended = this.#inbox
      .during(async () => {
        if (!this.#interrupted.has(key) && isDeclared(request)) {
          const end = await this.#writes.settle(request);
          if (typeof end === "object") return end;
          if (end === "unanswered") this.#interrupted.set(key, { ...NEVER, mayBeDone: true });
        }
        await this.#pause(key);
        const result = await this.#slots.use((slot) =>
          this.#settle(request, { slot, byRules: false, session: null, hasBegun: false, transaction: null }),
        );
        return result ?? UNFINISHED;
      })
      .catch(() => UNFINISHED)
      .then((result) => {
        if (result.status === "unfinished") this.#jobs.delete(key);
        else job.result = result;
      });
    const job: Job = { ended, result: null };
    this.#jobs.set(key, job);
    return job;
  }

  async #pause(token: number): Promise<void> {
    const times = this.#interrupted.get(token)?.times ?? 0;
    if (times < 2) return;
    const pauseMs = Math.min(PAUSE_MS.first * 2 ** (times - 2), PAUSE_MS.longest);
    await sleep(this.#inbox.context.clock, pauseMs, this.#closing.signal);
  }

  async #settle(request: Completion, trial: Trial): Promise<SettleResult> {
    const key = request.lease.token;
    const before = this.#interrupted.get(key) ?? NEVER;
    let { suspicions } = before;
    const result = await this.#try(request, trial).catch(async (error: unknown) => {
      const failed = await this.#failed(error, trial);
      if (failed.status !== "unfinished" || !isSuspect(error, trial)) return failed;
      suspicions++;
      return suspicions < MOST_SUSPICIONS ? failed : blame(error);
    });
    if (result.status !== "unfinished") this.#interrupted.delete(key);
    else {
      const transaction = trial.transaction ?? before.transaction;
      this.#interrupted.set(key, { ...before, times: before.times + 1, suspicions, transaction });
    }
    return result;
  }

  async #try(request: Completion, trial: Trial): Promise<SettleResult> {
    const key = request.lease.token;
    const fate = await this.#fateOf(key);
    if (fate === "in progress") return UNFINISHED;
    const inbox = this.#inbox;
    // After an interruption the rules decide: they check constraints before the commit, so that a trigger that breaks the connection is noticed.
    const byRules = trial.byRules || !isCommon(request) || !this.#executables.areKept || this.#interrupted.has(key);
    const run = async (session: PgSession): Promise<SettleResult> => {
      trial.session = session;
      trial.transaction = null;
      const opened = (await session.opening) as EffectOpening;
      // A lease that is still held was not completed, whatever became of its commit.
      if (!opened.held) {
        const isDone = fate === "committed" || (await this.#isDone(session, request.lease));
        return { status: isDone ? "settled" : "lost" };
      }
      trial.hasBegun = true;
      await runEffects(session, request.effects, inbox.context.clock);
      const ended = byRules
        ? this.#endByRules(session, request, opened, trial)
        : this.#end(session, request, opened, trial);
      return ended.catch(async (error: unknown) => Promise.reject(await failureAfter(session, error)));
    };
    try {
      return await inbox.write(run, async (client) => {
        if (!byRules) await this.#executables.prepareOurs(client);
        return opening(inbox, request.lease);
      });
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      trial.byRules = true;
      return this.#try(request, trial);
    }
  }

  /** One message. No transaction waits for the effects, because the lane is locked after them. @throws Undecided if nothing was committed */
  async #end(session: PgSession, { lease }: Completion, opened: EffectOpening, trial: Trial): Promise<SettleResult> {
    const { client } = session;
    const inbox = this.#inbox;
    const since = inbox.latestWrite;
    const restore = this.#executables.execute("restore", opened.kept);
    const end = this.#executables.endLease(lease, inbox.holder(trial.slot), opened.transaction);
    trial.transaction = opened.transaction;
    const results = await session.commitBy(`${CHECK}; ${restore}; ${end}; commit`).catch(async (error: unknown) => {
      if (isUnanswered(error) || session.loss !== undefined) throw error;
      this.#executables.failed(client, error);
      await checkOpen(session);
      throw new Undecided();
    });
    await inbox.endedLease(endOf(results), since);
    return { status: "settled" };
  }

  /** Locks the lane after the effects too, and checks the lease once more. @throws Overtaken */
  async #endByRules(
    session: PgSession,
    request: Completion,
    opened: EffectOpening,
    trial: Trial,
  ): Promise<SettleResult> {
    await takeBack(session, opened);
    const work = await openWorkspace(this.#inbox, session, trial.slot);
    await work.lock([request.lease.lane], []);
    const result = settleRows(work, request);
    if (result.status === "lost") throw new Overtaken();
    await work.flush();
    trial.transaction = opened.transaction;
    return result;
  }

  /** An outage is not the handler's failure: the core repeats the request, and the effects run again. */
  async #failed(error: unknown, { session }: Trial): Promise<SettleResult> {
    if (error instanceof Overtaken) return { status: "lost" };
    const isOfEffects = error instanceof EffectFailed;
    const isOutage = isOfEffects && (error.isRefused || isCutOff(error.cause, session?.loss));
    if (isOfEffects && !isOutage && (await this.#areToBlame(error.cause))) return blame(error);
    // The batch itself reports a server that cannot be reached.
    if (isOfEffects || !isUnanswered(error)) {
      const state = sqlState(isOfEffects ? error.cause : error);
      const fields = { code: "effects_interrupted", sqlState: state === "" ? null : state };
      this.#inbox.context.logger.warn(fields, "The effects of an event could not be committed; they run again.");
    }
    return UNFINISHED;
  }

  /** Effects also take long when the server has disappeared without closing the connection: then a new query fails too. */
  async #areToBlame(error: unknown): Promise<boolean> {
    if (!isTooSlow(error)) return true;
    const asked = withSession(this.#inbox.access, ({ client }) => client.query(STILL_THERE));
    return asked.then(
      () => true,
      () => false,
    );
  }

  /** Whether an unanswered commit happened: no other claim came after this lease, and its event is done. */
  async #isDone(session: PgSession, lease: LeaseRef): Promise<boolean> {
    if (this.#interrupted.get(lease.token)?.mayBeDone !== true) return false;
    const rows = await session.rows("is_done", IS_DONE, [lease.lane, lease.token, lease.event]);
    return rows.length > 0;
  }

  /** The outcome of a commit that was not answered. */
  async #fateOf(token: number): Promise<string | null> {
    const transaction = this.#interrupted.get(token)?.transaction ?? null;
    if (transaction === null) return null;
    try {
      const [row] = await withSession(this.#inbox.access, ({ rows }) =>
        rows<{ fate: string | null }>("fate", FATE, [transaction]),
      );
      return row?.fate ?? null;
    } catch (error) {
      if (sqlState(error) === UNKNOWN) return null;
      throw error;
    }
  }
}

function blame(error: unknown): SettleResult {
  return { status: "effect_failed", error: error instanceof EffectFailed ? error.cause : error };
}

/** Whether the effects may have caused the failure: not if the server accepts no writes or does not answer a commit. */
function isSuspect(error: unknown, { hasBegun, transaction }: Trial): boolean {
  if (!hasBegun) return false;
  if (error instanceof EffectFailed) return !error.isRefused;
  return !refusesWrites(error) && !(transaction !== null && isUnanswered(error));
}
