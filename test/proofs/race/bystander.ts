/** An application's own connection to the inbox's file, which tries to commit whenever the receiver has begun a transaction and read. */
import Database from "better-sqlite3";
import type { SqliteDriver } from "../../../src/stores/sqlite.ts";

/**
 * Whoever has begun with `begin immediate` holds SQLite's one write lock: our commit is refused at once, has changed nothing, and
 * nobody waited for it. An honest receiver cannot notice us. Where `begin` took no lock we do commit, what was read is of the past, and
 * every write that follows in that transaction fails.
 */
export class Bystander {
  /** For the receiver's store. */
  readonly driver: SqliteDriver;
  #own: InstanceType<typeof Database> | null = null;

  constructor() {
    const commit = () => this.#commit();
    class Accompanied extends Database {
      override exec(sql: string): this {
        super.exec(sql);
        if (!/^begin\b/i.test(sql)) return this;
        super.exec("select 1 from sqlite_master");
        commit();
        return this;
      }
    }
    this.driver = Accompanied as unknown as SqliteDriver;
  }

  /** To be called when the inbox is open: a receiver that cannot open it answers nothing at all. */
  join(path: string): void {
    this.#own = new Database(path, { timeout: 0 });
  }

  leave(): void {
    this.#own?.close();
    this.#own = null;
  }

  #commit(): void {
    try {
      // A number of the file's that nobody reads.
      this.#own?.pragma("user_version = 1");
    } catch (error) {
      if (!(error instanceof Database.SqliteError && error.code.startsWith("SQLITE_BUSY"))) throw error;
    }
  }
}
