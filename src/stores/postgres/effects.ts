/**
 * Completions with effects, each in a transaction of its own, in which the handler's writes and the end of its lease commit together. They
 * run in parallel to the batches, so that an effect that waits or hangs delays neither deliveries nor other events (I9).
 */
import { setMaxListeners } from "node:events";
import type { LeaseRef, Settle, SettleResult, Turn } from "../../inbox/store.ts";
import { sleep } from "../../internal/clock.ts";
import { STATUS } from "../database.ts";
import { type Answered, settleRows } from "./batch.ts";
import { EffectFailed, isTooSlow, lendConnection } from "./effect-connection.ts";
import { isCutOff, isUnanswered, refusesWrites, sqlState } from "./failures.ts";
import { Slots } from "./instances.ts";
import type { PgInbox } from "./open.ts";
import { CONNECT_MS, type PgClient, type PgSession, withSession } from "./session.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

type Completion = Extract<Settle<PgClient>, { kind: "complete" }>;

/** How long a batch waits for the effects that start with it. A later batch, which does not wait for them, reports slower ones. */
const PATIENCE_MS = 100;

/** The first retry after an outage is immediate. From the second interruption of the same effects on they wait, each time twice as long. */
const PAUSE_MS = { first: 50, longest: 1_000 } as const;

/** How often the same effects may be interrupted by something they may have caused; then it counts as their failure (I7, I9). */
const MOST_SUSPICIONS = 5;

const UNFINISHED: SettleResult = { status: "unfinished" };

const IS_HELD = `select 1 from {}.lane
  where id = $1::bigint and epoch = $2::int and leased = $3::bigint and holder = $4::int and status = ${STATUS.leased}`;
const FATE = "select pg_xact_status($1::text::xid8) as fate";
const STILL_THERE = { text: "select 1", query_timeout: CONNECT_MS };
/** The SQLSTATE for a transaction number in the future: this is a different server, which does not know the transaction. */
const UNKNOWN = "22023";

/** Another worker took over the lease while the effects ran; they are rolled back. */
class Overtaken extends Error {}

/** A completion in progress. */
interface Job {
  readonly ended: Promise<void>;
  /** Kept until a batch has reported it: after a failed batch the request is repeated, and would otherwise look like a lost lease. */
  result: SettleResult | null;
}

/** One attempt to run the effects and commit. */
interface Trial {
  readonly slot: number;
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
}

export class EffectSettles {
  readonly #inbox: PgInbox;
  readonly #slots: Slots;
  readonly #jobs = new Map<string, Job>();
  readonly #interrupted = new Map<string, Interrupted>();
  readonly #closing = new AbortController();

  constructor(inbox: PgInbox) {
    this.#inbox = inbox;
    this.#slots = Slots.ofCompletions(inbox.access.pool.options?.max);
    // Each effect that waits for the end of an outage adds a listener.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Runs the completions with effects. A slow one is answered as unfinished and continues. */
  async run(turn: Turn<PgClient>): Promise<Answered> {
    const asked = turn.settles.flatMap((request, index) =>
      request.kind === "complete" && request.effects.length > 0 ? [{ request, index }] : [],
    );
    const begun = asked.flatMap(({ request }) => (this.#jobs.has(keyOf(request.lease)) ? [] : [this.#begin(request)]));
    await this.#waitFor(begun);
    return new Map(
      asked.map(({ request, index }) => [index, this.#jobs.get(keyOf(request.lease))?.result ?? UNFINISHED]),
    );
  }

  /** Forgets the results that a successful batch has reported. */
  passed(turn: Turn<PgClient>, answered: Answered): void {
    for (const [index, { status }] of answered) {
      const lease = turn.settles[index]?.lease;
      if (lease !== undefined && status !== "unfinished") this.#jobs.delete(keyOf(lease));
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
    const key = keyOf(request.lease);
    const ended = this.#inbox
      .during(async () => {
        await this.#pause(key);
        const result = await this.#slots.use((slot) =>
          this.#settle(request, { slot, session: null, hasBegun: false, transaction: null }),
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

  async #pause(key: string): Promise<void> {
    const times = this.#interrupted.get(key)?.times ?? 0;
    if (times < 2) return;
    const pauseMs = Math.min(PAUSE_MS.first * 2 ** (times - 2), PAUSE_MS.longest);
    await sleep(this.#inbox.context.clock, pauseMs, this.#closing.signal);
  }

  async #settle(request: Completion, trial: Trial): Promise<SettleResult> {
    const key = keyOf(request.lease);
    const before = this.#interrupted.get(key) ?? { times: 0, suspicions: 0, transaction: null };
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
      this.#interrupted.set(key, { times: before.times + 1, suspicions, transaction });
    }
    return result;
  }

  async #try(request: Completion, trial: Trial): Promise<SettleResult> {
    const fate = await this.#fateOf(keyOf(request.lease));
    if (fate === "in progress") return UNFINISHED;
    return this.#inbox.write(async (session) => {
      trial.session = session;
      trial.transaction = null;
      // Guard first: a lost lease runs no effect, and a lease that is still held was not completed, whatever became of its commit.
      const isHeld = await holds(this.#inbox, session, request.lease);
      if (!isHeld) return { status: fate === "committed" ? "settled" : "lost" };
      trial.hasBegun = true;
      await lendConnection(session, request.effects, this.#inbox.context.clock);
      const { result, transaction } = await complete(await openWorkspace(this.#inbox, session, trial.slot), request);
      trial.transaction = transaction;
      return result;
    });
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

  /** The outcome of a commit that was not answered. */
  async #fateOf(key: string): Promise<string | null> {
    const transaction = this.#interrupted.get(key)?.transaction ?? null;
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

async function holds({ instance }: PgInbox, session: PgSession, { lane, epoch, event }: LeaseRef): Promise<boolean> {
  const rows = await session.rows("is_held", IS_HELD, [lane, epoch, event, instance]);
  return rows.length > 0;
}

/** Locks the lane after the effects, so that no transaction waits for them, and checks the lease once more. @throws Overtaken */
async function complete(
  work: Workspace,
  request: Completion,
): Promise<{ readonly result: SettleResult; readonly transaction: string | null }> {
  await work.lock([request.lease.lane], []);
  const result = settleRows(work, request);
  if (result.status === "lost") throw new Overtaken();
  return { result, transaction: await work.flush() };
}

function keyOf({ lane, epoch, event }: LeaseRef): string {
  return `${lane} ${epoch} ${event}`;
}
