/** SQLite as oncehook uses it: better-sqlite3 where it is installed, otherwise the SQLite of Node behind the same methods. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../errors.ts";
import { ownFile, resolveFrom } from "./package.ts";

/** A prepared statement: the methods of better-sqlite3 that oncehook uses, declared structurally. */
export interface SqliteStatement {
  run(...params: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...params: unknown[]): unknown;
  all(...params: unknown[]): unknown[];
  safeIntegers(toggle?: boolean): unknown;
}

/** An open connection, as an effect registered with `ctx.commit` receives it. Blobs are read as `Buffer`. */
export interface SqliteDatabase {
  readonly name: string;
  readonly open: boolean;
  readonly inTransaction: boolean;
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  pragma(source: string, options?: { simple?: boolean }): unknown;
  close(): unknown;
}

/**
 * The constructor of connections that better-sqlite3 exports.
 *
 * @typeParam Db - its connections, as its own types declare them
 */
export type SqliteDriver<Db extends SqliteDatabase = SqliteDatabase> = new (
  path: string,
  options: { timeout: number; fileMustExist: boolean },
) => Db;

const PACKAGE = "better-sqlite3";
const INSTALL = "npm install better-sqlite3@12";

/**
 * Loads better-sqlite3 after checking its version; null when it is not installed.
 *
 * @param version - of the installed package, checked first: version 13 on Node 20 crashes the process at open. Null when unknown, as in
 *   a bundle that contains better-sqlite3
 */
export async function loadBetterSqlite3(version: string | null): Promise<SqliteDriver | null> {
  if (version !== null) refuseIncompatible(version, process.versions.node);
  try {
    const loaded = await import("better-sqlite3");
    return loaded.default;
  } catch (cause) {
    if (isNotInstalled(cause)) return null;
    throw doesNotLoad(cause);
  }
}

/**
 * Opens a connection, which loads the compiled part of better-sqlite3.
 *
 * @throws SetupError `incompatible_peer` when that does not load; otherwise what the driver throws
 */
export function connect(
  driver: SqliteDriver,
  path: string,
  options: { timeout: number; fileMustExist: boolean },
): SqliteDatabase {
  try {
    return new driver(path, options);
  } catch (error) {
    throw isLoadFailure(error) ? doesNotLoad(error) : error;
  }
}

/** Errors of the system, of `bindings` and of bundlers about a compiled module that is missing or built for another Node; not SQLite's own. */
function isLoadFailure(error: unknown): boolean {
  if (error instanceof ReferenceError) return true;
  const { code, message } = error instanceof Error ? (error as NodeJS.ErrnoException) : { code: "", message: "" };
  const isModule = code === "ERR_DLOPEN_FAILED" || code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND";
  return isModule || /bindings file|Dynamic require|NODE_MODULE_VERSION/.test(message);
}

function doesNotLoad(cause: unknown): SetupError {
  const message =
    'better-sqlite3 does not load: run "npm rebuild better-sqlite3". In a bundle, keep better-sqlite3 external or pass `driver`.';
  return new SetupError("incompatible_peer", message, { cause });
}

/** If a module that better-sqlite3 requires is missing, as in a bundle, the package is installed but does not load. */
function isNotInstalled(error: unknown): boolean {
  const { code, message = "" } = error instanceof Error ? (error as NodeJS.ErrnoException) : { code: undefined };
  return (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") && message.includes(`'${PACKAGE}'`);
}

/** Throws for a version of better-sqlite3 that is known to crash on this version of Node. */
export function refuseIncompatible(driverVersion: string, nodeVersion: string): void {
  const driverMajor = Number.parseInt(driverVersion, 10);
  const nodeMajor = Number.parseInt(nodeVersion, 10);
  if (driverMajor >= 12 && !(driverMajor >= 13 && nodeMajor < 22)) return;
  const message = `better-sqlite3 ${driverVersion} does not work on Node ${nodeVersion}: run "${INSTALL}".`;
  throw new SetupError("incompatible_peer", message, { fields: { driverVersion, nodeVersion } });
}

/** The installed version of better-sqlite3; null when it cannot be resolved from here. */
export function installedVersion(): string | null {
  try {
    const manifest = JSON.parse(readFileSync(manifestOf(resolveFrom(ownFile(), PACKAGE)), "utf8"));
    return String(manifest.version);
  } catch {
    return null;
  }
}

/** Derived from the package's main file, because a later version may not export its manifest. */
function manifestOf(mainFile: string): string {
  const folder = mainFile.slice(0, mainFile.lastIndexOf(PACKAGE) + PACKAGE.length);
  return join(folder, "package.json");
}

/** The part of `node:sqlite` that oncehook uses, declared here because the oldest supported Node has no types for it. */
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

/** Node's own SQLite as a driver; null when this Node has none. */
export function nodeSqliteDriver(): SqliteDriver | null {
  // Loaded without an import, so that nothing fails where it is missing. Node warns here that it is experimental.
  const loaded = process.getBuiltinModule("node:sqlite") as NodeSqlite | undefined;
  return loaded === undefined ? null : driverOver(loaded);
}

/** A driver over `node:sqlite` or a test's stand-in, with the methods of better-sqlite3. */
export function driverOver({ DatabaseSync }: NodeSqlite): SqliteDriver {
  return class NodeSqliteDatabase implements SqliteDatabase {
    readonly name: string;
    readonly #connection: Connection;
    #open = true;

    constructor(path: string, { timeout, fileMustExist }: { timeout: number; fileMustExist: boolean }) {
      if (fileMustExist && !existsSync(path)) throw cannotOpen(path);
      this.name = path;
      this.#connection = named(() => new DatabaseSync(path, { enableForeignKeyConstraints: true }));
      // Node's own option for the timeout came in a later version.
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

/** SQLite refuses a second `begin` only inside a transaction; a deferred one takes no lock. */
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
 * Node 22 reads a text only up to its first NUL, so two ids could become one. NUL is stored as a pair of characters that
 * Unicode promises never to assign; the first of the pair is escaped the same way.
 */
const ESCAPE = "\uFDD0";
const ESCAPED_ESCAPE = "\uFDD0\uFDD1";
const ESCAPED_NUL = "\uFDD0\uFDD2";

function toColumn(value: unknown): unknown {
  if (typeof value !== "string" || !(value.includes("\0") || value.includes(ESCAPE))) return value ?? null;
  return value.replaceAll(ESCAPE, ESCAPED_ESCAPE).replaceAll("\0", ESCAPED_NUL);
}

/** Changes the row in place: it belongs to this call alone. */
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

/** Runs `operation` and adds the name of SQLite's code to its errors, as better-sqlite3 does. */
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

/**
 * Loads better-sqlite3 when it is installed, otherwise the SQLite that Node includes from 22.13 on.
 *
 * @throws SetupError `missing_peer` when there is neither, `incompatible_peer` when better-sqlite3 does not load
 */
export async function loadDriver(): Promise<SqliteDriver> {
  return chooseDriver(await loadBetterSqlite3(installedVersion()), nodeSqliteDriver);
}

/** @param installed - better-sqlite3; null when it is not installed */
export function chooseDriver(installed: SqliteDriver | null, own: () => SqliteDriver | null): SqliteDriver {
  const driver = installed ?? own();
  if (driver !== null) return driver;
  const nodeVersion = process.versions.node;
  const message = `SQLite needs the package better-sqlite3, or Node 22.13 or later, which brings its own: run "${INSTALL}", or upgrade Node.`;
  throw new SetupError("missing_peer", message, { fields: { nodeVersion } });
}
