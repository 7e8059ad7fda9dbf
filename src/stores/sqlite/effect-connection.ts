/** Lends a connection to functions of the application: it works while one of them runs, and not after. */
import { AsyncLocalStorage } from "node:async_hooks";
import { SetupError } from "../../errors.ts";
import type { SqliteDatabase, SqliteStatement } from "../../internal/sqlite-driver.ts";

export interface Lending {
  /** What the application's functions get. */
  readonly connection: SqliteDatabase;
  /** Runs a synchronous `operation`, in which the connection works. Only `onOpen` may begin and end transactions. */
  during<T>(operation: () => T, borrower?: Borrower): T;
}

type Borrower = "effect" | "onOpen";

type Method = (...args: unknown[]) => unknown;

/** `iterate` is better-sqlite3's. */
type Statement = SqliteStatement & { iterate?: (...params: unknown[]) => Iterator<unknown> };

/**
 * Lends the inbox's own connection. An async function may go on after its first `await`, when its transaction was rolled back;
 * what it writes then would stay. Statements made through the loan work in a later one too: they may be kept.
 */
export function lend(db: SqliteDatabase): Lending {
  let lentTo: Borrower | null = null;
  const check = (statement?: Statement) => {
    if (lentTo === null) throw isOver();
    if (lentTo === "effect") refuseStatement(statement);
  };
  const guardStatement = statementGuard(check);
  const guards = new Map<PropertyKey, Method>(OWNERS.map((method) => [method, refuseOwners]));
  // better-sqlite3 tells the object that a statement was prepared on, as `database`: with the loan as `this` that is the loan.
  const tellsDatabase = "database" in db.prepare("select 1");
  const connection = new Proxy(db, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function" || key === "constructor") return value;
      const known = guards.get(key);
      if (known !== undefined) return known;
      const guard = guarded(target, key, value as Method);
      guards.set(key, guard);
      return guard;
    },
  });
  const guarded = (target: SqliteDatabase, key: PropertyKey, method: Method): Method => {
    const isTold = tellsDatabase && (key === "prepare" || key === "transaction");
    return (...args) => {
      check();
      const refusal = refusalOf(key, args[0]);
      if (lentTo === "effect" && refusal !== null) throw refusal;
      // A transaction function that is kept calls what it got, and so is of no use later either.
      const given = key === "transaction" ? args.map((value) => whileLent(value, check)) : args;
      const answer = Reflect.apply(method, isTold ? connection : target, given);
      if (key === "prepare") guardStatement(answer as Statement, refusal);
      return answer === target ? connection : answer;
    };
  };
  return {
    connection,
    during(operation, borrower = "effect") {
      lentTo = borrower;
      try {
        return operation();
      } finally {
        lentTo = null;
      }
    },
  };
}

/** Would change what the inbox's own statements return, or end them. */
const OWNERS = ["close", "defaultSafeIntegers", "unsafeMode"];

/** Of the effect that the running code belongs to, also after its first `await`. */
const current = new AsyncLocalStorage<{ readonly borrower: Borrower; isOver: boolean } | undefined>();
const guardedOnes = new WeakSet<SqliteDatabase>();

/**
 * Lends the application's own connection, which is always theirs to use, except from an effect that has returned: an ORM that
 * was given this connection would write outside of the effect's transaction. Looks at what is prepared from here on.
 */
export function lendOfUser(db: SqliteDatabase): Lending {
  if (!guardedOnes.has(db)) {
    guardedOnes.add(db);
    const check = (statement?: Statement) => {
      const loan = current.getStore();
      if (loan?.isOver === true) throw isOver();
      if (loan?.borrower === "effect") refuseStatement(statement);
    };
    const guardStatement = statementGuard(check);
    const guarded = (key: "prepare" | "exec" | "pragma") => {
      const method = db[key] as Method;
      return (...args: unknown[]) => {
        check();
        const refusal = refusalOf(key, args[0]);
        if (current.getStore()?.borrower === "effect" && refusal !== null) throw refusal;
        const answer = Reflect.apply(method, db, args);
        return key === "prepare" ? guardStatement(answer as Statement, refusal) : answer;
      };
    };
    Object.assign(db, { prepare: guarded("prepare"), exec: guarded("exec"), pragma: guarded("pragma") });
  }
  return {
    connection: db,
    during(operation, borrower = "effect") {
      const loan = { borrower, isOver: false };
      try {
        return current.run(loan, operation);
      } finally {
        loan.isOver = true;
      }
    },
  };
}

/** Runs the inbox's own work, which an effect that has returned may have begun. */
export function outsideOfEffects<T>(operation: () => T): T {
  return current.getStore() === undefined ? operation() : current.run(undefined, operation);
}

/** Why no effect may run these statements, which were prepared outside of one. */
const refusedInEffects = new WeakMap<Statement, SetupError>();

function refuseStatement(statement: Statement | undefined): void {
  const refusal = statement && refusedInEffects.get(statement);
  if (refusal !== undefined) throw refusal;
}

/** Throws if the statement, or the connection, may not be used now. */
type Check = (statement?: Statement) => void;

/**
 * Makes a function that guards a statement in place, since a native one works with no other `this`: by a prototype between it and its
 * own, made once. Replacing the methods of each statement is slower.
 */
