/** Functions passed to `ctx.commit` that every store refuses: mistakes that would silently break "exactly once". */
import { types } from "node:util";
import { SetupError } from "../errors.ts";
import { isPromise } from "../internal/options.ts";
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
 * Refuses a returned value that nothing would run or wait for. The transaction has to be rolled back.
 * @param returned - the effect's result; if the transaction waits, the value that it resolved with
 * @throws SetupError `async_effect`
 */
export function refuseUnrun(returned: unknown, waits: Waits): void {
  if (typeof returned !== "object" && typeof returned !== "function") return;
  if (returned === null) return;
  if (types.isPromise(returned)) {
    ignoreRejection(returned);
    throw refusal(`An effect of ctx.commit returned a promise: ${NEVER_WAITS}`);
  }
  // Not called: a query builder runs its query when `then` is called.
  if (isPromise(returned))
    throw refusal(`An effect of ctx.commit returned a query that was not run. ${HOW_TO_RUN.never}`);
  if (types.isGeneratorObject(returned)) throw generator();
  if (!Array.isArray(returned) || !returned.some(isPromise)) return;
  for (const one of returned) if (types.isPromise(one)) ignoreRejection(one);
  throw refusal(
    `An effect of ctx.commit returned an array of queries, which are not run or awaited. ${HOW_TO_RUN[waits]}`,
  );
}

/**
 * Refuses a function without a parameter: it does not use the connection that it receives, so its writes are most likely not in the
 * transaction that completes its event. Code that keeps a connection from `onOpen` has to take this one all the same.
 * @param orElse - what else the store allows, as a sentence
 * @throws SetupError `invalid_argument`
 */
export function refuseWithoutConnection(effect: Effect<never>, orElse = ""): void {
  if (effect.length > 0) return;
  const source = Function.prototype.toString.call(effect);
  // Rest parameters, defaults and `arguments` receive it too. The source of a bound function is not visible.
  if (/\.\.\.|\barguments\b|\[native code\]/.test(source) || /^[^)]*=(?!>)/.test(source)) return;
  const message = `An effect of ctx.commit has no parameter. Writes through another connection are not in the transaction that completes the event: take the connection that the effect receives, ctx.commit((tx) => …), and write with it.${orElse}`;
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
  return refusal("An effect of ctx.commit is a generator, which would not run: use a plain function.");
}

function refusal(message: string): SetupError {
  return new SetupError("async_effect", message);
}

/** It is not awaited, and must not become an unhandled rejection. */
function ignoreRejection(promise: Promise<unknown>): void {
  promise.then(undefined, () => {});
}
