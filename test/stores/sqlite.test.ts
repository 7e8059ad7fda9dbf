import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { thisInstance } from "../../src/internal/process.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import type { StoreUnderTest } from "../../src/testing/store-contract.ts";
import { storeContract } from "../../src/testing/store-contract.ts";

const NO_PID = 2 ** 31 - 2;

/** The contract asks for some 50,000 commits: a file system in memory is a real one without the wait for a disk. */
const MEMORY_DISK = "/dev/shm";
const DIRECTORY = existsSync(MEMORY_DISK) ? MEMORY_DISK : tmpdir();

async function makeStore(shareConnection: boolean): Promise<StoreUnderTest<SqliteDatabase>> {
  const directory = await mkdtemp(join(DIRECTORY, "oncehook-"));
  const path = join(directory, "inbox.db");
  const user = new Database(path);
  user.exec("create table note (id integer primary key, text text)");
  // A file system in memory is often small.
  const own = { minFreeBytes: 0, ...(shareConnection && { effects: user }) };
  const { id: _id, ...running } = thisInstance();
  return {
    store: sqliteStore(path, own),
    reopen: async () => sqliteStore(path, own),
    instance: (life) => (life === "running" ? running : { ...running, pid: NO_PID }),
    effects: {
      write: (tx, text) => tx.prepare("insert into note (text) values (?)").run(text),
      read: async () => {
        const rows = user.prepare("select text from note order by id").all() as { text: string }[];
        return rows.map((row) => row.text);
      },
    },
    async dispose() {
      user.close();
      await rm(directory, { recursive: true });
    },
  };
}

describe("sqliteStore()", () => {
  storeContract({ describe, test, expect, makeStore: () => makeStore(false) });
});

describe("sqliteStore({ effects })", () => {
  // Only completions with effects go another way here: fewer random runs see them often enough.
  storeContract({ describe, test, expect, makeStore: () => makeStore(true), fastCheck: { runs: 20 } });
});
