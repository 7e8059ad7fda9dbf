/** The few methods of better-sqlite3 that oncehook uses, declared structurally, and its lazy, version-checked loading. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { SetupError } from "../errors.ts";

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

const PACKAGE = "better-sqlite3";
const INSTALL = "npm install better-sqlite3@12";

/** Loads better-sqlite3 after reading its version: 13 on Node 20 ends the process with a segmentation fault at open. */
export async function loadDriver(): Promise<SqliteDriver> {
  refuseIncompatible(installedVersion(), process.versions.node);
  try {
    const loaded = await import("better-sqlite3");
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
    const manifest = JSON.parse(readFileSync(manifestOf(require.resolve(PACKAGE)), "utf8"));
    return String(manifest.version);
  } catch (cause) {
    throw new SetupError("missing_peer", `SQLite needs the package better-sqlite3: run "${INSTALL}".`, {
      cause,
    });
  }
}

/** Found from the package's main file: a later version may no longer export its manifest. */
function manifestOf(mainFile: string): string {
  const folder = mainFile.slice(0, mainFile.lastIndexOf(PACKAGE) + PACKAGE.length);
  return join(folder, "package.json");
}
