/**
 * What `node:sqlite` is to its driver, over better-sqlite3: the same SQLite, on a Node that brings none. It gives blobs as plain
 * bytes, texts up to their first NUL and errors by their number, as Node 22 does.
 */
import Database from "better-sqlite3";
import type { NodeSqlite } from "../../src/internal/sqlite-driver.ts";

/** Of the extended result codes those that tests come upon; others are told as SQLITE_ERROR, 1. */
const NUMBERS: Readonly<Record<string, number>> = {
  SQLITE_BUSY: 5,
  SQLITE_CONSTRAINT_UNIQUE: 2_067,
};

/** @param tellsTransactions - false for Node before 22.16, where a connection does not say whether it is in a transaction */
export function nodeSqliteStandIn({ tellsTransactions }: { readonly tellsTransactions: boolean }): NodeSqlite {
  class DatabaseSync {
    readonly #db: Database.Database;

    constructor(path: string) {
      this.#db = numbered(() => new Database(path));
      if (!tellsTransactions) Object.defineProperty(this, "isTransaction", { value: undefined });
    }

    get isTransaction(): boolean {
      return this.#db.inTransaction;
    }

    prepare(sql: string) {
      const statement = numbered(() => this.#db.prepare<unknown[], Record<string, unknown>>(sql));
      const all = (...params: unknown[]) =>
        numbered(() => {
          if (statement.reader) return statement.all(...params).map(asNodeGives);
          statement.run(...params);
          return [];
        });
      return {
        run: (...params: unknown[]) => numbered(() => statement.run(...params)),
        get: (...params: unknown[]) => all(...params)[0],
        all,
        setReadBigInts: (toggle: boolean) => void statement.safeIntegers(toggle),
      };
    }

    exec(sql: string): void {
      numbered(() => this.#db.exec(sql));
    }

    close(): void {
      this.#db.close();
    }
  }
  return { DatabaseSync };
}

function asNodeGives(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, asGiven(value)]));
}

function asGiven(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  return typeof value === "string" ? value.split("\0")[0] : value;
}

function numbered<T>(operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
    const told = new Error(error.message, { cause: error });
    throw Object.assign(told, { code: "ERR_SQLITE_ERROR", errcode: NUMBERS[error.code] ?? 1 });
  }
}
