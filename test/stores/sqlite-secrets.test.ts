/** Webhook secrets in a SQLite file: durable, and beside an open inbox. */
import { existsSync, statSync, writeFileSync } from "node:fs";
import { inspect } from "node:util";
import Database from "better-sqlite3";
import { describe, expect, it, test } from "vitest";
import { MIGRATIONS, migrate } from "../../src/stores/sqlite/schema.ts";
import { type SqliteDriver, sqliteSecrets, sqliteStore } from "../../src/stores/sqlite.ts";
import { secretStoreContract } from "../../src/testing/contracts/secret-store.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { failureOf } from "../support/failure-of.ts";
import { makePath, open } from "./sqlite-place.ts";
import { createSealing, FULL, SECRET, SLOTS, secretsAt } from "./sqlite-secrets-place.ts";
import { contextOf, event, RULES, turn } from "./sqlite-turns.ts";

describe("sqliteSecrets() with a key file", () => {
  secretStoreContract({
    test,
    expect,
    async makeStore() {
      const path = makePath();
      return { store: secretsAt(path), reopen: async () => secretsAt(path), dispose: async () => {} };
    },
  });
});

describe("sqliteSecrets() with a sealing", () => {
  secretStoreContract({
    test,
    expect,
    async makeStore() {
      const path = makePath();
      const make = () => secretsAt(path, { sealing: createSealing() });
      return { store: make(), reopen: async () => make(), dispose: async () => {} };
    },
  });

  it("names the kind as the context, and gets the same bytes back", async () => {
    const sealing = createSealing();
    const secrets = secretsAt(makePath(), { sealing });
    await secrets.write("inbound", SLOTS, 0);
    await secrets.write("delivery", SLOTS, 0);
    expect(sealing.contexts).toEqual(["oncehook secret inbound", "oncehook secret delivery"]);
  });

  it("tells of what seal() and open() throw no more than name and code", async () => {
    const thrown = Object.assign(new Error(`denied: ${SECRET}`, { cause: SECRET }), { code: "AccessDenied" });
    const sealing = createSealing();
    const secrets = secretsAt(makePath(), { sealing });
    sealing.seal = () => Promise.reject(thrown);
    const unsealed = await failureOf(secrets.write("inbound", SLOTS, 0));
    sealing.seal = async (plain) => plain;
    await secrets.write("inbound", SLOTS, 0);
    sealing.open = () => Promise.reject(thrown);
    const unopened = await failureOf(secrets.read("inbound"));
    expect([unsealed, unopened]).toMatchObject([{ code: "store_unavailable" }, { code: "secret_unreadable" }]);
    for (const failure of [unsealed, unopened]) {
      expect(String(failure)).toContain("(Error, AccessDenied)");
      expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain(SECRET);
    }
  });

  it("opens what has not changed once, and each reader gets values of its own", async () => {
    let opens = 0;
    const sealing = createSealing();
    const { open } = sealing;
    sealing.open = (sealed, context) => {
      opens++;
      return open(sealed, context);
    };
    const path = makePath();
    const secrets = secretsAt(path, { sealing });
    const other = secretsAt(path, { sealing: createSealing() });
    for (const kind of ["inbound", "delivery"] as const) await secrets.write(kind, FULL, 0);
    for (const kind of ["inbound", "delivery", "inbound", "delivery"] as const) {
      expect(await secrets.read(kind)).toEqual({ ...FULL, revision: 1 });
    }
    expect(opens).toBe(2);
    expect((await secrets.read("inbound"))?.previous).not.toBe((await secrets.read("inbound"))?.previous);
    await other.write("delivery", SLOTS, 1);
    expect(await secrets.read("delivery")).toEqual({ ...SLOTS, revision: 2 });
    expect(opens).toBe(3);
  });

  it("takes the encoding that makes keys of the texts, and refuses a text that is none (DLV-14)", async () => {
    const path = makePath();
    const secrets = secretsAt(path, { encoding: "hex" });
    expect(await failureOf(secrets.write("inbound", SLOTS, 0))).toMatchObject({ code: "invalid_secret" });
    expect(await secrets.write("inbound", { ...SLOTS, current: "ab".repeat(16) }, 0)).toBe(true);
    expect((await secrets.read("inbound"))?.current).toBe("ab".repeat(16));
    await secretsAt(path).write("delivery", SLOTS, 0);
    expect(await failureOf(secrets.read("delivery"))).toMatchObject({ code: "secret_unreadable" });
  });

  it("opens again after open() failed", async () => {
    const sealing = createSealing();
    const secrets = secretsAt(makePath(), { sealing });
    await secrets.write("inbound", SLOTS, 0);
    const { open } = sealing;
    sealing.open = () => Promise.reject(new Error("down"));
    expect(await failureOf(secrets.read("inbound"))).toMatchObject({ code: "secret_unreadable" });
    sealing.open = open;
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
  });

  it("writes nothing when seal() fails or gives no bytes", async () => {
    const cause = new Error(`denied: ${SECRET}`);
    const answers = [() => Promise.reject(cause), () => "sealed" as unknown as Uint8Array, () => new Uint8Array()];
    for (const seal of answers) {
      const secrets = secretsAt(makePath(), { sealing: { ...createSealing(), seal } });
      expect(String(await failureOf(secrets.write("inbound", SLOTS, 0)))).toMatch(/nothing was written/);
      expect(await secrets.read("inbound")).toBeNull();
    }
  });
});

