/** Chooses the SQLite driver of this process. */
import { SetupError } from "../errors.ts";
import { INSTALL, installedVersion, loadBetterSqlite3 } from "./better-sqlite3.ts";
import { nodeSqliteDriver } from "./node-sqlite.ts";
import type { SqliteDriver } from "./sqlite-driver.ts";

/**
 * better-sqlite3 where it is installed, otherwise the SQLite that Node itself brings from 22.13 on.
 *
 * @throws SetupError `missing_peer` where there is none, `incompatible_peer` for one that does not load
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
