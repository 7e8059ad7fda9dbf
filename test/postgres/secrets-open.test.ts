/** What the secrets in Postgres need of the server, the role and the schema, and how they and an inbox get a later schema. */
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { copyInbox } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { memorySecrets } from "../../src/testing/memory-secrets.ts";
import { createSealing, FULL, SLOTS } from "../stores/sqlite-secrets-place.ts";
import { contextOf, event, RULES, turn } from "../stores/sqlite-turns.ts";
import { failureOf } from "../support/failure-of.ts";
import { becomeLater } from "../support/later-version.ts";
import { newPool, newSchema, sql, until, urlOf } from "./place.ts";
import { makeRelay } from "./relay.ts";
import { secretsIn } from "./secrets-place.ts";

const sealing = createSealing();

/** Roles belong to the server, not to a schema. */
const OWN = `secrets_${process.pid}`;
const ROLES = { owner: `${OWN}_owner`, guest: `${OWN}_guest` };

beforeAll(() =>
  sql(
    Object.values(ROLES)
      .map((role) => `create role ${role} login password 'secret'`)
      .join(";"),
  ),
);
afterAll(() =>
  sql(
    Object.values(ROLES)
      .map((role) => `drop owned by ${role}; drop role ${role}`)
      .join(";"),
  ),
);

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

  it("that ends an idle connection ends neither the process nor the store", async () => {
    const schema = newSchema();
    const pool = newPool({ application_name: schema });
    const secrets = secretsIn({ schema, sealing }, pool);
    await secrets.write("inbound", SLOTS, 0);
    expect(pool.totalCount).toBe(1);
    await sql(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${schema}'`);
    await until(() => pool.totalCount === 0);
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
  const asGuest = (schema: string) => secretsIn({ schema, sealing }, urlOf({ user: ROLES.guest }));

  it("that owns the schema and nothing else is enough", async () => {
    const schema = newSchema();
    await sql(`create schema ${schema} authorization ${ROLES.owner}`);
    const secrets = secretsIn({ schema, sealing }, urlOf({ user: ROLES.owner }));
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
  });

  it("that may make no schema is told what it lacks", async () => {
    const failure = await failureOf(asGuest(newSchema()).read("inbound"));
    expect(failure).toMatchObject({ code: "store_unavailable", fields: { sqlState: "42501" } });
    expect(String(failure)).toMatch(/CREATE on the database/);
    expect(String(failure)).not.toMatch(/secret@|:secret/);
  });

  it("that may only look reads the secrets, is told what it lacks when it writes, and needs no more than that", async () => {
    const schema = newSchema();
    await secretsIn({ schema, sealing }).write("inbound", SLOTS, 0);
    await sql(`grant usage on schema ${schema} to ${ROLES.guest};
      grant select on ${schema}.meta, ${schema}.secret to ${ROLES.guest}`);
    const secrets = asGuest(schema);
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
    expect(await failureOf(secrets.write("inbound", FULL, 1))).toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/INSERT, UPDATE and DELETE/),
    });
    await sql(`grant insert, update on ${schema}.secret to ${ROLES.guest};
      grant select on ${schema}.instance to ${ROLES.guest}`);
    expect(await secrets.write("inbound", FULL, 1)).toBe(true);
    expect(await secrets.write("delivery", FULL, 0)).toBe(true);
    expect(await secrets.receivers()).toEqual([]);
  });

  it("that does not own an inbox of the version before is told so, and goes on once its owner has opened it", async () => {
    const schema = newSchema();
    await makeOlder(schema);
    await sql(`grant usage on schema ${schema} to ${ROLES.guest};
      grant all on all tables in schema ${schema} to ${ROLES.guest}`);
    const secrets = asGuest(schema);
    expect(String(await failureOf(secrets.read("inbound")))).toMatch(/to migrate it, ownership of the schema/);
    await secretsIn({ schema, sealing }).read("inbound");
    expect(await secrets.write("inbound", SLOTS, 0)).toBe(true);
  });
});

const schemaOf = (schema: string) =>
  sql(`select value from ${schema}.meta where key in ('schema', 'min_reader') order by key`);
const LATER = [{ value: "1" }, { value: "2" }];

/** An inbox as this version makes it, in a process that is of a later one from here on. Returns what undoes that. */
async function makeOlder(schema: string): Promise<() => void> {
  await secretsIn({ schema, sealing }).read("inbound");
  const undo = becomeLater();
  onTestFinished(undo);
  return undo;
}

describe("a schema of a later version", () => {
  it('is asked for by migrate: "check", of the inbox and of the secrets, and made by "auto"', async () => {
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

  it("leaves the inbox to the version before: it opens the schema and changes nothing", async () => {
    const schema = newSchema();
    const undo = await makeOlder(schema);
    await secretsIn({ schema, sealing }).write("inbound", SLOTS, 0);
    expect(await schemaOf(schema)).toEqual(LATER);
    undo();
    const store = postgresStore(inject("postgresUrl"), { schema, listen: false });
    await store.open(contextOf({ migrate: "check" }));
    await store.close();
    expect(await schemaOf(schema)).toEqual(LATER);
  });

  it("is refused in a schema of a version whose rows can not be read", async () => {
    const schema = newSchema();
    await secretsIn({ schema, sealing }).read("inbound");
    await sql(`update ${schema}.meta set value = '8' where key in ('schema', 'min_reader')`);
    expect(await failureOf(secretsIn({ schema, sealing }).read("inbound"))).toMatchObject({ code: "inbox_too_new" });
  });

  it("may come with the secrets first: a receiver of any name opens the schema then", async () => {
    const schema = newSchema();
    await secretsIn({ schema, sealing }).write("inbound", SLOTS, 0);
    const store = postgresStore(newPool(), { schema, listen: false });
    await store.open(contextOf({ rules: { ...RULES, name: "billing" }, migrate: "check" }));
    expect((await store.step(turn<PgClient>({ accepts: [event("m")] }))).accepted).toMatchObject([
      { outcome: "accepted" },
    ]);
    await store.close();
  });
});

describe("an inbox that moves to Postgres", () => {
  it("finds its secrets there, taken along before the copy", async () => {
    const schema = newSchema();
    const [from, to] = [memorySecrets(), secretsIn({ schema, sealing })];
    await from.write("delivery", SLOTS, 0);
    await from.write("delivery", FULL, 1);
    const stored = await from.read("delivery");
    if (stored !== null) await to.write("delivery", stored, 0);
    const source = memoryStore({ volatile: true });
    await source.open(contextOf());
    await source.step(turn<never>({ accepts: [event("m")] }));
    await source.close();
    const target = postgresStore(newPool(), { schema, listen: false });
    expect(await copyInbox({ from: source, to: target })).toMatchObject({ events: 1 });
    expect(await to.read("delivery")).toEqual({ ...FULL, revision: 1 });
  });
});
