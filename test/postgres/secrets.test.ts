/** Webhook secrets in Postgres: shared by machines, beside an inbox, whatever the pool and the role. */
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, test } from "vitest";
import {
  type PgClient,
  type PostgresSecretsOptions,
  postgresSecrets,
  postgresStore,
} from "../../src/stores/postgres.ts";
import { secretStoreContract } from "../contracts/secret-store.ts";
import { createSealing, FULL, NEXT, OLD, SECRET, SLOTS } from "../stores/sqlite-secrets-place.ts";
import { contextOf, event, turn } from "../stores/sqlite-turns.ts";
import { failureOf } from "../support/failure-of.ts";
import { newPool, newSchema, sql, until } from "./place.ts";
import { newKeyFile, secretsIn } from "./secrets-place.ts";
import { transactionPooler } from "./transaction-pooler.ts";

/** One for all tests that need none of their own: to make it takes longer than most of them. */
const schema = `secrets_${process.pid}`;
const sealing = createSealing();

beforeAll(async () => {
  const secrets = postgresSecrets(inject("postgresUrl"), { schema, sealing });
  await secrets.read("inbound");
  await secrets.close();
});
afterEach(() => sql(`delete from ${schema}.secret`));
afterAll(() => sql(`drop schema ${schema} cascade`));

describe("postgresSecrets() with a key file", () => {
  secretStoreContract({
    test,
    expect,
    async makeStore() {
      const options = { schema, keyFile: newKeyFile() };
      return { store: secretsIn(options), reopen: async () => secretsIn(options), dispose: async () => {} };
    },
  });
});

describe("postgresSecrets()", () => {
  it.each<[string, object, RegExp]>([
    ["neither key file nor sealing", {}, /postgresSecrets\(\) takes either "keyFile" or "sealing"/],
    ["a misspelled option", { keyfile: "webhook.key" }, /Did you mean "keyFile"/],
    ["what only an inbox has", { sealing, listen: false }, /listen/],
    ["a wrong schema", { sealing, schema: "Inbox" }, /"schema" must be/],
    ["a wrong migrate", { sealing, migrate: "never" }, /"migrate" must be one of/],
    ["a wrong encoding", { sealing, encoding: "utf-8" }, /"encoding" must be one of/],
  ])("refuses %s", (_, options, message) => {
    expect(() => postgresSecrets("postgres://h/db", options as PostgresSecretsOptions)).toThrow(message);
  });

  it("refuses what is no database, without showing it", () => {
    const make = () => postgresSecrets("host=h password=pw", { sealing });
    expect(make).toThrow(expect.objectContaining({ code: "invalid_option", fields: { option: "database" } }));
    expect(make).not.toThrow(/pw/);
  });

  it("touches nothing before the first use", async () => {
    const schema = newSchema();
    secretsIn({ schema, sealing });
    expect(await sql(`select to_regnamespace('${schema}') as there`)).toEqual([{ there: null }]);
  });

  it("makes two connections of a connection string, and ends them", async () => {
    const name = newSchema();
    const url = new URL(inject("postgresUrl"));
    url.searchParams.set("application_name", name);
    const secrets = secretsIn({ schema, sealing }, url.href);
    const kinds = ["inbound", "delivery"] as const;
    await Promise.all(kinds.flatMap((kind) => [secrets.read(kind), secrets.write(kind, SLOTS, 0)]));
    const connections = () => sql(`select pid from pg_stat_activity where application_name = '${name}'`);
    expect((await connections()).length).toBeGreaterThan(0);
    expect((await connections()).length).toBeLessThanOrEqual(2);
    await secrets.close();
    await until(async () => (await connections()).length === 0);
  });

  it("leaves a pool of the application's open", async () => {
    const pool = newPool();
    const secrets = secretsIn({ schema, sealing }, pool);
    await secrets.read("inbound");
    await secrets.close();
    expect(await failureOf(secrets.read("inbound"))).toMatchObject({ code: "closed" });
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });

  it("gives its encoding to what it reads and writes (DLV-14)", async () => {
    const secrets = secretsIn({ schema, sealing, encoding: "hex" });
    expect(await failureOf(secrets.write("inbound", SLOTS, 0))).toMatchObject({ code: "invalid_secret" });
    expect(await secrets.write("inbound", { ...SLOTS, current: "ab".repeat(16) }, 0)).toBe(true);
  });

  it("shares a pool of one connection with an open inbox", async () => {
    const schema = newSchema();
    const pool = newPool({ max: 1 });
    const store = postgresStore(pool, { schema });
    const secrets = secretsIn({ schema, sealing }, pool);
    const [written] = await Promise.all([secrets.write("inbound", FULL, 0), store.open(contextOf())]);
    expect(written).toBe(true);
    const [{ accepted }, read] = await Promise.all([
      store.step(turn<PgClient>({ accepts: [event("m")] })),
      secrets.read("inbound"),
    ]);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(read).toEqual({ ...FULL, revision: 1 });
    await store.close();
  });

  it("works behind a transaction pooler", async () => {
    const pooler = transactionPooler();
    const secrets = secretsIn({ schema, sealing }, pooler);
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
    expect(await secrets.write("inbound", FULL, 1)).toBe(true);
    expect(await secrets.read("inbound")).toEqual({ ...FULL, revision: 2 });
    expect(await secrets.receivers()).toEqual([]);
    expect(pooler.seen.size).toBeGreaterThan(1);
  });

  it.each(["repeatable read", "serializable"])(
    "lets one of many writers win, and tells the others so, where transactions are %s by default",
    async (isolation) => {
      const make = () =>
        secretsIn(
          { schema, sealing },
          newPool({ options: `-c default_transaction_isolation=${isolation.replace(" ", "\\ ")}` }),
        );
      const machines = [make(), make(), make()];
      for (const revision of [0, 1]) {
        const written = await Promise.all(
          machines.flatMap((secrets) => [1, 2].map(() => secrets.write("delivery", SLOTS, revision))),
        );
        expect(written.filter((won) => won)).toHaveLength(1);
      }
      expect(await machines[0]?.read("delivery")).toEqual({ ...SLOTS, revision: 2 });
    },
  );
});

