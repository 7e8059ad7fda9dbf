/** Lends the connection of a completion to the handler's effects for a bounded time, and sees that its transaction comes back as it was. */
import { OncehookError, SetupError } from "../../errors.ts";
import { refuseUnrun } from "../../inbox/effect.ts";
import type { Effect } from "../../inbox/store.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import type { PgClient } from "./driver.ts";
import { isContention, isGivenUp, isUnanswered, refusesWrites, sqlState } from "./failures.ts";
import { ANSWER_MS, CONNECT_MS, LIMIT_MS, limit, type Session } from "./session.ts";

/** What an effect may set for its transaction, and the completion needs as it was: a savepoint that is released keeps such settings. */
const KEPT = `unnest(array['session_authorization', 'role', 'search_path', 'lock_timeout', 'statement_timeout',
  'enable_seqscan', 'plan_cache_mode', 'jit', 'synchronous_commit']) as kept (setting)`;
const KEEP = `select set_config('oncehook.' || setting, current_setting(setting), true) from ${KEPT}`;
/** Empty after a `reset all` of an effect. */
const RESTORE = `select set_config(setting, current_setting('oncehook.' || setting), true) from ${KEPT}
  where current_setting(setting) <> nullif(current_setting('oncehook.' || setting), '')`;

/** The savepoint is gone when an effect has ended the transaction, and cannot be released when a statement in it failed. */
const LEND = `savepoint oncehook_effects; ${KEEP}; set local enable_seqscan to default; set local plan_cache_mode to default;
  set local jit to default; ${limit("statement_timeout")}`;
/** Deferred constraints are looked at now: in the commit, their breach would look like a failure of the inbox. */
const TAKE_BACK = `set constraints all immediate; release savepoint oncehook_effects; ${RESTORE}`;
/** Needs a new page and file, which a full disk does not give. It goes with its transaction. */
const PROBE = "rollback to savepoint oncehook_effects; create temporary table oncehook_probe as select 1";

const FAILED_TRANSACTION = "25P02";
/** No such savepoint, or no transaction at all. */
const ENDED_TRANSACTION = ["3B001", "25P01"];

/** An effect threw, took too long, or did what it must not. The transaction is run again if the state says that another one was in its way. */
export class EffectFailed extends Error {
  /** Empty where no other transaction was in its way: any other code of the effect's could be taken for the inbox's own. */
  readonly code: string;
  /** The inbox's own server takes no writes, whoever asks. */
  readonly isRefused: boolean;

  constructor(cause: unknown, isRefused: boolean) {
    super("An effect threw.", { cause });
    this.code = isContention(cause) ? sqlState(cause) : "";
    this.isRefused = isRefused;
  }
}

/** Runs `effects` in turn. @throws EffectFailed */
export async function lendConnection(
  session: Session,
  effects: readonly Effect<PgClient>[],
  clock: Clock,
): Promise<void> {
  const { client } = session;
  const loan = { isOver: false };
  const lent = lend(client, loan);
  await client.query({ text: LEND, query_timeout: ANSWER_MS });
  try {
    await inTime(clock, async () => {
      for (const effect of effects) {
        if (loan.isOver) return;
        refuseUnrun(await effect(lent), "during");
      }
      loan.isOver = true;
      await takeBack(client);
    });
  } catch (cause) {
    loan.isOver = true;
    const error = isGivenUp(cause) ? tooSlow(cause) : cause;
    // Whatever still runs on it must not go on, nor be waited for.
    if (isTooSlow(error)) session.discard(error);
    throw new EffectFailed(error, refusesWrites(error) && (await isRefused(session)));
  }
}

/** The error may be of another database that the application writes to: whether this one takes no writes is asked of itself. */
async function isRefused({ client, discard }: Session): Promise<boolean> {
  try {
    await client.query({ text: PROBE, query_timeout: CONNECT_MS });
    return false;
  } catch (error) {
    if (isUnanswered(error)) discard(error);
    return isUnanswered(error) || refusesWrites(error);
  }
}

async function takeBack(client: PgClient): Promise<void> {
  try {
    await client.query(TAKE_BACK);
  } catch (cause) {
    throw misuse(cause) ?? cause;
  }
}

async function inTime(clock: Clock, work: () => Promise<void>): Promise<void> {
  const ended = new AbortController();
  const late = sleep(clock, LIMIT_MS, ended.signal).then(() => {
    if (!ended.signal.aborted) throw tooSlow();
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    ended.abort();
  }
}

function tooSlow(cause?: unknown): OncehookError {
  const message = `The effects of an event took longer than ${LIMIT_MS} ms, or than pg waits for an answer: do what takes long before ctx.commit.`;
  return new OncehookError("handler_timeout", message, { cause });
}

export function isTooSlow(error: unknown): error is OncehookError {
  return error instanceof OncehookError && error.code === "handler_timeout";
}

/** Without its ends, and of no use after the loan: a query that nobody waited for would run in somebody else's transaction. */
function lend(client: PgClient, loan: { readonly isOver: boolean }): PgClient {
  return new Proxy(client, {
    get(target, key) {
      if (key === "release" || key === "end") return refuseRelease;
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...values: readonly unknown[]) => {
        if (loan.isOver) throw tooLate();
        return Reflect.apply(value, target, values);
      };
    },
  });
}

function refuseRelease(): never {
  throw new SetupError(
    "invalid_argument",
    "The connection that ctx.commit gives belongs to the inbox: do not release it, nor end it.",
  );
}

function tooLate(): SetupError {
  const message =
    "The effect has ended, and its connection with it: await each query inside of the function that ctx.commit got.";
  return new SetupError("invalid_argument", message);
}

function misuse(cause: unknown): SetupError | null {
  const state = sqlState(cause);
  if (state === FAILED_TRANSACTION) {
    const message =
      "A statement of an effect failed and its error was caught, which leaves the transaction unusable: let it be thrown, or set a savepoint before it.";
    return new SetupError("invalid_argument", message, { cause });
  }
  if (!ENDED_TRANSACTION.includes(state)) return null;
  const message =
    "An effect ended the transaction that it shares with its event's completion: leave commit, rollback and begin to the inbox.";
  return new SetupError("invalid_argument", message, { cause });
}
