import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { cautionsAbout, prepareFile } from "../../src/stores/sqlite/connection.ts";
import { asStoreError } from "../../src/stores/sqlite/failures.ts";
import { type SqliteDatabase, type SqliteDriver, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { becomeLater } from "../support/later-version.ts";
import { connect, makeInbox, makePath, open, refusalOf, watchedDriver } from "./sqlite-place.ts";
import { contextOf, event, RULES, turn } from "./sqlite-turns.ts";

/** A logger, and the fields of the warnings it was given. */
function warningsOf() {
  const warnings: unknown[] = [];
  return { warnings, logger: { ...silentLogger, warn: (fields: object) => void warnings.push(fields) } };
}

describe("open()", () => {
  it("commits with synchronous FULL in WAL mode, on a private file with private side files (I2)", async () => {
    const path = makePath();
    const store = await open(sqliteStore(path));
    await store.step(turn({ accepts: [event("m")] }));
    for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600);
    const other = connect(path);
    expect(other.pragma("journal_mode", { simple: true })).toBe("wal");
    expect(other.pragma("auto_vacuum", { simple: true })).toBe(2);
  });

  it("forgets what the application's ANALYZE found of the inbox, and nothing that it found of other tables", async () => {
    const path = makePath();
    const young = await open(sqliteStore(path));
    await young.step(turn({ accepts: [event("m")] }));
    await young.close();
    const user = connect(path);
    user.exec("create table oncehookers (id integer, name text); create index by_name on oncehookers (name)");
    user.exec("insert into oncehookers values (1, 'a'); analyze");
    let plan: unknown;
    const query = "select 1 from oncehook_event where lane = 1 and seq = 1 and state = 0";
    const onOpen = (db: SqliteDatabase) => {
      plan = db.prepare(`explain query plan ${query}`).get();
    };
    await open(sqliteStore(path, { onOpen }));
    expect(plan).toMatchObject({ detail: expect.stringMatching(/^SEARCH oncehook_event USING INDEX/) });
    expect(user.prepare("select distinct tbl from sqlite_stat1").pluck().all()).toEqual(["oncehookers"]);
  });

  it("says that the path is a directory, and what to give", async () => {
    const path = dirname(makePath());
    chmodSync(path, 0o755);
    const message = `${path} is a directory: give the path of a file in it, such as ${join(path, "inbox.db")}.`;
    for (const rules of [RULES, "recorded"] as const) {
      const { warnings, logger } = warningsOf();
      const opening = sqliteStore(path).open({ ...contextOf(), rules, logger });
      await expect(opening).rejects.toMatchObject({ code: "unsafe_location", message });
      expect(warnings).toEqual([]);
    }
  });

  it("says of a file that is no database what it is, and nothing of its mode", async () => {
    const path = makePath();
    writeFileSync(path, "longer than a header, ".repeat(9), { mode: 0o644 });
    const { warnings, logger } = warningsOf();
    const message = expect.stringContaining("It is not a SQLite database: check the path.");
    await expect(sqliteStore(path).open({ ...contextOf(), logger })).rejects.toMatchObject({ message });
    expect(warnings).toEqual([]);
  });

  it.each(["synchronous", "journal_mode"])("refuses a driver that ignores %s (I2)", async (name) => {
    class Deaf extends Database {
      override pragma(source: string, options?: Database.PragmaOptions): unknown {
        return source.startsWith(`${name} =`) ? undefined : super.pragma(source, options);
      }
    }
    const store = sqliteStore(makePath(), { driver: Deaf as unknown as SqliteDriver });
    await expect(store.open(contextOf())).rejects.toMatchObject({ code: "not_durable" });
  });

  it("looks again after the first write and hourly, and accepts nothing more once it is not durable (I2)", async () => {
    const clock = createFakeClock();
    const { driver, connection } = watchedDriver();
    const store = await open(sqliteStore(makePath(), { driver }), { clock });
    await store.step(turn({ accepts: [event("a")] }));
    connection().pragma("synchronous = NORMAL");
    await store.step(turn({ accepts: [event("b")] }));
    await clock.advance(3_600_000);
    const refused = { code: "not_durable" };
    await expect(store.step(turn({ accepts: [event("c")] }))).rejects.toMatchObject(refused);
    await expect(store.step(turn({ accepts: [event("d")] }))).rejects.toMatchObject(refused);
  });

  it.each(["", ":memory:", "file:inbox.db"])("refuses %j, naming the memory store", (path) => {
    expect(() => sqliteStore(path)).toThrow(/memoryStore/);
  });

  it("refuses a directory that is not there, or in which anyone can replace files", async () => {
    const missing = join(dirname(makePath()), "missing", "inbox.db");
    expect(await refusalOf(missing)).toMatchObject({ code: "unsafe_location" });
    const directory = join(dirname(makePath()), "open");
    mkdirSync(directory);
    chmodSync(directory, 0o777);
    const store = sqliteStore(join(directory, "inbox.db"));
    const message = expect.stringContaining("chmod o-w");
    await expect(store.open(contextOf())).rejects.toMatchObject({ code: "unsafe_location", message });
    chmodSync(directory, 0o1777);
    await open(store);
  });

  it.runIf(process.platform === "linux").each([
    ["NFS", 0x6969],
    ["SMB", 0x517b],
    ["SMB", 0xff534d42],
    ["SMB", 0xfe534d42 | 0],
    ["9p", 0x01021997],
    ["FUSE", 0x65735546],
  ])("refuses %s (%i), naming the fix", (name, magic) => {
    expect(() => prepareFile(makePath(), () => magic)).toThrow(
      new RegExp(`${name}.*put the inbox on a local disk\\.$`),
    );
    expect(prepareFile(makePath(), () => 0xef53)).toContain("inbox.db");
  });

  it.runIf(process.platform === "linux").each([
    ["tmpfs", 0x01021994],
    ["ramfs", 0x858458f6],
    ["ramfs", 0x858458f6 | 0],
    ["overlayfs", 0x794c7630],
  ])("warns about %s (%i), which a restart may empty, naming the fix (I2)", (name, magic) => {
    const path = prepareFile(makePath());
    const message = expect.stringMatching(new RegExp(`${name}.*volume`));
    expect(cautionsAbout(path, () => magic)).toEqual([{ code: "ephemeral_disk", message }]);
    expect(cautionsAbout(path, () => 0xef53)).toEqual([]);
  });

  it.runIf(existsSync("/dev/shm"))("tells the logger of a file in memory at each open (I2)", async () => {
    const directory = mkdtempSync("/dev/shm/oncehook-");
    const { warnings, logger } = warningsOf();
    try {
      const store = sqliteStore(join(directory, "inbox.db"));
      await store.open(contextOf({ logger }));
      await store.close();
    } finally {
      rmSync(directory, { recursive: true });
    }
    expect(warnings).toEqual([{ code: "ephemeral_disk", location: `sqlite:${join(directory, "inbox.db")}` }]);
  });

  it.skipIf(process.platform === "win32")("warns about a file that others can read, and only then", async () => {
    const path = makePath();
    writeFileSync(path, "", { mode: 0o640 });
    const { warnings, logger } = warningsOf();
    await open(sqliteStore(path), { logger });
    expect(warnings).toContainEqual({ code: "file_mode", location: `sqlite:${path}`, mode: "640" });
    expect(cautionsAbout(path, () => 0xef53)).toMatchObject([
      { message: expect.stringContaining(`chmod 600 ${path}*`) },
    ]);
    chmodSync(path, 0o400);
    expect(cautionsAbout(path, () => 0xef53)).toEqual([]);
  });

  it("makes nothing for somebody who is no receiver, and leaves a file alone that is no inbox (no_inbox)", async () => {
    const missing = makePath();
    const refused = { code: "no_inbox", message: expect.stringContaining(missing) };
    expect(await refusalOf(missing, "recorded")).toMatchObject(refused);
    expect(existsSync(missing)).toBe(false);
    const foreign = makePath();
    connect(foreign).exec("create table theirs (id integer)");
    const before = readFileSync(foreign);
    expect(await refusalOf(foreign, "recorded")).toMatchObject({ code: "no_inbox" });
    expect(readFileSync(foreign)).toEqual(before);
  });

  it("answers `closed` before open and after close, refuses a second open, and ends what is under way", async () => {
    const store = sqliteStore(makePath());
    await expect(store.step(turn())).rejects.toMatchObject({ code: "closed" });
    await store.open(contextOf());
    await expect(store.open(contextOf())).rejects.toMatchObject({ code: "already_started" });
    const last = store.step(turn({ accepts: [event("m")] }));
    await Promise.all([store.close(), store.close()]);
    expect((await last).accepted).toMatchObject([{ outcome: "accepted" }]);
    await expect(store.stats()).rejects.toMatchObject({ code: "closed" });
  });
});

