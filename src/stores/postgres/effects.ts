/**
 * Completions with effects, each in a transaction of its own: what the handler writes and the end of its lease are one. They run
 * beside the turns, so that an effect that waits or hangs holds up neither deliveries nor other events (I9).
 */
import { endLease, heldEvent } from "../../inbox/lanes/settling.ts";
import type { LeaseRef, Settle, SettleResult, Turn } from "../../inbox/store.ts";
import { sleep } from "../../internal/clock.ts";
import type { PgClient } from "./driver.ts";
import { isOutage, isUnanswered, sqlState } from "./failures.ts";
import { lendConnection } from "./lending.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { type Session, withSession } from "./session.ts";
import { Slots } from "./slots.ts";
import type { Answered } from "./turn.ts";
import { openWorkspace } from "./workspace.ts";

type Completion = Extract<Settle<PgClient>, { kind: "complete" }>;

/** How long a turn waits for the effects that begin with it. Slower ones are told to a later turn, which waits for none of them. */
const PATIENCE_MS = 100;

const UNFINISHED: SettleResult = { status: "unfinished" };

const IS_HELD = `select 1 from {}.lane
  where id = $1::bigint and epoch = $2::int and leased = $3::bigint and holder = $4::int and status = 2`;
/** Null for a transaction that this server does not know, or has forgotten. */
const FATE = `select case when $1::text::xid8 < pg_snapshot_xmax(pg_current_snapshot()) then pg_xact_status($1::text::xid8) end as fate`;

/** An effect threw: its transaction is rolled back, and run again if the state says that another one was in its way. */
class EffectFailed extends Error {
  readonly code: string;

  constructor(cause: unknown) {
    super("An effect threw.", { cause });
    this.code = sqlState(cause);
  }
}

/** The lease passed to another worker while the effects ran, which are taken back. */
class Overtaken extends Error {}

/** One completion under way. */
interface Job {
  readonly ended: Promise<void>;
  /** Kept until a turn that tells it has passed: asked again after one that failed, it would look like lost. */
  result: SettleResult | null;
}

/** What is known of a try when it fails. */
interface Trial {
  readonly slot: number;
  session: Session | null;
  /** The number of the transaction, once there is nothing left to do but to commit it. */
  transaction: string | null;
}

export class EffectSettles {
  readonly #inbox: OpenInbox;
  readonly #slots: Slots;
  readonly #jobs = new Map<string, Job>();
  /** Transactions whose commit was sent and not answered. */
  readonly #uncertain = new Map<string, string>();

  constructor(inbox: OpenInbox) {
    this.#inbox = inbox;
    this.#slots = new Slots(inbox.access.pool.options?.max);
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

  async #waitFor(jobs: readonly Job[]): Promise<void> {
    if (jobs.length === 0) return;
    const ended = new AbortController();
    const all = Promise.all(jobs.map((job) => job.ended)).then(() => ended.abort());
    await Promise.race([all, sleep(this.#inbox.context.clock, PATIENCE_MS, ended.signal)]);
    ended.abort();
  }

  #begin(request: Completion): Job {
    const key = keyOf(request.lease);
    const settle = () => this.#slots.use((slot) => this.#settle(request, { slot, session: null, transaction: null }));
    const ended = this.#inbox
      .during(settle)
      .catch(() => UNFINISHED)
      .then((result) => {
        if (result.status === "unfinished") this.#jobs.delete(key);
        else job.result = result;
      });
    const job: Job = { ended, result: null };
    this.#jobs.set(key, job);
    return job;
  }

  async #settle(request: Completion, trial: Trial): Promise<SettleResult> {
    const key = keyOf(request.lease);
    try {
      const fate = await this.#fateOf(key);
      if (fate === "in progress") return UNFINISHED;
      const result: SettleResult = fate === "committed" ? { status: "settled" } : await this.#commit(request, trial);
      this.#uncertain.delete(key);
      return result;
    } catch (error) {
      if (trial.transaction !== null) this.#uncertain.set(key, trial.transaction);
      return this.#failed(error, trial);
    }
  }

  #commit(request: Completion, trial: Trial): Promise<SettleResult> {
    return this.#inbox.write((session) => {
      trial.session = session;
      trial.transaction = null;
      return complete(this.#inbox, request, trial);
    });
  }

  /** An outage is no failure of the handler's: the core asks again, and the effects run again. */
  #failed(error: unknown, { session }: Trial): SettleResult {
    if (error instanceof Overtaken) return { status: "lost" };
    const isEffects = error instanceof EffectFailed;
    if (isEffects && !isOutage(error.cause, session?.loss)) return { status: "effect_failed", error: error.cause };
    // That the server is away is told by the turn itself.
    if (!isUnanswered(error)) {
      const code = isEffects ? "effects_interrupted" : "effects_unfinished";
      this.#inbox.context.logger.warn(
        { code },
        "The effects of an event could not be committed; they are tried again.",
      );
    }
    return UNFINISHED;
  }

  /** What became of a commit that was not answered. */
  async #fateOf(key: string): Promise<string | null> {
    const transaction = this.#uncertain.get(key);
    if (transaction === undefined) return null;
    const rows = await withSession(this.#inbox.access, (session) =>
      session.rows<{ fate: string | null }>("fate", FATE, [transaction]),
    );
    return rows[0]?.fate ?? null;
  }
}

/**
 * Guard first: a lost lease runs no effect. But the lane is locked after the effects, so that nobody waits for them, and its lease is
 * looked at once more.
 */
async function complete(inbox: OpenInbox, request: Completion, trial: Trial): Promise<SettleResult> {
  const { session, slot } = trial;
  if (session === null) throw new RangeError("A completion has no connection.");
  const { lane, epoch, event } = request.lease;
  const held = await session.rows("is_held", IS_HELD, [lane, epoch, event, inbox.instance]);
  if (held.length === 0) return { status: "lost" };
  try {
    await lendConnection(session, request.effects, inbox.context.clock);
  } catch (cause) {
    throw new EffectFailed(cause);
  }
  const work = await openWorkspace(inbox, session, slot);
  await work.lock([lane], []);
  const leased = heldEvent(work.moment, work.byId.get(lane), request.lease);
  if (leased === null) throw new Overtaken();
  endLease(work.moment, leased, request);
  trial.transaction = await work.flush();
  return { status: "settled" };
}

function keyOf({ lane, epoch, event }: LeaseRef): string {
  return `${lane} ${epoch} ${event}`;
}
