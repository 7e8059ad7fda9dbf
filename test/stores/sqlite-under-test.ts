/** SQLite inboxes for the contract suite, each in a file of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { SqliteDatabase, SqliteDriver } from "../../src/internal/sqlite-driver.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import type { StoreUnderTest } from "../contracts/store-bench.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { instanceOf } from "./sqlite-turns.ts";

/** Makes a folder of its own, which who asks for it removes. In memory, because the contract asks for some 50,000 commits. */
export function newFolder(): Promise<string> {
  return mkdtemp(join(MEMORY_DISK, "oncehook-"));
}

/**
 * @param application - what the application connects to the file with
 * @param wish - the store's own driver, and whether effects run on the application's connection
 */
export async function sqliteUnderTest(
  application: SqliteDriver,
  wish: { readonly driver?: SqliteDriver; readonly sharesConnection?: boolean } = {},
): Promise<StoreUnderTest<SqliteDatabase>> {
  const folder = await newFolder();
  const path = join(folder, "inbox.db");
  const user = new application(path, { timeout: 1_000, fileMustExist: false });
  user.exec("create table note (id integer primary key, text text)");
  // A file system in memory is often small.
  const { driver, sharesConnection } = wish;
  const own = { minFreeBytes: 0, ...(driver && { driver }), ...(sharesConnection && { effects: user }) };
  return {
    store: sqliteStore(path, own),
    reopen: async () => sqliteStore(path, own),
    instance: instanceOf,
    effects: {
      write: (tx, text) => tx.prepare("insert into note (text) values (?)").run(text),
      statement: (text) => ({ text: "insert into note (text) values (?) returning id", values: [text] }),
      read: async () => {
        const rows = user.prepare("select text from note order by id").all() as { text: string }[];
        return rows.map((row) => row.text);
      },
    },
    async dispose() {
      user.close();
      await rm(folder, { recursive: true });
    },
  };
}
