/** Webhook secrets in a SQLite file: durable, and beside an open inbox. */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { inspect } from "node:util";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { SetupError, StoreError } from "../../src/errors.ts";
import { type SqliteDriver, type SqliteSecretsOptions, sqliteSecrets, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { secretStoreContract } from "../contracts/secret-store.ts";
import { failureOf } from "../support/failure-of.ts";
import { becomeLater } from "../support/later-version.ts";
import { connect, makePath, open, watchedDriver } from "./sqlite-place.ts";
import { createSealing, FULL, makeKeyFile, NEXT, OLD, SECRET, SLOTS, secretsAt } from "./sqlite-secrets-place.ts";
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
  it("names the kind as the context, and gets the same bytes back", async () => {
    const sealing = createSealing();
    const secrets = secretsAt(makePath(), { sealing });
    await secrets.write("inbound", SLOTS, 0);
    await secrets.write("delivery", SLOTS, 0);
    expect(sealing.contexts).toEqual(["oncehook secret inbound", "oncehook secret delivery"]);
  });

  it("tells of what seal() and open() throw no more than name and code, and opens again once open() works", async () => {
    const thrown = Object.assign(new Error(`denied: ${SECRET}`, { cause: SECRET }), { code: "AccessDenied" });
    const sealing = createSealing();
    const { seal, open } = sealing;
    const secrets = secretsAt(makePath(), { sealing });
    sealing.seal = () => Promise.reject(thrown);
    const unsealed = await failureOf(secrets.write("inbound", SLOTS, 0));
    sealing.seal = seal;
    await secrets.write("inbound", SLOTS, 0);
    sealing.open = () => Promise.reject(thrown);
    const unopened = await failureOf(secrets.read("inbound"));
    expect([unsealed, unopened]).toMatchObject([{ code: "store_unavailable" }, { code: "secret_unreadable" }]);
    for (const failure of [unsealed, unopened]) {
      expect(String(failure)).toContain("(Error, AccessDenied)");
      expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain(SECRET);
    }
    sealing.open = open;
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
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
    await store.heartbeat({ keyringVersion: "v1", counters: { "slot:service:previous": 2 } });
    expect(await secrets.receivers()).toMatchObject([
      { pid: process.pid, keyringVersion: "v1", counters: { "slot:service:previous": 2 } },
    ]);
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
  });

  it("opens with no driver that ignores synchronous FULL, and looks again after each write (I2)", async () => {
    class Deaf extends Database {
      override pragma(source: string, options?: Database.PragmaOptions): unknown {
        return source.startsWith("synchronous =") ? undefined : super.pragma(source, options);
      }
    }
    const deaf = secretsAt(makePath(), { driver: Deaf as unknown as SqliteDriver });
    expect(await failureOf(deaf.read("inbound"))).toMatchObject({ code: "not_durable" });
    const { driver, connection } = watchedDriver();
    const secrets = secretsAt(makePath(), { driver });
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
    connection().pragma("synchronous = NORMAL");
    expect(await failureOf(secrets.write("inbound", SLOTS, 1))).toMatchObject({ code: "not_durable" });
  });

  it("waits for another connection's lock on the clock, not on the event loop, and gives up in the end", async () => {
    const path = makePath();
    const clock = createFakeClock();
    const secrets = secretsAt(path, { clock, busyTimeoutMs: 1_000 });
    await secrets.write("inbound", SLOTS, 0);
    const other = connect(path);
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
    other.exec("rollback");
    expect((await secrets.read("inbound"))?.revision).toBe(2);
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

describe("a schema of a later version", () => {
  it('is asked for by migrate: "check", of the inbox and of the secrets, and made by "auto", which keeps both', async () => {
    const path = makePath();
    const older = await open(sqliteStore(path));
    await older.step(turn({ accepts: [event("m")] }));
    await older.close();
    await secretsAt(path).write("inbound", SLOTS, 0);
    onTestFinished(becomeLater());
    const secrets = secretsAt(path, { migrate: "check" });
    const needed = { code: "migration_needed", fields: { schema: 1, newest: 2 } };
    expect(await failureOf(secrets.read("inbound"))).toMatchObject(needed);
    await expect(sqliteStore(path).open(contextOf({ migrate: "check" }))).rejects.toMatchObject(needed);
    expect(await secretsAt(path).read("inbound")).toEqual({ ...SLOTS, revision: 1 });
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
    const store = await open(sqliteStore(path), { migrate: "check" });
    expect((await store.find({ limit: 10 })).items).toHaveLength(1);
  });
});

describe("sealing", () => {
  it("leaves no secret in the database, its log or its shared memory, also after a replacement", async () => {
    const path = makePath();
    const secrets = secretsAt(path);
    await secrets.write("delivery", FULL, 0);
    await secrets.write("inbound", FULL, 0);
    await secrets.write("delivery", { ...FULL, current: NEXT }, 1);
    for (const file of [path, `${path}-wal`, `${path}-shm`]) {
      const bytes = readFileSync(file);
      expect(bytes.length).toBeGreaterThan(0);
      for (const secret of [SECRET, OLD, NEXT].map((text) => Buffer.from(text))) {
        for (const trace of [secret, secret.toString("base64"), secret.toString("hex")]) {
          expect(bytes.includes(trace), file).toBe(false);
        }
      }
      expect(statSync(file).mode & 0o777).toBe(0o600);
    }
  });

  it("is another each time, so that equal secrets do not show", async () => {
    const path = makePath();
    const secrets = secretsAt(path);
    await secrets.write("inbound", SLOTS, 0);
    await secrets.write("delivery", SLOTS, 0);
    const rows = connect(path).prepare("select sealed from oncehook_secret").pluck().all() as Buffer[];
    expect(rows).toHaveLength(2);
    expect(rows[0]?.equals(rows[1] ?? Buffer.alloc(0))).toBe(false);
  });

  it.each([
    ["cut", "substr(sealed, 1, 20)"],
    [
      "changed in one byte",
      `substr(sealed, 1, 40) || iif(substr(sealed, 41, 1) = x'00', x'01', x'00') || substr(sealed, 42)`,
    ],
    ["of another version", "x'02' || substr(sealed, 2)"],
    ["of the other kind", "(select sealed from oncehook_secret where kind = 'delivery')"],
    ["empty", "x''"],
  ])("answers `secret_unreadable` for what is %s, and reads the other kind", async (_, sealed) => {
    const path = makePath();
    const secrets = secretsAt(path);
    await secrets.write("inbound", SLOTS, 0);
    await secrets.write("delivery", FULL, 0);
    connect(path).exec(`update oncehook_secret set sealed = cast(${sealed} as blob) where kind = 'inbound'`);
    const failure = await failureOf(secrets.read("inbound"), StoreError);
    expect(failure).toMatchObject({ code: "secret_unreadable" });
    expect(await secrets.read("delivery")).toEqual({ ...FULL, revision: 1 });
  });

  it("answers `secret_unreadable` for another key, names the likely cause, and shows no key", async () => {
    const path = makePath();
    await secretsAt(path).write("inbound", SLOTS, 0);
    const key = randomBytes(32).toString("hex");
    const other = secretsAt(path, { keyFile: makeKeyFile(makePath(), key) });
    const failure = await failureOf(other.read("inbound"));
    expect(failure).toMatchObject({
      code: "secret_unreadable",
      message: expect.stringMatching(/"keyFile" holds another key/),
    });
    expect(inspect([failure, other], { depth: 9, showHidden: true })).not.toContain(key);
  });
});

describe("the key file", () => {
  const HEX = randomBytes(32);

  it.each([
    ["hex", HEX.toString("hex")],
    ["capital hex with a line break", `${HEX.toString("hex").toUpperCase()}\n`],
    ["base64", HEX.toString("base64")],
    ["base64url without padding", `${HEX.toString("base64url")}\r\n`],
  ])("may be %s", async (_, text) => {
    const path = makePath();
    await secretsAt(path, { keyFile: makeKeyFile(path, HEX.toString("hex")) }).write("inbound", SLOTS, 0);
    const secrets = secretsAt(path, { keyFile: makeKeyFile(path, text, 0o400) });
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
  });

  it.each([
    ["empty", "", 0o600, "invalid_secret"],
    ["of 31 bytes", HEX.subarray(1).toString("hex"), 0o600, "invalid_secret"],
    ["of 33 bytes", `${HEX.toString("hex")}00`, 0o600, "invalid_secret"],
    ["base64 with a typing error", HEX.toString("base64").replace(/.=$/, "!="), 0o600, "invalid_secret"],
    ["raw bytes", HEX.toString("latin1"), 0o600, "invalid_secret"],
    ["a large file", HEX.toString("hex").repeat(100), 0o600, "invalid_secret"],
    ["readable by others than its group", HEX.toString("hex"), 0o604, "unsafe_location"],
  ])("is refused when it is %s, and never shown", async (_, text, mode, code) => {
    const path = makePath();
    const make = async () => secretsAt(path, { keyFile: makeKeyFile(path, text, mode) });
    const refused = await failureOf(make(), SetupError);
    expect(refused).toMatchObject({ code });
    if (text !== "") expect(inspect(refused, { depth: 9 })).not.toContain(text.slice(0, 20));
  });

  it.each<[string, object]>([
    ["neither", {}],
    ["both", { keyFile: "webhook.key", sealing: createSealing() }],
    ["a file that is not there", { keyFile: "/nowhere/webhook.key" }],
    ["an empty path", { keyFile: "" }],
  ])("and a sealing: %s is refused, and the message says how to make a key file", (_, options) => {
    const make = () => sqliteSecrets(makePath(), options as SqliteSecretsOptions);
    expect(make).toThrow(SetupError);
    expect(make).toThrow(/openssl rand -hex 32 > webhook\.key && chmod 600 webhook\.key/);
  });

  it.each<[string, object, RegExp]>([
    ["a sealing without open()", { sealing: { seal: createSealing().seal } }, /"sealing" must have/],
    ["a misspelled option", { keyfile: "webhook.key" }, /Did you mean "keyFile"/],
    ["a wrong migrate", { sealing: createSealing(), migrate: "never" }, /"migrate" must be one of/],
  ])("refuses %s", (_, options, message) => {
    expect(() => sqliteSecrets(makePath(), options as SqliteSecretsOptions)).toThrow(message);
  });
});