describe("migrations", () => {
  it('refuses an inbox without its schema with migrate: "check", and opens it once migrated', async () => {
    const path = makePath();
    const check = contextOf({ migrate: "check" });
    const message = expect.stringMatching(/: open it once with migrate: "auto"\.$/);
    await expect(sqliteStore(path).open(check)).rejects.toMatchObject({ code: "migration_needed", message });
    await makeInbox(path);
    await open(sqliteStore(path), { migrate: "check" });
  });

  it("brings an inbox of the version before to its schema once, though two open it at once, beside a process of that version", async () => {
    const path = makePath();
    const older = await open(sqliteStore(path));
    await older.step(turn({ accepts: [event("m", 1)] }));
    onTestFinished(becomeLater());
    const checked = sqliteStore(path).open(contextOf({ migrate: "check" }));
    await expect(checked).rejects.toMatchObject({ code: "migration_needed", fields: { schema: 1, newest: 2 } });
    const [newer] = await Promise.all([open(sqliteStore(path)), open(sqliteStore(path))]);
    const meta = "select key, value from oncehook_meta where key in ('schema', 'min_reader') order by key";
    expect(Object.fromEntries(connect(path).prepare(meta).raw().all() as [string, number][])).toEqual({
      min_reader: 1,
      schema: 2,
    });
    await older.step(turn({ accepts: [event("m", 2)] }));
    const { leases } = await newer.step(turn({ claim: { limit: 1 } }));
    expect(leases).toMatchObject([{ sequence: 1, attempt: 1 }]);
    expect((await newer.stats()).counters.accepted).toBe(2);
    await open(sqliteStore(path), { migrate: "check" });
  });

  it("opens an inbox of a newer version that only added to it, and works", async () => {
    const path = await makeInbox();
    const db = connect(path);
    db.exec("alter table oncehook_event add column later text; create table oncehook_later (id integer primary key)");
    db.exec("update oncehook_meta set value = 99 where key = 'schema'");
    const older = await open(sqliteStore(path), { migrate: "check" });
    const { accepted } = await older.step(turn({ accepts: [event("m")] }));
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
  });

  it("refuses an inbox of a newer version that changed it", async () => {
    const path = await makeInbox();
    connect(path).exec("update oncehook_meta set value = 99 where key in ('schema', 'min_reader')");
    expect(await refusalOf(path)).toMatchObject({ code: "inbox_too_new" });
  });
});

