/** How secrets are sealed before they go into a SQLite file, and the key file. */
import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { inspect } from "node:util";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { SetupError, StoreError } from "../../src/errors.ts";
import { type SqliteSecretsOptions, sqliteSecrets } from "../../src/stores/sqlite.ts";
import { failureOf } from "../support/failure-of.ts";
import { makePath } from "./sqlite-place.ts";
import { createSealing, FULL, makeKeyFile, NEXT, OLD, SECRET, SLOTS, secretsAt } from "./sqlite-secrets-place.ts";

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
    const db = new Database(path);
    const rows = db.prepare("select sealed from oncehook_secret").pluck().all() as Buffer[];
    db.close();
    expect(rows).toHaveLength(2);
    expect(rows[0]?.equals(rows[1] ?? Buffer.alloc(0))).toBe(false);
  });

  it.each([
    ["cut", "update oncehook_secret set sealed = substr(sealed, 1, 20)"],
    ["changed in one bit", "update oncehook_secret set sealed = substr(sealed, 1, 40) || x'00' || substr(sealed, 42)"],
    ["of another version", "update oncehook_secret set sealed = x'02' || substr(sealed, 2)"],
    [
      "of the other kind",
      "update oncehook_secret set sealed = (select sealed from oncehook_secret where kind = 'delivery') where kind = 'inbound'",
    ],
  ])("answers `secret_unreadable` for what is %s", async (_, sql) => {
    const path = makePath();
    const secrets = secretsAt(path);
    await secrets.write("inbound", SLOTS, 0);
    await secrets.write("delivery", FULL, 0);
    const db = new Database(path);
    db.exec(sql);
    db.close();
    const failure = await failureOf(secrets.read("inbound"));
    expect(failure).toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({ code: "secret_unreadable" });
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
    ["readable by all", HEX.toString("hex"), 0o644, "unsafe_location"],
  ])("is refused when it is %s, and never shown", (_, text, mode, code) => {
    const path = makePath();
    let refused: unknown;
    try {
      secretsAt(path, { keyFile: makeKeyFile(path, text, mode) });
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(SetupError);
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