describe("what is stored", () => {
  it("shows no secret, also after a replacement", async () => {
    const secrets = secretsIn({ schema, keyFile: newKeyFile() });
    await secrets.write("delivery", FULL, 0);
    await secrets.write("inbound", FULL, 0);
    await secrets.write("delivery", { ...FULL, current: NEXT }, 1);
    const rows = await sql(`select kind, encode(sealed, 'hex') as sealed from ${schema}.secret order by kind`);
    expect(rows.map(({ kind }) => kind)).toEqual(["delivery", "inbound"]);
    for (const { sealed } of rows) {
      for (const secret of [SECRET, OLD, NEXT]) expect(sealed).not.toContain(Buffer.from(secret).toString("hex"));
    }
  });

  it.each([
    ["cut", "sealed = substr(sealed, 1, 20)"],
    ["changed in one bit", "sealed = set_bit(sealed, 400, 1 - get_bit(sealed, 400))"],
    ["of another version", "sealed = set_byte(sealed, 0, 2)"],
    ["of the other kind", "sealed = (select sealed from @.secret where kind = 'delivery')"],
    ["empty", "sealed = ''"],
  ])("answers `secret_unreadable` when it is %s", async (_, change) => {
    const secrets = secretsIn({ schema, keyFile: newKeyFile() });
    await secrets.write("inbound", SLOTS, 0);
    await secrets.write("delivery", FULL, 0);
    await sql(`update ${schema}.secret set ${change.replace("@", schema)} where kind = 'inbound'`);
    const failure = await failureOf(secrets.read("inbound"));
    expect(failure).toMatchObject({ name: "StoreError", code: "secret_unreadable" });
    expect(await secrets.read("delivery")).toEqual({ ...FULL, revision: 1 });
  });

  it("answers `secret_unreadable` for another key, and names the table for who has lost the right one", async () => {
    await secretsIn({ schema, keyFile: newKeyFile() }).write("inbound", SLOTS, 0);
    const failure = await failureOf(secretsIn({ schema, keyFile: newKeyFile() }).read("inbound"));
    expect(failure).toMatchObject({ code: "secret_unreadable" });
    expect(String(failure)).toContain(`"keyFile" holds another key`);
    expect(String(failure)).toContain(`the table "${schema}".secret`);
  });
});

describe("the receivers", () => {
  it("are the heartbeats of the inbox beside it", async () => {
    const schema = newSchema();
    const store = postgresStore(newPool(), { schema, listen: false });
    await store.open(contextOf());
    const secrets = secretsIn({ schema, sealing });
    expect(await secrets.receivers()).toEqual([]);
    await store.heartbeat({ keyringVersion: "v1", counters: { "slot:previous": 2 } });
    expect(await secrets.receivers()).toMatchObject([
      { pid: process.pid, keyringVersion: "v1", counters: { "slot:previous": 2 } },
    ]);
    await store.close();
  });

  it("were seen when the clock of who asks says so, though the server's is an hour behind", async () => {
    const schema = newSchema();
    const clocks = newSchema();
    await sql(`create schema ${clocks};
      create function ${clocks}.clock_timestamp() returns timestamptz language sql volatile
      as $$ select pg_catalog.clock_timestamp() - interval '1 hour' $$`);
    const behind = () => newPool({ options: `-c search_path=${clocks},pg_catalog` });
    const store = postgresStore(behind(), { schema, listen: false });
    await store.open(contextOf());
    await store.heartbeat({ keyringVersion: "v1", counters: {} });
    const [stored] = await sql(`select seen::float from ${schema}.instance`);
    expect(Date.now() - stored?.seen).toBeGreaterThan(3_000_000);
    const [seen] = (await secretsIn({ schema, sealing }, behind()).receivers()) ?? [];
    expect(Math.abs(Date.now() - (seen?.seenAt ?? 0))).toBeLessThan(10_000);
    await store.close();
  });
});
