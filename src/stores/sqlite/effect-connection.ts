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
  const check = () => {
    if (lentTo === null) throw isOver();
  };
  const guardStatement = statementGuard(check);
  const guards = new Map<PropertyKey, Method>([["close", refuseClose]]);
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
  const guarded =
    (target: SqliteDatabase, key: PropertyKey, method: Method): Method =>
    (...args) => {
      check();
      if (lentTo === "effect" && (key === "prepare" || key === "exec")) refuseToEnd(args[0]);
      // A transaction function that is kept calls what it got, and so is of no use later either.
      const given = key === "transaction" ? args.map((value) => whileLent(value, check)) : args;
      const answer = Reflect.apply(method, target, given);
      if (key === "prepare") guardStatement(answer as Statement);
      return answer === target ? connection : answer;
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
    const check = () => {
      if (current.getStore()?.isOver === true) throw isOver();
    };
    const guardStatement = statementGuard(check);
    const prepare = db.prepare.bind(db);
    const exec = db.exec.bind(db);
    Object.assign(db, {
      prepare(sql: string) {
        check();
        if (current.getStore()?.borrower === "effect") refuseToEnd(sql);
        return guardStatement(prepare(sql));
      },
      exec(sql: string) {
        check();
        if (current.getStore()?.borrower === "effect") refuseToEnd(sql);
        return exec(sql);
      },
    });
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

/**
 * Makes a function that guards a statement in place, since a native one works with no other `this`: by a prototype between it and its
 * own, made once. Replacing the methods of each statement is slower.
 */
function statementGuard(check: () => void): (statement: Statement) => Statement {
  const guards = new Map<object, object>();
  return (statement) => {
    const own: Statement = Object.getPrototypeOf(statement);
    let guard = guards.get(own);
    if (guard === undefined) {
      guard = guardedMethods(own, check);
      guards.set(own, guard);
    }
    return Object.setPrototypeOf(statement, guard);
  };
}

function guardedMethods(own: Statement, check: () => void): object {
  const { run, get, all, iterate } = own;
  const methods = {
    run(...params: unknown[]) {
      check();
      return Reflect.apply(run, this, params);
    },
    get(...params: unknown[]) {
      check();
      return Reflect.apply(get, this, params);
    },
    all(...params: unknown[]) {
      check();
      return Reflect.apply(all, this, params);
    },
  };
  const rows = {
    iterate(...params: unknown[]) {
      check();
      return guardRows(Reflect.apply(iterate as Method, this, params) as Iterator<unknown>, check);
    },
  };
  return Object.assign(Object.create(own), methods, iterate === undefined ? {} : rows);
}

/** The first row is what runs the statement. Ending it early is always allowed. */
function guardRows(rows: Iterator<unknown>, check: () => void): Iterator<unknown> {
  const { next } = rows;
  rows.next = () => {
    check();
    return next.call(rows);
  };
  return rows;
}

function whileLent(value: unknown, check: () => void): unknown {
  if (typeof value !== "function") return value;
  return function (this: unknown, ...args: unknown[]) {
    check();
    return Reflect.apply(value, this, args);
  };
}

const CONTROL = /\b(?:begin|commit|end|rollback)\b/i;
const TOKEN = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'[^']*'?|"[^"]*"?|`[^`]*`?|\[[^\]]*\]?|\w+|\s+|[\s\S]/g;

/** What was written before a `commit` would stay, though the event fails and its effects run again. Savepoints are allowed. */
export function refuseToEnd(sql: unknown): void {
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
    words = [];
    // The body of a trigger has semicolons of its own, and ends with `end`.
    if (inTrigger) inTrigger = first !== "end";
    else if (first === "create") inTrigger = second === "trigger" || third === "trigger";
    else if (first === "rollback" && (second === "to" || third === "to")) continue;
    else if (CONTROL.test(first)) throw effectEndedTransaction();
  }
}

export function effectEndedTransaction(): SetupError {
  return new SetupError(
    "invalid_option",
    "An effect of ctx.commit ended the inbox's transaction: use no BEGIN, COMMIT or ROLLBACK in it, only savepoints.",
  );
}

function refuseClose(): never {
  throw new SetupError(
    "invalid_argument",
    "The connection that ctx.commit and onOpen give belongs to the inbox: do not close it.",
  );
}

function isOver(): SetupError {
  const message =
    "The effect of ctx.commit (or onOpen) has returned, and its connection with it, so nothing was written: write before it returns, not after an await, in a timer or in a callback.";
  return new SetupError("invalid_argument", message);
}