// What a caller of the store gets for an error of the driver.

describe("asStoreError()", () => {
  it.each([
    ["SQLITE_FULL", "store_full", "The disk is full: free some space."],
    ["SQLITE_BUSY_SNAPSHOT", "store_unavailable", "kept the inbox sqlite:a.db locked for too long"],
    ["SQLITE_LOCKED", "store_unavailable", "kept the inbox sqlite:a.db locked for too long"],
    ["SQLITE_IOERR_FSYNC", "store_unavailable", "cannot be used now (SQLITE_IOERR_FSYNC)."],
    ["SQLITE_NOTADB", "store_unavailable", "(SQLITE_NOTADB). It is not a SQLite database: check the path."],
    ["SQLITE_CANTOPEN_FULLPATH", "store_unavailable", "that this user may read and write it."],
    ["SQLITE_READONLY_DIRECTORY", "store_unavailable", "the right to write to the file and its directory."],
    ["SQLITE_CORRUPT_INDEX", "store_unavailable", "The file is damaged: restore a backup."],
  ])("tells %s as %s", (sqliteCode, code, message) => {
    const cause = Object.assign(new Error("of the driver"), { code: sqliteCode });
    const told = asStoreError(cause, "sqlite:a.db");
    expect(told).toBeInstanceOf(StoreError);
    expect(told).toMatchObject({ code, cause, message: expect.stringContaining(message) });
  });

  it.each([new StoreError("store_full", "full"), new Error("an application's own"), "a text", null])(
    "leaves %s as it is",
    (error) => {
      expect(asStoreError(error, "sqlite:a.db")).toBe(error);
    },
  );
});
