/** Webhook secrets in Postgres: shared by machines, beside an inbox, whatever the pool, the role and the server. How they are sealed: sqlite-secrets.test.ts. */
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, onTestFinished, test } from "vitest";
import { copyInbox } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import {
  type PgClient,
  type PostgresSecretsOptions,
  postgresSecrets,
  postgresStore,
} from "../../../src/stores/postgres.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import { secretStoreContract } from "../../contracts/secret-store.ts";
import { failureOf } from "../../support/failure-of.ts";
import { becomeLater } from "../../support/later-version.ts";
import { makePath } from "../sqlite-place.ts";
import { createSealing, FULL, makeKeyFile, SLOTS } from "../sqlite-secrets-place.ts";
import { contextOf, event, RULES, turn } from "../sqlite-turns.ts";
import { newPool, newSchema, secretsIn, sql, until, urlOf } from "./place.ts";
import { startPooler } from "./poolers.ts";
import { makeRelay } from "./relay.ts";

/** One for all tests that need none of their own: to make it takes longer than most of them. */
const schema = `secrets_${process.pid}`;
const sealing = createSealing();
/** Roles belong to the server, not to a schema. */
const GUEST = `secrets_${process.pid}_guest`;

beforeAll(async () => {
  const secrets = postgresSecrets(inject("postgresUrl"), { schema, sealing });
  await secrets.read("inbound");
  await secrets.close();
  await sql(`create role ${GUEST} login password 'secret'`);
});
afterEach(() => sql(`delete from ${schema}.secret`));
afterAll(() => sql(`drop schema ${schema} cascade; drop owned by ${GUEST}; drop role ${GUEST}`));

describe("postgresSecrets() with a key file", () => {
  secretStoreContract({
    test,
    expect,
    async makeStore() {
      const options = { schema, keyFile: makeKeyFile(makePath()) };
      return { store: secretsIn(options), reopen: async () => secretsIn(options), dispose: async () => {} };
    },
  });

  it("names the table to a user who has lost the right key", async () => {
    await secretsIn({ schema, keyFile: makeKeyFile(makePath()) }).write("inbound", SLOTS, 0);
    const failure = await failureOf(secretsIn({ schema, keyFile: makeKeyFile(makePath()) }).read("inbound"));
    expect(failure).toMatchObject({ code: "secret_unreadable" });
    expect(String(failure)).toContain(`the table "${schema}".secret`);
  });
});

describe("postgresSecrets()", () => {
  it.each<[string, object, RegExp]>([
    ["what only an inbox has", { sealing, listen: false }, /listen/],
    ["a wrong schema", { sealing, schema: "Inbox" }, /"schema" must be/],
    ["a wrong migrate", { sealing, migrate: "never" }, /"migrate" must be one of/],
  ])("refuses %s", (_, options, message) => {
    expect(() => postgresSecrets("postgres://h/db", options as PostgresSecretsOptions)).toThrow(message);
  });

  it("makes two connections of a connection string, and ends them", async () => {
    const name = newSchema();
    const url = new URL(inject("postgresUrl"));
    url.searchParams.set("application_name", name);
    const secrets = secretsIn({ schema, sealing }, url.href);
    const kinds = ["inbound", "delivery"] as const;
    await Promise.all(kinds.flatMap((kind) => [secrets.read(kind), secrets.write(kind, SLOTS, 0)]));
    const connections = async () =>
      (await sql(`select pid from pg_stat_activity where application_name = '${name}'`)).length;
    expect([1, 2]).toContain(await connections());
    await secrets.close();
    await until(async () => (await connections()) === 0);
  });

  it("leaves a pool of the application's open", async () => {
    const pool = newPool();
    const secrets = secretsIn({ schema, sealing }, pool);
    await secrets.read("inbound");
    await secrets.close();
    expect(await failureOf(secrets.read("inbound"))).toMatchObject({ code: "closed" });
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });

  it("shares a pool of one connection with an open inbox", async () => {
    const schema = newSchema();
    const pool = newPool({ max: 1 });
    const store = postgresStore(pool, { schema });
    const secrets = secretsIn({ schema, sealing }, pool);
    const [written] = await Promise.all([secrets.write("inbound", FULL, 0), store.open(contextOf())]);
    expect(written).toBe(true);
    const accepting = store.step(turn<PgClient>({ accepts: [event("m")] }));
    const [{ accepted }, read] = await Promise.all([accepting, secrets.read("inbound")]);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(read).toEqual({ ...FULL, revision: 1 });
    await store.close();
  });

  it("works behind a transaction pooler", async () => {
    const { url } = await startPooler({ order: "next" });
    const secrets = secretsIn({ schema, sealing }, url);
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
    expect(await secrets.write("inbound", FULL, 1)).toBe(true);
    expect(await secrets.read("inbound")).toEqual({ ...FULL, revision: 2 });
    expect(await secrets.receivers()).toEqual([]);
  });

  it("takes the heartbeats of the inbox beside it for its receivers, by its own clock: the server's is an hour behind", async () => {
    const schema = newSchema();
    const clocks = newSchema();
    await sql(`create schema ${clocks};
      create function ${clocks}.clock_timestamp() returns timestamptz language sql volatile
      as $$ select pg_catalog.clock_timestamp() - interval '1 hour' $$`);
    const behind = () => newPool({ options: `-c search_path=${clocks},pg_catalog` });
    const store = postgresStore(behind(), { schema, listen: false });
    await store.open(contextOf());
    const secrets = secretsIn({ schema, sealing }, behind());
    expect(await secrets.receivers()).toEqual([]);
    await store.heartbeat({ keyringVersion: "v1", counters: { "slot:service:previous": 2 } });
    const [stored] = await sql(`select seen::float from ${schema}.instance`);
    expect(Date.now() - stored?.seen).toBeGreaterThan(3_000_000);
    const seen = await secrets.receivers();
    expect(seen).toMatchObject([{ pid: process.pid, keyringVersion: "v1", counters: { "slot:service:previous": 2 } }]);
    expect(Math.abs(Date.now() - (seen?.[0]?.seenAt ?? 0))).toBeLessThan(10_000);
    await store.close();
  });
});

