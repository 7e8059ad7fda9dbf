/** Loads better-sqlite3 when it is needed, after a look at its version. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../errors.ts";
import { ownFile, resolveFrom } from "./own-file.ts";
import type { SqliteDatabase, SqliteDriver } from "./sqlite-driver.ts";

const PACKAGE = "better-sqlite3";
export const INSTALL = "npm install better-sqlite3@12";

/**
 * Null when it is not installed.
 *
 * @param version - of the installed one, looked at first: 13 on Node 20 ends the process with a segmentation fault at open. Null when
 *   it is not known, as in a bundle that holds better-sqlite3
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

/** Not SQLite's own errors: what the system, `bindings` and bundlers say of a compiled module that is not there or of another Node. */
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

/** A module that better-sqlite3 itself requires may be missing too, as in a bundle: then it is installed, and does not load. */
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

/** Null when it is not found from here. */
export function installedVersion(): string | null {
  try {
    const manifest = JSON.parse(readFileSync(manifestOf(resolveFrom(ownFile(), PACKAGE)), "utf8"));
    return String(manifest.version);
  } catch {
    return null;
  }
}

/** Found from the package's main file: a later version may no longer export its manifest. */
function manifestOf(mainFile: string): string {
  const folder = mainFile.slice(0, mainFile.lastIndexOf(PACKAGE) + PACKAGE.length);
  return join(folder, "package.json");
}
