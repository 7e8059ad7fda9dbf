/** A place of its own for each test of the SQLite store, removed afterwards. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach } from "vitest";
import type { InboxStore, OpenContext } from "../../src/inbox/store.ts";
import { type SqliteDriver, sqliteStore } from "../../src/stores/sqlite.ts";
import { failureOf } from "../support/failure-of.ts";
import { contextOf, RULES } from "./sqlite-turns.ts";

const directories: string[] = [];
const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

/** A path for an inbox in a directory of its own, removed after the test. */
export function makePath(): string {
  const directory = mkdtempSync(join(tmpdir(), "oncehook-"));
  directories.push(directory);
  return join(directory, "inbox.db");
}

/** Opens `store`; it is closed after the test. */
export async function open<Db>(store: InboxStore<Db>, overrides: Partial<OpenContext> = {}): Promise<InboxStore<Db>> {
  await store.open(contextOf(overrides));
  opened.push(store);
  return store;
}

/** An inbox that was opened and closed once. */
export async function makeInbox(path = makePath()): Promise<string> {
  await (await open(sqliteStore(path))).close();
  return path;
}

/** What a receiver, or one that opens by the recorded rules, is refused with. */
export function refusalOf(path: string, rules: OpenContext["rules"] = RULES): Promise<unknown> {
  return failureOf(sqliteStore(path).open(contextOf({ rules })));
}

/** A driver, and the connection that was made with it last. */
export function watchedDriver() {
  class Watched extends Database {
    static last: Database.Database;
    constructor(...args: ConstructorParameters<typeof Database>) {
      super(...args);
      Watched.last = this;
    }
  }
  return { driver: Watched as unknown as SqliteDriver, connection: () => Watched.last };
}

/** The application's own connection to the file, closed after the test. */
export function connect(path: string, options: Database.Options = {}): Database.Database {
  const db = new Database(path, options);
  opened.push(db);
  return db;
}
