/** Node's own SQLite behind the methods of better-sqlite3 that oncehook uses. */
import { existsSync } from "node:fs";
import type { SqliteDatabase, SqliteDriver, SqliteStatement } from "./sqlite-driver.ts";

/** What is used of `node:sqlite`, declared here: the oldest Node that oncehook works with has no types for it. */
export interface NodeSqlite {
  readonly DatabaseSync: new (path: string, options: { readonly enableForeignKeyConstraints: boolean }) => Connection;
}

interface Connection {
  /** From Node 22.16 on. */
  readonly isTransaction?: boolean;
  prepare(sql: string): Prepared;
  exec(sql: string): void;
  close(): void;
}

interface Prepared {
  run(...params: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...params: unknown[]): Row | undefined;
  all(...params: unknown[]): Row[];
  setReadBigInts(toggle: boolean): void;
}

type Row = Record<string, unknown>;

/** The driver, or null where this Node has no SQLite. */
export function nodeSqliteDriver(): SqliteDriver | null {
  // Loaded without an import, so that nothing fails where it is not there; Node warns at this line that it is experimental.
  const loaded = process.getBuiltinModule("node:sqlite") as NodeSqlite | undefined;
  return loaded === undefined ? null : driverOver(loaded);
}

/** The driver over a module that does as `node:sqlite` does. */
export function driverOver({ DatabaseSync }: NodeSqlite): SqliteDriver {
  return class NodeSqliteDatabase implements SqliteDatabase {
    readonly name: string;
    readonly #connection: Connection;
    #open = true;

    constructor(path: string, { timeout, fileMustExist }: { timeout: number; fileMustExist: boolean }) {
      if (fileMustExist && !existsSync(path)) throw cannotOpen(path);
      this.name = path;
      this.#connection = named(() => new DatabaseSync(path, { enableForeignKeyConstraints: true }));
      // Its own option for it came later.
      this.pragma(`busy_timeout = ${timeout}`);
    }

    get open(): boolean {
      return this.#open;
    }

    get inTransaction(): boolean {
      return this.#connection.isTransaction ?? refusesToBegin(this.#connection);
    }

    prepare(sql: string): SqliteStatement {
      return named(() => new NodeSqliteStatement(this.#connection.prepare(sql)));
    }

    exec(sql: string): void {
      named(() => this.#connection.exec(sql));
    }

    pragma(source: string, options: { simple?: boolean } = {}): unknown {
      const rows = this.prepare(`pragma ${source}`).all() as Row[];
      return options.simple === true ? Object.values(rows[0] ?? {})[0] : rows;
    }

    close(): void {
      if (!this.#open) return;
      named(() => this.#connection.close());
      this.#open = false;
    }
  };
}

/** Only inside of a transaction a second one is refused; a deferred one takes no lock. */
function refusesToBegin(connection: Connection): boolean {
  try {
    connection.exec("begin");
  } catch {
    return true;
  }
  connection.exec("rollback");
  return false;
}

class NodeSqliteStatement implements SqliteStatement {
  readonly #prepared: Prepared;

  constructor(prepared: Prepared) {
    this.#prepared = prepared;
  }

  run(...params: unknown[]) {
    return named(() => this.#prepared.run(...params.map(toColumn)));
  }

  get(...params: unknown[]): unknown {
    const row = named(() => this.#prepared.get(...params.map(toColumn)));
    return row === undefined ? undefined : fromColumns(row);
  }

  all(...params: unknown[]): unknown[] {
    return named(() => this.#prepared.all(...params.map(toColumn))).map(fromColumns);
  }

  safeIntegers(toggle = true): this {
    this.#prepared.setReadBigInts(toggle);
    return this;
  }
}

/**
 * Node 22 reads a text only up to its first NUL, so that two ids would become one. NUL is stored as a pair of characters that
 * Unicode promises never to assign, and so is the first of them.
 */
const ESCAPE = "\uFDD0";
const ESCAPED_ESCAPE = "\uFDD0\uFDD1";
const ESCAPED_NUL = "\uFDD0\uFDD2";

function toColumn(value: unknown): unknown {
  if (typeof value !== "string" || !(value.includes("\0") || value.includes(ESCAPE))) return value ?? null;
  return value.replaceAll(ESCAPE, ESCAPED_ESCAPE).replaceAll("\0", ESCAPED_NUL);
}

/** Changes the row in place: it was made for this call alone. */
function fromColumns(row: Row): Row {
  for (const name in row) {
    const value = row[name];
    if (value instanceof Uint8Array) row[name] = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    else if (typeof value === "string" && value.includes(ESCAPE))
      row[name] = value.replace(/\uFDD0([\uFDD1\uFDD2])/g, (_pair, which) => (which === "\uFDD1" ? ESCAPE : "\0"));
  }
  return row;
}

/** SQLite's primary result codes, by number, as better-sqlite3 names them. */
const CODES = [
  ..."OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN".split(
    " ",
  ),
  ..."PROTOCOL EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB".split(" "),
];
const IOERR_SHORT_READ = 522;

/** Runs `operation`; what SQLite refuses is thrown with the name of its code, as better-sqlite3 does. */
function named<T>(operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    if (error instanceof Error && "errcode" in error && typeof error.errcode === "number") {
      Object.assign(error, { code: codeOf(error.errcode) });
    }
    throw error;
  }
}

function cannotOpen(path: string): Error {
  return Object.assign(new Error(`There is no file ${path}.`), { code: "SQLITE_CANTOPEN" });
}

function codeOf(extended: number): string {
  if (extended === IOERR_SHORT_READ) return "SQLITE_IOERR_SHORT_READ";
  return `SQLITE_${CODES[extended & 0xff] ?? "ERROR"}`;
}
