/** `oncehook doctor` on a Postgres inbox: what only the server can tell. */
import { expect, inject, it, onTestFinished } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { clockAt, diagnose } from "../cli/doctor/scene.ts";
import { contextOf } from "../stores/sqlite-turns.ts";
import { newSchema, sql, urlOf } from "./place.ts";
import { startPooler } from "./poolers.ts";

/** An inbox whose receiver reported just now; its schema. */
async function newInbox(): Promise<string> {
  const schema = newSchema();
  const store = postgresStore(inject("postgresUrl"), { schema, maxConnections: 1 }) as InboxStore<never>;
  await store.open(contextOf({ rules: { name: "default", firstSequence: 1, toleranceMs: 95 * 60_000 } }));
  onTestFinished(() => store.close());
  await store.heartbeat({ keyringVersion: "none", counters: {} });
  return schema;
}

const findingsOf = async (...asked: Parameters<typeof diagnose>) =>
  (await diagnose(...asked)).filter(({ level }) => level === "problem" || level === "warning");

it("finds nothing when everything is right", async () => {
  expect(await findingsOf({ store: inject("postgresUrl"), schema: await newInbox() })).toEqual([]);
});

it("finds a server whose commits of the application do not wait for the disk", async () => {
  const schema = await newInbox();
  const { pathname } = new URL(inject("postgresUrl"));
  const role = `doctor_${schema}`;
  await sql(`create role ${role} login superuser password 'secret'; alter role ${role} set synchronous_commit = off`);
  onTestFinished(() => sql(`drop role ${role}`).then(() => {}));
  const findings = await findingsOf({ store: urlOf({ user: role, database: pathname.slice(1) }), schema });
  expect(findings.map(({ code }) => code)).toEqual(["commits_asynchronous"]);
});

it("continues with a server that has one free connection", async () => {
  const schema = await newInbox();
  const role = `doctor_${schema}`;
  await sql(`create role ${role} login password 'secret' connection limit 1; grant usage on schema ${schema} to ${role};
    grant all on all tables in schema ${schema} to ${role}; grant all on all sequences in schema ${schema} to ${role}`);
  onTestFinished(() => sql(`drop owned by ${role}; drop role ${role}`).then(() => {}));
  const { pathname } = new URL(inject("postgresUrl"));
  const findings = await diagnose({ store: urlOf({ user: role, database: pathname.slice(1) }), schema });
  expect(findings.map(({ code, level }) => `${code}: ${level}`)).toContain("clock: skipped");
  expect(findings.map(({ code, level }) => `${code}: ${level}`)).toContain("inbox: ok");
});

it("finds a transaction pooler, and names the options", async () => {
  const schema = await newInbox();
  const { url } = await startPooler();
  const [found, ...others] = await findingsOf({ store: url, schema });
  expect(others).toEqual([]);
  expect(found).toMatchObject({
    ...{ code: "transaction_pooler", level: "warning" },
    fix: expect.stringContaining("{ prepare: false, listen: false }"),
  });
});

it("finds a clock that differs from the database's", async () => {
  const flags = { store: inject("postgresUrl"), schema: await newInbox() };
  const findings = await findingsOf(flags, { clock: clockAt(-600_000) });
  expect(findings.map(({ code, level }) => [code, level])).toEqual([["clock_skew", "problem"]]);
});

it("reports a server that does not answer, without showing the password", async () => {
  const findings = await findingsOf({ store: "postgres://app:hunter2hunter2@127.0.0.1:9/app" });
  expect(findings.map(({ code }) => code)).toEqual(["store_unavailable"]);
  expect(JSON.stringify(findings)).not.toContain("hunter2");
});
