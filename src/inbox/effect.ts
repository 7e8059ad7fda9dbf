/** What every store refuses of a function given to `ctx.commit`: mistakes that would break "exactly once" without a word. */
import { types } from "node:util";
import { SetupError } from "../errors.ts";
import { isPromise } from "../internal/type-guards.ts";
import type { Effect } from "./store.ts";

/** `during`: the transaction waits for a promise (Postgres). `never`: it ends when the effect returns (SQLite). */
export type Waits = "during" | "never";

/**
 * Refuses a function that cannot work, before it runs.
 * @throws SetupError `async_effect` for a generator function, and for an async function where the transaction does not wait
 */
export function refuseUnwaited(effect: Effect<never>, waits: Waits): void {
  // By tag: `instanceof` fails across realms (Jest), and `types.isAsyncFunction` fails on bound functions.
  const tag = Object.prototype.toString.call(effect);
  if (tag === "[object GeneratorFunction]" || tag === "[object AsyncGeneratorFunction]") throw generator();
  if (waits === "never" && tag === "[object AsyncFunction]") {
    throw refusal(`An effect of ctx.commit is an async function, so it was not run: ${NEVER_WAITS}`);
  }
}

/**
 * Refuses what an effect returned that nobody runs or waits for. The transaction has to be rolled back.
 * @param returned - what the effect returned; where the transaction waits, what that resolved with
 * @throws SetupError `async_effect`
 */
export function refuseUnrun(returned: unknown, waits: Waits): void {
  if (typeof returned !== "object" && typeof returned !== "function") return;
  if (returned === null) return;
  if (types.isPromise(returned)) {
    ignoreRejection(returned);
    throw refusal(`An effect of ctx.commit returned a promise: ${NEVER_WAITS}`);
  }
  // A query builder runs when its `then` is called, so it is not.
  if (isPromise(returned))
    throw refusal(`An effect of ctx.commit returned a query that was not run. ${HOW_TO_RUN.never}`);
  if (types.isGeneratorObject(returned)) throw generator();
  if (!Array.isArray(returned) || !returned.some(isPromise)) return;
  for (const one of returned) if (types.isPromise(one)) ignoreRejection(one);
  throw refusal(
    `An effect of ctx.commit returned an array of queries, which nobody runs or waits for. ${HOW_TO_RUN[waits]}`,
  );
}

/**
 * Refuses a function without a parameter: it does not use the connection it gets, so what it writes is most likely not in the
 * transaction of its event's completion. Who kept the connection from `onOpen` takes it once more.
 * @param orElse - what else the store allows, as a sentence
 * @throws SetupError `invalid_argument`
 */
export function refuseWithoutConnection(effect: Effect<never>, orElse = ""): void {
  if (effect.length > 0) return;
  const source = Function.prototype.toString.call(effect);
  // Rest parameters, defaults and `arguments` take it as well; of a bound function nothing can be seen.
  if (/\.\.\.|\barguments\b|\[native code\]/.test(source) || /^[^)]*=(?!>)/.test(source)) return;
  const message = `An effect of ctx.commit has no parameter. What it writes through another connection is not in the transaction of its event's completion: take the connection it gets, ctx.commit((tx) => …), and write with it.${orElse}`;
  throw new SetupError("invalid_argument", message);
}

const NEVER_WAITS =
  "SQLite's transaction ends when the effect returns. Await before ctx.commit, and write synchronously in it (with an ORM, end each query with .run(), .get() or .all()).";

const HOW_TO_RUN: Readonly<Record<Waits, string>> = {
  never:
    "Call its .run(), .get() or .all(), or have the ORM only make the SQL and run that with the connection, synchronously.",
  during: "Await each of them in the effect.",
};

function generator(): SetupError {
  return refusal("An effect of ctx.commit is a generator, which nobody runs: use a plain function.");
}

function refusal(message: string): SetupError {
  return new SetupError("async_effect", message);
}

/** Its outcome is not waited for, and must not become an unhandled rejection. */
function ignoreRejection(promise: Promise<unknown>): void {
  promise.then(undefined, () => {});
}