describe("the file", () => {
  it("is not touched before the first use, and then made private", async () => {
    const path = makePath();
    const secrets = secretsAt(path);
    expect(existsSync(path)).toBe(false);
    await secrets.write("inbound", SLOTS, 0);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("may be made by the secrets first: a receiver of any name opens it then", async () => {
    const path = makePath();
    await secretsAt(path).write("inbound", SLOTS, 0);
    const store = await open(sqliteStore(path), { rules: { ...RULES, name: "billing" }, migrate: "check" });
    expect((await store.step(turn({ accepts: [event("m")] }))).accepted).toMatchObject([{ outcome: "accepted" }]);
  });

  it("may be open in a receiver, whose heartbeats are its sightings", async () => {
    const path = makePath();
    const store = await open(sqliteStore(path));
    const secrets = secretsAt(path);
    expect(await secrets.receivers()).toEqual([]);
    await store.heartbeat({ keyringVersion: "v1", counters: { "slot:previous": 2 } });
    expect(await secrets.receivers()).toMatchObject([
      { pid: process.pid, keyringVersion: "v1", counters: { "slot:previous": 2 } },
    ]);
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
  });

  it("opens with synchronous FULL, and with no driver that ignores it (I2)", async () => {
    const driver = class extends Database {
      override pragma(source: string, options?: Database.PragmaOptions): unknown {
        return source.startsWith("synchronous =") ? undefined : super.pragma(source, options);
      }
    } as unknown as SqliteDriver;
    const secrets = secretsAt(makePath(), { driver });
    expect(await failureOf(secrets.read("inbound"))).toMatchObject({ code: "not_durable" });
  });

  it("looks again after each write, and tells of one that a power cut may undo (I2)", async () => {
    let connection: InstanceType<typeof Database> | undefined;
    const driver = class extends Database {
      constructor(...args: ConstructorParameters<typeof Database>) {
        super(...args);
        connection = this;
      }
    } as unknown as SqliteDriver;
    const secrets = secretsAt(makePath(), { driver });
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
    connection?.pragma("synchronous = NORMAL");
    expect(await failureOf(secrets.write("inbound", SLOTS, 1))).toMatchObject({ code: "not_durable" });
  });

  it("waits for another connection's lock on the clock, not on the event loop, and gives up in the end", async () => {
    const path = makePath();
    const clock = createFakeClock();
    const secrets = secretsAt(path, { clock, busyTimeoutMs: 1_000 });
    await secrets.write("inbound", SLOTS, 0);
    const other = new Database(path);
    other.exec("begin immediate");
    const waited = secrets.write("inbound", FULL, 1);
    await clock.advance(500);
    expect((await secrets.read("inbound"))?.revision).toBe(1);
    other.exec("rollback");
    await clock.advance(100);
    expect(await waited).toBe(true);
    other.exec("begin immediate");
    const given = failureOf(secrets.write("inbound", FULL, 2));
    await clock.advance(2_000);
    expect(await given).toMatchObject({ code: "store_unavailable" });
    other.close();
    expect((await secrets.read("inbound"))?.revision).toBe(2);
  });

  it("is tried again after it could not be opened", async () => {
    const path = makePath();
    writeFileSync(path, "This is a letter, and no database. ".repeat(100));
    const secrets = secretsAt(path);
    expect(await failureOf(secrets.read("inbound"))).toMatchObject({ code: "store_unavailable" });
    writeFileSync(path, "");
    expect(await secrets.read("inbound")).toBeNull();
  });

  it("answers `closed` after close, and what was under way ends before", async () => {
    const path = makePath();
    const secrets = secretsAt(path);
    const last = secrets.write("inbound", SLOTS, 0);
    await Promise.all([secrets.close(), secrets.close()]);
    expect(await last).toBe(true);
    for (const call of [secrets.read("inbound"), secrets.write("inbound", SLOTS, 1), secrets.receivers()]) {
      expect(await failureOf(call)).toMatchObject({ code: "closed" });
    }
    expect(existsSync(`${path}-wal`)).toBe(false);
  });

  it.each([":memory:", ""])("can not be %j", (path) => {
    expect(() => sqliteSecrets(path, { sealing: createSealing() })).toThrow(/memorySecrets/);
  });
});

describe("migration 2", () => {
  const SCHEMA_1 = MIGRATIONS.slice(0, 1);

  /** A file with an inbox as the version before left it. */
  function makeOlder(path: string): void {
    const db = new Database(path);
    migrate(db, "auto", SCHEMA_1);
    db.close();
  }

  it('is asked for by migrate: "check", of the inbox and of the secrets, and made by "auto"', async () => {
    const path = makePath();
    makeOlder(path);
    const secrets = secretsAt(path, { migrate: "check" });
    expect(await failureOf(secrets.read("inbound"))).toMatchObject({ code: "migration_needed" });
    const checked = sqliteStore(path).open(contextOf({ migrate: "check" }));
    await expect(checked).rejects.toMatchObject({
      code: "migration_needed",
      fields: { schema: 1, newest: MIGRATIONS.length },
    });
    await secretsAt(path).write("inbound", SLOTS, 0);
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
    await open(sqliteStore(path), { migrate: "check" });
  });

  it("leaves the inbox to the version before: it opens the file and changes nothing", async () => {
    const path = makePath();
    await secretsAt(path).write("inbound", SLOTS, 0);
    const db = new Database(path);
    migrate(db, "check", SCHEMA_1);
    const meta = "select key, value from oncehook_meta where key in ('schema', 'min_reader') order by key";
    expect(db.prepare(meta).raw().all()).toEqual([
      ["min_reader", 1],
      ["schema", MIGRATIONS.length],
    ]);
    db.close();
  });

  it("keeps what the version before had accepted", async () => {
    const path = makePath();
    makeOlder(path);
    const older = new Database(path);
    older.exec("insert into oncehook_audit (at, by, act, detail) values (1, 'somebody', 'erase', '{}')");
    older.close();
    const store = await open(sqliteStore(path));
    expect(await store.audit(10)).toHaveLength(1);
  });
});