describe("a server", () => {
  it("that is down at first and goes away later is an outage, and its return is enough", async () => {
    const relay = await makeRelay();
    const secrets = secretsIn({ schema: newSchema(), sealing }, relay.url);
    const down = { name: "StoreError", code: "store_unavailable", message: expect.stringMatching(/ECONNREFUSED/) };
    expect(await failureOf(secrets.read("inbound"))).toMatchObject(down);
    await relay.start();
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
    await relay.stop();
    expect(await failureOf(secrets.write("inbound", FULL, 1))).toMatchObject({ code: "store_unavailable" });
    expect(await failureOf(secrets.read("inbound"))).toMatchObject(down);
    expect(await failureOf(secrets.receivers())).toMatchObject(down);
    await relay.start();
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
  });

  it("that may lose what it acknowledged is refused (I2)", async () => {
    const lies = newSchema();
    await sql(`create schema ${lies};
      create function ${lies}.current_setting(name text) returns text language sql as $$
        select case name when 'fsync' then 'off' else pg_catalog.current_setting(name) end $$`);
    const schema = newSchema();
    const secrets = secretsIn({ schema, sealing }, newPool({ options: `-c search_path=${lies},pg_catalog` }));
    expect(await failureOf(secrets.read("inbound"))).toMatchObject({ name: "SetupError", code: "not_durable" });
    expect(await sql(`select to_regnamespace('${schema}') as there`)).toEqual([{ there: null }]);
  });
});

describe("a role", () => {
  const asGuest = (schema: string) => secretsIn({ schema, sealing }, urlOf({ user: GUEST }));

  it("that may only look reads the secrets, is told what it lacks when it writes, and needs no more than that", async () => {
    const schema = newSchema();
    await secretsIn({ schema, sealing }).write("inbound", SLOTS, 0);
    await sql(
      `grant usage on schema ${schema} to ${GUEST}; grant select on ${schema}.meta, ${schema}.secret to ${GUEST}`,
    );
    const secrets = asGuest(schema);
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
    expect(await failureOf(secrets.write("inbound", FULL, 1))).toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/INSERT, UPDATE and DELETE/),
    });
    await sql(`grant insert, update on ${schema}.secret to ${GUEST}; grant select on ${schema}.instance to ${GUEST}`);
    expect(await secrets.write("inbound", FULL, 1)).toBe(true);
    expect(await secrets.write("delivery", FULL, 0)).toBe(true);
    expect(await secrets.receivers()).toEqual([]);
  });

  it("that does not own an inbox of the version before is told so, and goes on once its owner has opened it", async () => {
    const schema = newSchema();
    await makeOlder(schema);
    await sql(`grant usage on schema ${schema} to ${GUEST}; grant all on all tables in schema ${schema} to ${GUEST}`);
    const secrets = asGuest(schema);
    expect(String(await failureOf(secrets.read("inbound")))).toMatch(/to migrate it, ownership of the schema/);
    await secretsIn({ schema, sealing }).read("inbound");
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
  });
});

/** An inbox as this version makes it, in a process that is of a later one from here on. */
async function makeOlder(schema: string): Promise<void> {
  await secretsIn({ schema, sealing }).read("inbound");
  onTestFinished(becomeLater());
}

describe("a schema", () => {
  it('of a later version is asked for by migrate: "check", of the inbox and of the secrets, and made by "auto"', async () => {
    const schema = newSchema();
    await makeOlder(schema);
    const needed = { code: "migration_needed", fields: { schema: 1, newest: 2 } };
    const checking = secretsIn({ schema, sealing, migrate: "check" });
    expect(await failureOf(checking.read("inbound"))).toMatchObject(needed);
    const store = postgresStore(inject("postgresUrl"), { schema, listen: false });
    expect(await failureOf(store.open(contextOf({ migrate: "check" })))).toMatchObject(needed);
    expect(await secretsIn({ schema, sealing }).write("inbound", SLOTS, 0)).toBe(true);
    expect(await checking.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
    await store.open(contextOf({ migrate: "check" }));
    await store.close();
  });

  it("may come with the secrets first: a receiver of any name opens it then, and a copy goes there", async () => {
    const schema = newSchema();
    const [from, to] = [memorySecrets(), secretsIn({ schema, sealing })];
    await from.write("delivery", FULL, 0);
    const stored = await from.read("delivery");
    if (stored !== null) await to.write("delivery", stored, 0);
    const source = memoryStore({ volatile: true });
    const rules = { ...RULES, name: "billing" };
    await source.open(contextOf({ rules }));
    await source.step(turn<never>({ accepts: [event("m")] }));
    await source.close();
    const target = postgresStore(newPool(), { schema, listen: false });
    expect(await copyInbox({ from: source, to: target })).toMatchObject({ events: 1 });
    await target.open(contextOf({ rules, migrate: "check" }));
    expect((await target.stats()).gauges.pending).toBe(1);
    await target.close();
    expect(await to.read("delivery")).toEqual({ ...FULL, revision: 1 });
  });
});
