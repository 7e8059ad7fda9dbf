/** Lends the connection of a completion to the handler's effects, and sees that its transaction comes back as it was. */
import { SetupError } from "../../errors.ts";
import type { Effect } from "../../inbox/store.ts";
import type { PgClient } from "./driver.ts";
import { sqlState } from "./failures.ts";

/** The savepoint is gone when an effect has ended the transaction, and cannot be released when a statement in it failed. */
const LEND = "savepoint oncehook_effects; set local enable_seqscan to default";
const TAKE_BACK = "release savepoint oncehook_effects; set local enable_seqscan = off";

const FAILED_TRANSACTION = "25P02";
/** No such savepoint, or no transaction at all. */
const ENDED_TRANSACTION = ["3B001", "25P01"];

/** Runs `effects` in turn. Rejects with what one of them threw, or with what one has done to the transaction. */
export async function lendConnection(client: PgClient, effects: readonly Effect<PgClient>[]): Promise<void> {
  const loan = { isOver: false };
  const lent = lend(client, loan);
  await client.query(LEND);
  try {
    for (const effect of effects) await effect(lent);
  } finally {
    loan.isOver = true;
  }
  try {
    await client.query(TAKE_BACK);
  } catch (cause) {
    throw misuse(cause) ?? cause;
  }
}

/** Without `release`, and of no use after the loan: a query that nobody waited for would run in somebody else's transaction. */
function lend(client: PgClient, loan: { readonly isOver: boolean }): PgClient {
  return new Proxy(client, {
    get(target, key) {
      if (key === "release") return refuseRelease;
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
    "The connection that ctx.commit gives belongs to the inbox: do not release it.",
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
