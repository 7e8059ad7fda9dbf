/** The few methods of better-sqlite3 that the store uses, declared structurally, and its lazy, version-checked loading. */
import { createRequire } from "node:module";
import { SetupError } from "../../errors.ts";

/** A prepared statement of better-sqlite3. */
export interface SqliteStatement {
  run(...params: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...params: unknown[]): unknown;
  all(...params: unknown[]): unknown[];
  safeIntegers(toggle?: boolean): unknown;
}

/** An open connection of better-sqlite3; what an effect registered with `ctx.commit` writes with. */
export interface SqliteDatabase {
  readonly name: string;
  readonly open: boolean;
  readonly inTransaction: boolean;
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  pragma(source: string, options?: { simple?: boolean }): unknown;
  close(): unknown;
}

/** The constructor that better-sqlite3 exports. */
export type SqliteDriver = new (path: string, options: { timeout: number; fileMustExist: boolean }) => SqliteDatabase;

const INSTALL = "npm install better-sqlite3@12";

/** Loads better-sqlite3 after reading its version: 13 on Node 20 ends the process with a segmentation fault at open. */
export async function loadDriver(): Promise<SqliteDriver> {
  refuseIncompatible(installedVersion(), process.versions.node);
  try {
    // A variable keeps type checkers and bundlers of those who use another store from looking for it.
    const name = "better-sqlite3";
    const loaded = (await import(name)) as { readonly default: SqliteDriver };
    return loaded.default;
  } catch (cause) {
    throw new SetupError(
      "incompatible_peer",
      `better-sqlite3 is installed but does not load: run "npm rebuild better-sqlite3".`,
      {
        cause,
      },
    );
  }
}

/** Throws for a version of better-sqlite3 that is known to crash on this version of Node. */
export function refuseIncompatible(driverVersion: string, nodeVersion: string): void {
  const driverMajor = Number.parseInt(driverVersion, 10);
  const nodeMajor = Number.parseInt(nodeVersion, 10);
  if (driverMajor >= 12 && !(driverMajor >= 13 && nodeMajor < 22)) return;
  const message = `better-sqlite3 ${driverVersion} does not work on Node ${nodeVersion}: run "${INSTALL}".`;
  throw new SetupError("incompatible_peer", message, { fields: { driverVersion, nodeVersion } });
}

function installedVersion(): string {
  const require = createRequire(import.meta.url);
  try {
    const manifest = require("better-sqlite3/package.json") as { readonly version: string };
    return manifest.version;
  } catch (cause) {
    throw new SetupError("missing_peer", `sqliteStore() needs the package better-sqlite3: run "${INSTALL}".`, {
      cause,
    });
  }
}
