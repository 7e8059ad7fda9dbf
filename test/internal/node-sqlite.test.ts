/** The driver over `node:sqlite`, on every Node: what stands for that module here is the same SQLite in another binding. */
import { describe, expect, it } from "vitest";
import { driverOver } from "../../src/internal/sqlite-driver.ts";
import { nodeSqliteConnections } from "../stores/node-sqlite-connections.ts";
import { nodeSqliteStandIn } from "./node-sqlite-stand-in.ts";

describe.each([
  ["that says whether it is in a transaction", true],
  ["of before Node 22.16, that does not", false],
])("a connection %s", (_, tellsTransactions) => {
  nodeSqliteConnections(driverOver(nodeSqliteStandIn({ tellsTransactions })));
});

it("a connection keeps to foreign keys, whatever the default of this Node", () => {
  const { DatabaseSync } = nodeSqliteStandIn({ tellsTransactions: true });
  const opened: unknown[] = [];
  class Heard extends DatabaseSync {
    constructor(path: string, options: { readonly enableForeignKeyConstraints: boolean }) {
      super(path, options);
      opened.push([path, options]);
    }
  }
  new (driverOver({ DatabaseSync: Heard }))(":memory:", { timeout: 5, fileMustExist: false }).close();
  expect(opened).toEqual([[":memory:", { enableForeignKeyConstraints: true }]]);
});

describe("a connection", () => {
  function scene() {
    const { DatabaseSync } = nodeSqliteStandIn({ tellsTransactions: true });
    const closes: string[] = [];
    class Heard extends DatabaseSync {
      override close(): void {
        closes.push("closed");
        super.close();
      }
    }
    return { closes, db: new (driverOver({ DatabaseSync: Heard }))(":memory:", { timeout: 5, fileMustExist: false }) };
  }

  it("gives a pragma's rows, or its value alone", () => {
    const { db } = scene();
    db.pragma("user_version = 7");
    expect(db.pragma("user_version")).toEqual([{ user_version: 7 }]);
    expect(db.pragma("user_version", { simple: false })).toEqual([{ user_version: 7 }]);
    expect(db.pragma("user_version", { simple: true })).toBe(7);
    expect(db.pragma("foreign_key_check", { simple: true })).toBeUndefined();
    expect(db.pragma("busy_timeout", { simple: true })).toBe(5);
    db.close();
  });

  it("closes once", () => {
    const { db, closes } = scene();
    expect(db.open).toBe(true);
    db.close();
    db.close();
    expect([db.open, closes]).toEqual([false, ["closed"]]);
  });
});

describe("an error of SQLite", () => {
  /** What a caller of `exec` gets when SQLite throws this. */
  function thrownFor(cause: unknown): unknown {
    const { DatabaseSync } = nodeSqliteStandIn({ tellsTransactions: true });
    class Failing extends DatabaseSync {
      override exec(): void {
        throw cause;
      }
    }
    const db = new (driverOver({ DatabaseSync: Failing }))(":memory:", { timeout: 5, fileMustExist: false });
    try {
      db.exec("select 1");
      return undefined;
    } catch (error) {
      return error;
    } finally {
      db.close();
    }
  }

  it.each([
    [13, "SQLITE_FULL"],
    [8 | (3 << 8), "SQLITE_READONLY"],
    [522, "SQLITE_IOERR_SHORT_READ"],
    [266, "SQLITE_IOERR"],
    [200, "SQLITE_ERROR"],
  ])("with the number %i is named %s", (errcode, code) => {
    const cause = Object.assign(new Error("refused"), { code: "ERR_SQLITE_ERROR", errcode });
    expect(thrownFor(cause)).toBe(cause);
    expect(cause.code).toBe(code);
  });

  it.each([
    new TypeError("The database is not open"),
    Object.assign(new Error("a number that is none"), { errcode: "13" }),
    { errcode: 13 },
  ])("is left as it is when it is of another kind (%#)", (cause) => {
    expect(thrownFor(cause)).toBe(cause);
    expect(cause).not.toHaveProperty("code");
  });
});
