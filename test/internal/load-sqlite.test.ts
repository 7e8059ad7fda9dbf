/** Which SQLite driver is loaded, and what is said where none works. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { installedVersion, loadBetterSqlite3, refuseIncompatible } from "../../src/internal/better-sqlite3.ts";
import { chooseDriver, loadDriver } from "../../src/internal/load-sqlite.ts";
import { nodeSqliteDriver } from "../../src/internal/node-sqlite.ts";

const none = () => null;

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

describe("loadBetterSqlite3()", () => {
  it("looks at the version before it loads anything", async () => {
    await expect(loadBetterSqlite3("11.0.0")).rejects.toMatchObject({ code: "incompatible_peer" });
  });

  it("says how one that does not load is built again", async () => {
    vi.doMock("better-sqlite3", () => {
      throw new Error("It was compiled against a different Node.js version.");
    });
    onTestFinished(() => vi.doUnmock("better-sqlite3"));
    await expect(loadBetterSqlite3("12.0.0")).rejects.toMatchObject({
      code: "incompatible_peer",
      message: 'better-sqlite3 is installed but does not load: run "npm rebuild better-sqlite3".',
      cause: expect.any(Error),
    });
  });

  it("loads the one that is installed", async () => {
    const version = installedVersion();
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
    const Database = await loadBetterSqlite3(version ?? "");
    const db = new Database(":memory:", { timeout: 5, fileMustExist: false });
    expect(db.prepare("select 1 as one").get()).toEqual({ one: 1 });
    db.close();
    expect(await loadDriver()).toBe(Database);
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
  it("takes better-sqlite3 where it is installed, whatever Node brings", async () => {
    class Own {}
    expect(await chooseDriver(installedVersion(), () => Own as never)).toBe(await loadDriver());
  });

  it("takes Node's own where it is not", async () => {
    class Own {}
    expect(await chooseDriver(null, () => Own as never)).toBe(Own);
  });

  it("says what to install where there is neither", async () => {
    await expect(chooseDriver(null, none)).rejects.toMatchObject({
      code: "missing_peer",
      message: expect.stringMatching(/or Node 22\.13 or later, .* run "npm install better-sqlite3@12"/),
      fields: { nodeVersion: process.versions.node },
    });
  });
});
