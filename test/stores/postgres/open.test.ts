/** What a Postgres store is made with, and what it refuses before it takes an event. */
import { inspect } from "node:util";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { migratePg } from "../../../src/stores/postgres/migrate.ts";
import { type PgClient, type PgPool, type PostgresStoreOptions, postgresStore } from "../../../src/stores/postgres.ts";
import { failureOf } from "../../support/failure-of.ts";
import { contextOf, event, turn } from "../sqlite-turns.ts";
import { newPool, newSchema, sql, urlOf } from "./place.ts";

const locationOf = (database: string | PgPool, schema = "s") => postgresStore(database, { schema }).location;
const makeWith = (database: unknown, options?: unknown) => () =>
  postgresStore(database as string, options as PostgresStoreOptions);

describe("postgresStore()", () => {
  it("creates nothing when the opener is not a receiver (no_inbox)", async () => {
    const schema = newSchema();
    const opening = postgresStore(newPool(), { schema }).open(contextOf({ rules: "recorded" }));
    await expect(opening).rejects.toMatchObject({ code: "no_inbox", message: expect.stringContaining(schema) });
    expect(await sql(`select to_regnamespace('${schema}') is null as gone`)).toEqual([{ gone: true }]);
  });

  it.each([
    ["postgres://u:pw@h:6000/db?sslmode=require", "postgres://h:6000/db/s"],
    ["postgresql://h/db", "postgres://h:5432/db/s"],
    ["postgres://u:p%40ss@h/db", "postgres://h:5432/db/s"],
    ["postgres://u:pw@/db?host=/var/run/postgresql", "postgres:///var/run/postgresql:5432/db/s"],
    ["postgres:///db", "postgres://localhost:5432/db/s"],
    ["postgres://u@h", "postgres://h:5432/s"],
  ])("names the place of %s without its password", (database, location) => {
    expect(locationOf(database)).toBe(location);
  });

  it("names the place of a pool", () => {
    const options = { host: "h", port: 6000, database: "db", password: "pw" };
    expect(locationOf(newPool({ connectionString: undefined, ...options } as object))).toBe("postgres://h:6000/db/s");
    expect(locationOf(newPool({ connectionString: "postgres://u:pw@h/db" }))).toBe("postgres://h:5432/db/s");
    expect(locationOf(newPool({ connectionString: "host=h password=pw" }))).toBe("postgres:pool/s");
  });

  it.each([
    ...["postgres://u:p/w@h/db", "postgres://u:1?w@h/db", "postgres://u:1#w@h/db", "postgres://u:p:w@/w@h/db"],
    ...["host=h dbname=db password=pw", "/var/run/postgresql db", "mysql://u:pw@h/db", ""],
  ])("refuses %j without showing it", async (database) => {
    const refused = await failureOf((async () => makeWith(database)())());
    expect(refused).toMatchObject({ name: "SetupError", code: "invalid_option", fields: { option: "database" } });
    if (database !== "") expect(inspect(refused)).not.toContain(database);
  });

  it("refuses one connection instead of a pool", () => {
    expect(makeWith(new Client())).toThrow(/"database" must be .* a pool/);
  });

  it("refuses a pool that returns binary values", () => {
    expect(makeWith(newPool({ binary: true } as object))).toThrow(/binary/);
  });

  it.each([
    [{ schema: "Inbox" }, "schema"],
    [{ schema: "pg_inbox" }, "schema"],
    [{ schema: 'a"b' }, "schema"],
    [{ schema: "x".repeat(42) }, "schema"],
    [{ listen: "no" }, "listen"],
    [{ prepare: 1 }, "prepare"],
    [{ maxConnections: 0 }, "maxConnections"],
    [{ maxConnections: 101 }, "maxConnections"],
    [{ shema: "a" }, "shema"],
  ])("refuses the options %j", (options, option) => {
    expect(makeWith("postgres://h/db", options)).toThrow(
      expect.objectContaining({ code: "invalid_option", fields: { option } }),
    );
  });

  it("refuses maxConnections with a pool, which has its own", () => {
    expect(makeWith(newPool(), { maxConnections: 5 })).toThrow(/maxConnections/);
  });
});

/** Roles and databases belong to the server, not to a schema. */
const OWN = `place_${process.pid}`;
const ROLES = { reader: `${OWN}_reader`, writer: `${OWN}_writer`, timid: `${OWN}_timid` };
const LATIN = `${OWN}_latin`;

beforeAll(async () => {
  for (const role of Object.values(ROLES)) await sql(`create role ${role} login password 'secret'`);
  await sql(`create database ${LATIN} encoding 'LATIN1' locale 'C' template template0`);
});

afterAll(async () => {
  await sql(`drop database if exists ${LATIN} with (force)`);
  for (const role of Object.values(ROLES)) await sql(`drop owned by ${role}; drop role ${role}`);
});

