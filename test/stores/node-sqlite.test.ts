/** The inbox on the SQLite that Node itself brings, where it does. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { installedVersion, nodeSqliteDriver } from "../../src/internal/sqlite-driver.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { storeContract } from "../contracts/store.ts";
import { nodeSqliteConnections } from "./node-sqlite-connections.ts";
import { contextOf } from "./sqlite-turns.ts";
import { newFolder, sqliteUnderTest } from "./sqlite-under-test.ts";

const driver = nodeSqliteDriver();

if (driver === null) {
  test("sqliteStore({ driver: node:sqlite })", ({ skip }) => {
    skip(`Node ${process.versions.node} has no node:sqlite; it is there from 22.13 on`);
  });
} else {
  describe("sqliteStore({ driver: node:sqlite })", () => {
    storeContract({
      describe,
      test,
      expect,
      makeStore: () => sqliteUnderTest(driver, { driver }),
      fastCheck: { runs: 60 },
    });
  });
  describe("nodeSqliteDriver()", () => nodeSqliteConnections(driver));
  describe("where better-sqlite3 is not installed", () => {
    test("sqliteStore() works without it", async ({ skip }) => {
      if (installedVersion() !== null) skip("better-sqlite3 is installed; a row of test:matrix goes without");
      const directory = await newFolder();
      const store = sqliteStore(join(directory, "inbox.db"), { minFreeBytes: 0 });
      await store.open(contextOf());
      expect(await store.nextDue()).toBe(null);
      await store.close();
      await rm(directory, { recursive: true });
    });
  });
}