function statementGuard(check: Check): (statement: Statement, refusal: SetupError | null) => Statement {
  const guards = new Map<object, object>();
  return (statement, refusal) => {
    const own: Statement = Object.getPrototypeOf(statement);
    let guard = guards.get(own);
    if (guard === undefined) {
      guard = guardedMethods(own, check);
      guards.set(own, guard);
    }
    if (refusal !== null) refusedInEffects.set(statement, refusal);
    return Object.setPrototypeOf(statement, guard);
  };
}

function guardedMethods(own: Statement, check: Check): object {
  const { run, get, all, iterate } = own;
  const methods = {
    run(this: Statement, ...params: unknown[]) {
      check(this);
      return Reflect.apply(run, this, params);
    },
    get(this: Statement, ...params: unknown[]) {
      check(this);
      return Reflect.apply(get, this, params);
    },
    all(this: Statement, ...params: unknown[]) {
      check(this);
      return Reflect.apply(all, this, params);
    },
  };
  const rows = {
    iterate(this: Statement, ...params: unknown[]) {
      check(this);
      return guardRows(Reflect.apply(iterate as Method, this, params) as Iterator<unknown>, check);
    },
  };
  return Object.assign(Object.create(own), methods, iterate === undefined ? {} : rows);
}

/** The first row is what runs the statement. Ending it early is always allowed. */
function guardRows(rows: Iterator<unknown>, check: Check): Iterator<unknown> {
  const { next } = rows;
  rows.next = () => {
    check();
    return next.call(rows);
  };
  return rows;
}

function whileLent(value: unknown, check: Check): unknown {
  if (typeof value !== "function") return value;
  return function (this: unknown, ...args: unknown[]) {
    check();
    return Reflect.apply(value, this, args);
  };
}

const CONTROL = /\b(?:begin|commit|end|rollback|pragma|attach|detach)\b/i;
const TOKEN = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'[^']*'?|"[^"]*"?|`[^`]*`?|\[[^\]]*\]?|\w+|\s+|[\s\S]/g;

/**
 * What was written before a `commit` would stay, though the event fails and its effects run again; and a setting would stay for the inbox's
 * own work. Savepoints are allowed.
 *
 * @throws SetupError
 */
export function refuseInEffect(sql: unknown): void {
  if (typeof sql !== "string" || !CONTROL.test(sql)) return;
  let words: string[] = [];
  let inTrigger = false;
  for (const token of [...(sql.match(TOKEN) ?? []), ";"]) {
    if (/^(?:\s|--|\/\*)/.test(token)) continue;
    if (token !== ";") {
      words.push(token.toLowerCase());
      continue;
    }
    const [first = "", second, third] = words;
    // The body of a trigger has semicolons of its own, and ends with `end`.
    if (inTrigger) inTrigger = first !== "end";
    else if (first === "create") inTrigger = second === "trigger" || third === "trigger";
    else if (first === "pragma") refuseSetting(words);
    else if (first === "attach" || first === "detach") throw outlives(first);
    else if (first !== "rollback" || (second !== "to" && third !== "to")) {
      if (CONTROL.test(first)) throw effectEndedTransaction();
    }
    words = [];
  }
}

/** Pragmas that take a value and set nothing. */
const READING =
  "table_info table_xinfo table_list index_info index_xinfo index_list foreign_key_list foreign_key_check integrity_check quick_check";
/** Pragmas whose setting is rolled back, or ends, with the transaction. */
const OF_TRANSACTION = "user_version application_id defer_foreign_keys";
const ALLOWED = new Set(`${READING} ${OF_TRANSACTION}`.split(" "));

/** @param words - `pragma`, the schema and a dot, the name, and a value */
function refuseSetting(words: readonly string[]): void {
  const [name = "", ...value] = words.slice(words[2] === "." ? 3 : 1);
  if (value.length > 0 && !ALLOWED.has(name.replace(/^["'`[]|["'`\]]$/g, ""))) throw outlives(`pragma ${name}`);
}

function outlives(what: string): SetupError {
  return new SetupError(
    "invalid_argument",
    `An effect of ctx.commit must not use "${what}": it would last longer than the effect, also if that is rolled back. Use it in onOpen, or where you open your own connection.`,
  );
}

/** Why a call must not be made in an effect; null if it may. */
function refusalOf(key: PropertyKey, argument: unknown): SetupError | null {
  if (key === "backup") return outlives("backup()");
  if (key !== "prepare" && key !== "exec" && key !== "pragma") return null;
  try {
    refuseInEffect(key === "pragma" ? `pragma ${argument}` : argument);
    return null;
  } catch (error) {
    return error as SetupError;
  }
}

export function effectEndedTransaction(): SetupError {
  return new SetupError(
    "invalid_option",
    "An effect of ctx.commit ended the inbox's transaction: use no BEGIN, COMMIT or ROLLBACK in it, only savepoints.",
  );
}

function refuseOwners(): never {
  throw new SetupError(
    "invalid_argument",
    "The connection that ctx.commit and onOpen give belongs to the inbox: do not close it, and do not change how all of its statements work. A statement has safeIntegers() of its own.",
  );
}

function isOver(): SetupError {
  const message =
    "The effect of ctx.commit (or onOpen) has returned, and its connection with it, so nothing was written: write before it returns, not after an await, in a timer or in a callback.";
  return new SetupError("invalid_argument", message);
}
