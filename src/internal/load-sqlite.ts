/** Chooses the SQLite driver of this process. */
import { SetupError } from "../errors.ts";
import { INSTALL, installedVersion, loadBetterSqlite3 } from "./better-sqlite3.ts";
import { nodeSqliteDriver } from "./node-sqlite.ts";
import type { SqliteDriver } from "./sqlite-driver.ts";

/** better-sqlite3 where it is installed, else the SQLite that Node itself brings from 22.13 on. */
export function loadDriver(): Promise<SqliteDriver> {
  return chooseDriver(installedVersion(), nodeSqliteDriver);
}

/** @param installed - the version of better-sqlite3; null when there is none */
export async function chooseDriver(installed: string | null, own: () => SqliteDriver | null): Promise<SqliteDriver> {
  if (installed !== null) return loadBetterSqlite3(installed);
  const driver = own();
  if (driver !== null) return driver;
  const nodeVersion = process.versions.node;
  const message = `SQLite needs the package better-sqlite3, or Node 22.13 or later, which brings its own: run "${INSTALL}", or upgrade Node.`;
  throw new SetupError("missing_peer", message, { fields: { nodeVersion } });
}
