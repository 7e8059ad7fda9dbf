/** Which SQLite driver is loaded, and what is said where none works. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  chooseDriver,
  connect,
  driverOver,
  installedVersion,
  loadBetterSqlite3,
  loadDriver,
  nodeSqliteDriver,
  refuseIncompatible,
  type SqliteDriver,
} from "../../src/internal/sqlite-driver.ts";
import { nodeSqliteConnections } from "../stores/node-sqlite-connections.ts";
import { nodeSqliteStandIn } from "./node-sqlite-stand-in.ts";

describe("refuseIncompatible()", () => {
  it.each([
    ["12.0.0", "20.19.0"],
    ["12.4.1", "24.1.0"],
    ["13.0.0", "22.0.0"],
    ["14.1.0", "24.1.0"],
  ])("takes better-sqlite3 %s on Node %s", (driver, node) => {
    expect(() => refuseIncompatible(driver, node)).not.toThrow();
  });

  it.each([
    ["11.9.9", "20.19.0"],
    ["11.9.9", "24.1.0"],
    ["13.0.0", "20.19.0"],
    ["14.0.0", "21.9.0"],
  ])("refuses better-sqlite3 %s on Node %s, and names one that works", (driverVersion, nodeVersion) => {
    const remedy = 'run "npm install better-sqlite3@12".';
    expect(() => refuseIncompatible(driverVersion, nodeVersion)).toThrow(
      expect.objectContaining({
        code: "incompatible_peer",
        message: `better-sqlite3 ${driverVersion} does not work on Node ${nodeVersion}: ${remedy}`,
        fields: { driverVersion, nodeVersion },
      }),
    );
  });
});

/** What `import` rejects with. */
function rejects(error: Error): void {
  vi.doMock("better-sqlite3", () => {
    throw error;
  });
  onTestFinished(() => void vi.doUnmock("better-sqlite3"));
}

const DOES_NOT_LOAD = {
  code: "incompatible_peer",
  message:
    'better-sqlite3 does not load: run "npm rebuild better-sqlite3". In a bundle, keep better-sqlite3 external or pass `driver`.',
  cause: expect.any(Error),
};

describe("loadBetterSqlite3()", () => {
  it("looks at the version before it loads anything", async () => {
    await expect(loadBetterSqlite3("11.0.0")).rejects.toMatchObject({ code: "incompatible_peer" });
  });

  it.each([["12.0.0"], [null]])("says how one that does not load is built again (%s)", async (version) => {
    rejects(new Error('Dynamic require of "fs" is not supported'));
    await expect(loadBetterSqlite3(version)).rejects.toMatchObject(DOES_NOT_LOAD);
  });

  it("loads the one that is installed", async () => {
    const version = installedVersion();
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
    const Database = (await loadBetterSqlite3(version)) as SqliteDriver;
    const db = new Database(":memory:", { timeout: 5, fileMustExist: false });
    expect(db.prepare("select 1 as one").get()).toEqual({ one: 1 });
    db.close();
    expect(await loadDriver()).toBe(Database);
  });
});

describe("connect()", () => {
  const failing = (error: Error) =>
    class {
      constructor() {
        throw error;
      }
    } as unknown as SqliteDriver;
  const options = { timeout: 5, fileMustExist: true };

  it.each([
    ["a bundle that holds better-sqlite3", new Error("Could not locate the bindings file. Tried: …")],
    ["a bundle of ES modules", new ReferenceError("__filename is not defined in ES module scope")],
    [
      "a bundle without its parts",
      Object.assign(new Error("Cannot find module 'bindings'"), { code: "MODULE_NOT_FOUND" }),
    ],
    ["another Node", Object.assign(new Error("NODE_MODULE_VERSION 131"), { code: "ERR_DLOPEN_FAILED" })],
  ])("says what to do where the compiled part does not load: %s", (_where, error) => {
    expect(() => connect(failing(error), "inbox.db", options)).toThrow(expect.objectContaining(DOES_NOT_LOAD));
  });

  it("leaves what SQLite says as it is", () => {
    const error = Object.assign(new Error("unable to open database file"), { code: "SQLITE_CANTOPEN" });
    expect(() => connect(failing(error), "inbox.db", options)).toThrow(error);
  });
});

describe("nodeSqliteDriver()", () => {
  it("is there exactly where this Node has SQLite of its own", () => {
    const hasOwn = process.getBuiltinModule("node:sqlite") !== undefined;
    expect(typeof nodeSqliteDriver()).toBe(hasOwn ? "function" : "object");
    if (!hasOwn) expect(nodeSqliteDriver()).toBe(null);
  });
});

describe("chooseDriver()", () => {
  class Installed {}
  class Own {}

  it("takes better-sqlite3 where it is installed, whatever Node brings, and Node's own where it is not", () => {
    const looking = () => {
      throw new Error("It was looked for.");
    };
    expect(chooseDriver(Installed as never, looking)).toBe(Installed);
    expect(chooseDriver(null, () => Own as never)).toBe(Own);
  });

  it("says what to install where there is neither", () => {
    expect(() => chooseDriver(null, () => null)).toThrow(
      expect.objectContaining({
        code: "missing_peer",
        message: expect.stringMatching(/or Node 22\.13 or later, .* run "npm install better-sqlite3@12"/),
        fields: { nodeVersion: process.versions.node },
      }),
    );
  });
});

// The driver over `node:sqlite`, on every Node: what stands for that module here is the same SQLite in another binding.

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
