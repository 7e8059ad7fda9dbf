/**
 * Completions with effects, each in a transaction of its own: what the handler writes and the end of its lease are one. They run
 * beside the turns, so that an effect that waits or hangs holds up neither deliveries nor other events (I9).
 */
import { setMaxListeners } from "node:events";
import { endLease, heldEvent } from "../../inbox/lane.ts";
import type { LeaseRef, Settle, SettleResult, Turn } from "../../inbox/store.ts";
import { sleep } from "../../internal/clock.ts";
import { STATUS } from "../database.ts";
import type { Answered } from "./batch.ts";
import { EffectFailed, isTooSlow, lendConnection } from "./effect-connection.ts";
import { isCutOff, isUnanswered, refusesWrites, sqlState } from "./failures.ts";
import { Slots } from "./instances.ts";
import type { OpenInbox } from "./open.ts";
import { CONNECT_MS, type PgClient, type Session, withSession } from "./session.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

type Completion = Extract<Settle<PgClient>, { kind: "complete" }>;

/** How long a turn waits for the effects that begin with it. Slower ones are told to a later turn, which waits for none of them. */
const PATIENCE_MS = 100;

/** An outage may pass at once; from the second that interrupts the same effects on, they wait, each time twice as long. */
const PAUSE_MS = { first: 50, longest: 1_000 } as const;

/** So often the same effects are interrupted by what may be their own doing; then it is a failure of theirs (I7, I9). */
const MOST_SUSPICIONS = 5;

const UNFINISHED: SettleResult = { status: "unfinished" };

const IS_HELD = `select 1 from {}.lane
  where id = $1::bigint and epoch = $2::int and leased = $3::bigint and holder = $4::int and status = ${STATUS.leased}`;
const FATE = "select pg_xact_status($1::text::xid8) as fate";
const STILL_THERE = { text: "select 1", query_timeout: CONNECT_MS };
/** The transaction's number lies in the future: this is another server now, which has never heard of it. */
const UNKNOWN = "22023";

/** The lease passed to another worker while the effects ran, which are taken back. */
class Overtaken extends Error {}

/** One completion under way. */
interface Job {
  readonly ended: Promise<void>;
  /** Kept until a turn that tells it has passed: asked again after one that failed, it would look like lost. */
  result: SettleResult | null;
}

/** What is known of a try. */
interface Trial {
  readonly slot: number;
  session: Session | null;
  /** Whether its effects began: what fails before is no doing of theirs. */
  hasBegun: boolean;
  /** The number of the transaction, once there is nothing left to do but to commit it. */
  transaction: string | null;
}

/** What tries have left that an outage interrupted. */
interface Interrupted {
  readonly times: number;
  /** How many of them may have been the effects' own doing, as a statement that ends its connection each time. */
  readonly suspicions: number;
  /** The transaction whose commit was sent and not answered. */
  readonly transaction: string | null;
}

export class EffectSettles {
  readonly #inbox: OpenInbox;
  readonly #slots: Slots;
  readonly #jobs = new Map<string, Job>();
  readonly #interrupted = new Map<string, Interrupted>();
  readonly #closing = new AbortController();

  constructor(inbox: OpenInbox) {
    this.#inbox = inbox;
    this.#slots = Slots.ofCompletions(inbox.access.pool.options?.max);
    // Each effect that waits out an outage listens to it.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Settles what has effects. What takes long is answered as unfinished, and goes on meanwhile. */
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

  /** The turn has passed: nobody will ask again for what was told. */
  passed(turn: Turn<PgClient>, answered: Answered): void {
    for (const [index, { status }] of answered) {
      const lease = turn.settles[index]?.lease;
      if (lease !== undefined && status !== "unfinished") this.#jobs.delete(keyOf(lease));
    }
  }

  /** What waits to begin is unfinished at once, or the store's end would wait for one after the other. */
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
      // Guard first: a lost lease runs no effect, and a lease that is held has not been completed, whatever is said of its commit.
      const isHeld = await holds(this.#inbox, session, request.lease);
      if (!isHeld) return { status: fate === "committed" ? "settled" : "lost" };
      trial.hasBegun = true;
      await lendConnection(session, request.effects, this.#inbox.context.clock);
      const { result, transaction } = await complete(await openWorkspace(this.#inbox, session, trial.slot), request);
      trial.transaction = transaction;
      return result;
    });
  }

  /** An outage is no failure of the handler's: the core asks again, and the effects run again. */
  async #failed(error: unknown, { session }: Trial): Promise<SettleResult> {
    if (error instanceof Overtaken) return { status: "lost" };
    const isOfEffects = error instanceof EffectFailed;
    const isOutage = isOfEffects && (error.isRefused || isCutOff(error.cause, session?.loss));
    if (isOfEffects && !isOutage && (await this.#isBlamed(error.cause))) return blame(error);
    // That the server is away is told by the turn itself.
    if (isOfEffects || !isUnanswered(error)) {
      const state = sqlState(isOfEffects ? error.cause : error);
      const fields = { code: "effects_interrupted", sqlState: state === "" ? null : state };
      this.#inbox.context.logger.warn(fields, "The effects of an event could not be committed; they run again.");
    }
    return UNFINISHED;
  }

  /** Effects take long as well when the server is gone without a word: then nobody else is answered either. */
  async #isBlamed(error: unknown): Promise<boolean> {
    if (!isTooSlow(error)) return true;
    const asked = withSession(this.#inbox.access, ({ client }) => client.query(STILL_THERE));
    return asked.then(
      () => true,
      () => false,
    );
  }

  /** What became of a commit that was not answered. */
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

/** A server that takes no writes, or does not answer a commit, is in the way of all. */
function isSuspect(error: unknown, { hasBegun, transaction }: Trial): boolean {
  if (!hasBegun) return false;
  if (error instanceof EffectFailed) return !error.isRefused;
  return !refusesWrites(error) && !(transaction !== null && isUnanswered(error));
}

async function holds({ instance }: OpenInbox, session: Session, { lane, epoch, event }: LeaseRef): Promise<boolean> {
  const rows = await session.rows("is_held", IS_HELD, [lane, epoch, event, instance]);
  return rows.length > 0;
}

/** The lane is locked after the effects, so that nobody waits for them; so its lease is looked at once more. @throws Overtaken */
async function complete(
  work: Workspace,
  request: Completion,
): Promise<{ readonly result: SettleResult; readonly transaction: string | null }> {
  const { lane } = request.lease;
  await work.lock([lane], []);
  const event = heldEvent(work.moment, work.byId.get(lane), request.lease);
  if (event === null) throw new Overtaken();
  const result = endLease(work.moment, event, request);
  return { result, transaction: await work.flush() };
}

function keyOf({ lane, epoch, event }: LeaseRef): string {
  return `${lane} ${epoch} ${event}`;
}
