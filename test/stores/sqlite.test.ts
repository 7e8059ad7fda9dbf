import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { storeContract } from "../contracts/store.ts";
import { sized } from "../setup/form.ts";
import { sqliteUnderTest } from "./sqlite-under-test.ts";

describe("sqliteStore()", () => {
  storeContract({
    describe,
    test,
    expect,
    makeStore: () => sqliteUnderTest(Database),
    fastCheck: { runs: sized({ quick: 25, full: 300 }) },
  });
});

describe("sqliteStore({ effects })", () => {
  const makeStore = () => sqliteUnderTest(Database, { sharesConnection: true });
  // Only completions with effects go another way here: fewer random runs see them often enough.
  storeContract({ describe, test, expect, makeStore, fastCheck: { runs: sized({ quick: 4, full: 20 }) } });
});