describe("opening", () => {
  const openAs = (database: string, schema: string) => {
    const store = postgresStore(database, { schema, listen: false });
    return store.open(contextOf()).finally(() => store.close());
  };
  const open = (schema: string) => openAs(inject("postgresUrl"), schema);

  it.each([
    "create table @.customer (id int)",
    "create table @.meta (id int)",
    "create table @.meta (key text, value text)",
  ])("refuses a schema in which somebody did %j, and changes nothing there", async (statement) => {
    const schema = newSchema();
    await sql(`create schema ${schema}; ${statement.replace("@", schema)}`);
    await expect(open(schema)).rejects.toMatchObject({ code: "invalid_option", fields: { option: "schema" } });
    const tables = `select relname from pg_class where relnamespace = '${schema}'::regnamespace`;
    expect(await sql(tables)).toHaveLength(1);
  });

  it("refuses an inbox of a newer version whose rows it can not read, and takes one that it can", async () => {
    const schema = newSchema();
    await open(schema);
    await sql(`update ${schema}.meta set value = '8' where key = 'schema'`);
    await expect(open(schema)).resolves.toBeDefined();
    await sql(`update ${schema}.meta set value = '8' where key = 'min_reader'`);
    await expect(open(schema)).rejects.toMatchObject({ code: "inbox_too_new", fields: { schema: 8 } });
  });

  it("changes nothing of an inbox that needs a migration when told to check", async () => {
    const schema = newSchema();
    const store = postgresStore(inject("postgresUrl"), { schema });
    await expect(store.open(contextOf({ migrate: "check" }))).rejects.toMatchObject({ code: "migration_needed" });
    expect(await sql(`select to_regnamespace('${schema}') as there`)).toEqual([{ there: null }]);
  });

  it("says which right is missing to make the schema, and opens once it is granted", async () => {
    const schema = newSchema();
    const store = postgresStore(urlOf({ user: ROLES.writer }), { schema, listen: false });
    const failure = await failureOf(store.open(contextOf()));
    expect(failure).toMatchObject({ code: "store_unavailable", fields: { sqlState: "42501" } });
    expect(String(failure)).toMatch(/CREATE on the database/);
    await sql(`create schema ${schema} authorization ${ROLES.writer}`);
    await store.open(contextOf());
    await store.close();
  });

  it("says which rights are missing on another role's inbox", async () => {
    const schema = newSchema();
    await open(schema);
    const url = urlOf({ user: ROLES.reader });
    await expect(openAs(url, schema)).rejects.toThrow(/USAGE on it/);
    await sql(`grant usage on schema ${schema} to ${ROLES.reader};
      grant select on all tables in schema ${schema} to ${ROLES.reader}`);
    await expect(openAs(url, schema)).rejects.toThrow(/INSERT, UPDATE and DELETE/);
    await sql(`grant all on all tables in schema ${schema} to ${ROLES.reader};
      grant usage on all sequences in schema ${schema} to ${ROLES.reader}`);
    await expect(openAs(url, schema)).resolves.toBeDefined();
  });

  it("names a role that only reads", async () => {
    const schema = newSchema();
    await sql(`alter role ${ROLES.timid} set default_transaction_read_only = on`);
    await expect(openAs(urlOf({ user: ROLES.timid }), schema)).rejects.toThrow(/accepts no writes/);
  });

  it.each([
    [{ database: "nowhere" }, /database does not exist/],
    [{ port: 1 }, /ECONNREFUSED/],
  ])("says that %j cannot be reached, as what may pass", async (change, reason) => {
    const failure = await failureOf(openAs(urlOf(change), "oncehook"));
    expect(failure).toMatchObject({ name: "StoreError", code: "store_unavailable" });
    expect(String(failure)).toMatch(reason);
    expect(String(failure)).not.toMatch(/secret|postgres:postgres/);
  });

  it("refuses a database that can not hold every text", async () => {
    await expect(openAs(urlOf({ database: LATIN }), "oncehook")).rejects.toMatchObject({
      code: "invalid_option",
      fields: { option: "database", encoding: "LATIN1" },
    });
  });

  it("lets the server end one that stands still, for which all others wait", async () => {
    const client = await newPool({ max: 1 }).connect();
    const limits: unknown[] = [];
    const query = async (asked: string, values?: unknown[]) => {
      if (asked === "commit") limits.push(...(await client.query("show idle_in_transaction_session_timeout")).rows);
      return client.query(asked, values);
    };
    const watched = { query } as unknown as PgClient;
    await migratePg({ client: watched, schema: newSchema(), location: "here" }, contextOf());
    client.release();
    expect(limits).toEqual([{ idle_in_transaction_session_timeout: "10s" }]);
  });

  it("leaves the session of a pool's connection as it was", async () => {
    const pool = newPool({ max: 1 });
    await pool.query("set search_path = pg_temp; set statement_timeout = 12345");
    const store = postgresStore(pool, { schema: newSchema() });
    await store.open(contextOf());
    await store.step(turn<PgClient>({ accepts: [event("m")] }));
    const { rows } = await pool.query(
      "select current_setting('search_path') as path, current_setting('statement_timeout') as ms, current_setting('enable_seqscan') as scan",
    );
    expect(rows).toEqual([{ path: "pg_temp", ms: "12345ms", scan: "on" }]);
    await store.close();
  });
});
