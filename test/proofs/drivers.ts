/** Drivers of SQLite that a store is given: one that only says `FULL`, and one with an application's own connection next to it. */
import Database from "better-sqlite3";
import type { SqliteDriver } from "../../src/stores/sqlite.ts";

/**
 * - `NORMAL`, `OFF`: it sets `synchronous` to that and answers 2 for `FULL`, so that the store cannot see it.
 * - `accompanied`: a connection of the application tries to commit whenever the receiver has begun a transaction and read.
 */
export type DriverName = "NORMAL" | "OFF" | "accompanied";

export function driverOf(name: DriverName | undefined): { readonly driver?: SqliteDriver } {
  if (name === undefined) return {};
  return { driver: (name === "accompanied" ? Accompanied : pretender(name)) as unknown as SqliteDriver };
}

function pretender(pretence: "NORMAL" | "OFF") {
  return class extends Database {
    override pragma(source: string, options?: Database.PragmaOptions): unknown {
      if (source === "synchronous") return 2;
      return super.pragma(source === "synchronous = FULL" ? `synchronous = ${pretence}` : source, options);
    }
  };
}

/**
 * Whoever has begun with `begin immediate` holds SQLite's one write lock: our commit is refused at once, has changed nothing, and
 * nobody waited for it. An honest receiver cannot notice us. Where `begin` took no lock we do commit, what was read is of the past, and
 * every write that follows in that transaction fails.
 */
class Accompanied extends Database {
  static #own: InstanceType<typeof Database> | null = null;

  /** To be called when the inbox is open: a receiver that cannot open it answers nothing at all. */
  static join(path: string): void {
    Accompanied.#own = new Database(path, { timeout: 0 });
  }

  override exec(sql: string): this {
    super.exec(sql);
    if (!/^begin\b/i.test(sql)) return this;
    super.exec("select 1 from sqlite_master");
    try {
      // A number of the file's that nobody reads.
      Accompanied.#own?.pragma("user_version = 1");
    } catch (error) {
      if (!(error instanceof Database.SqliteError && error.code.startsWith("SQLITE_BUSY"))) throw error;
    }
    return this;
  }
}

/** Lets the application's connection of an `accompanied` store begin. */
export const joinFile = (path: string): void => Accompanied.join(path);
