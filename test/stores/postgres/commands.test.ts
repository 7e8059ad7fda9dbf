/** `oncehook doctor` and `oncehook inbox` on a real server. */
import { expect, inject, it, onTestFinished } from "vitest";
import type { InboxStore } from "../../../src/inbox/store.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { newInboxFile } from "../../receiver/bench.ts";
import { clockAt, diagnose } from "../../tools/cli/doctor/scene.ts";
import { fillInbox, NUMBER } from "../../tools/cli/inbox-place.ts";
import { runToEnd } from "../../tools/cli/running.ts";
import { contextOf } from "../sqlite-turns.ts";
import { newSchema, sql, urlOf } from "./place.ts";
import { startPooler } from "./poolers.ts";

const url = () => inject("postgresUrl");

/** An inbox whose receiver reported just now; its schema. */
async function newInbox(): Promise<string> {
  const schema = newSchema();
  const store = postgresStore(url(), { schema, maxConnections: 1 }) as InboxStore<never>;
  await store.open(contextOf({ rules: { name: "default", toleranceMs: 95 * 60_000 } }));
  onTestFinished(() => store.close());
  await store.heartbeat({ keyringVersion: "none", counters: {} });
  return schema;
}

const findingsOf = async (...asked: Parameters<typeof diagnose>) =>
  (await diagnose(...asked)).filter(({ level }) => level === "problem" || level === "warning");

it("doctor finds nothing when everything is right", async () => {
  expect(await findingsOf({ store: url(), schema: await newInbox() })).toEqual([]);
});

it("doctor finds a server whose commits of the application do not wait for the disk", async () => {
  const schema = await newInbox();
  const { pathname } = new URL(url());
  const role = `doctor_${schema}`;
  await sql(`create role ${role} login superuser password 'secret'; alter role ${role} set synchronous_commit = off`);
  onTestFinished(() => sql(`drop role ${role}`).then(() => {}));
  const findings = await findingsOf({ store: urlOf({ user: role, database: pathname.slice(1) }), schema });
  expect(findings.map(({ code }) => code)).toEqual(["commits_asynchronous"]);
});

it("doctor continues with a server that has one free connection", async () => {
  const schema = await newInbox();
  const role = `doctor_${schema}`;
  await sql(`create role ${role} login password 'secret' connection limit 1; grant usage on schema ${schema} to ${role};
    grant all on all tables in schema ${schema} to ${role}; grant all on all sequences in schema ${schema} to ${role}`);
  onTestFinished(() => sql(`drop owned by ${role}; drop role ${role}`).then(() => {}));
  const { pathname } = new URL(url());
  const findings = await diagnose({ store: urlOf({ user: role, database: pathname.slice(1) }), schema });
  expect(findings.map(({ code, level }) => `${code}: ${level}`)).toContain("clock: skipped");
  expect(findings.map(({ code, level }) => `${code}: ${level}`)).toContain("inbox: ok");
});

it("doctor finds a transaction pooler, and names the options", async () => {
  const schema = await newInbox();
  const { url } = await startPooler();
  const [found, ...others] = await findingsOf({ store: url, schema });
  expect(others).toEqual([]);
  expect(found).toMatchObject({
    ...{ code: "transaction_pooler", level: "warning" },
    fix: expect.stringContaining("{ prepare: false, listen: false }"),
  });
});

it("doctor finds a clock that differs from the database's", async () => {
  const flags = { store: url(), schema: await newInbox() };
  const findings = await findingsOf(flags, { clock: clockAt(-600_000) });
  expect(findings.map(({ code, level }) => [code, level])).toEqual([["clock_skew", "problem"]]);
});

it("doctor reports a server that does not answer, without showing the password", async () => {
  const findings = await findingsOf({ store: "postgres://app:hunter2hunter2@127.0.0.1:9/app" });
  expect(findings.map(({ code }) => code)).toEqual(["store_unavailable"]);
  expect(JSON.stringify(findings)).not.toContain("hunter2");
});

function inbox(store: string, ...args: readonly string[]) {
  return runToEnd(["inbox", ...args, "--json"], { ONCEHOOK_STORE: store });
}

it("inbox copies an inbox there, lists it and erases from it", { tags: "full" }, async () => {
  const [file, schema] = [newInboxFile(), newSchema()];
  await fillInbox(file);
  const copy = ["inbox", "copy", "--from", file, "--to-schema", schema, "--json"];
  const copied = await runToEnd(copy, { ONCEHOOK_COPY_TO: url() });
  expect(copied).toMatchObject({ code: 0, errors: "" });
  expect(JSON.parse(copied.output)).toMatchObject({ events: 8, dead: 2, quarantined: 1 });
  const listed = await inbox(url(), "ls", "--number", NUMBER, "--state", "dead", "--schema", schema);
  expect(listed).toMatchObject({ code: 0, errors: "" });
  expect(listed.output.match(/"id":\d/g)).toEqual(['"id":7', '"id":2']);
  const erased = await inbox(url(), "erase", "--number", NUMBER, "--yes", "--schema", schema);
  expect(erased).toMatchObject({ output: '{"erased":9}\n' });
});

it("inbox reports in one line why a server refuses, without the password", async () => {
  const wrong = new URL(url());
  wrong.password = "hunter2";
  const [password, database, schema] = await Promise.all([
    inbox(wrong.href, "ls", "--debug"),
    inbox(urlOf({ database: "nowhere" }), "ls"),
    inbox(url(), "ls", "--schema", newSchema()),
  ]);
  expect(password).toMatchObject({
    code: 1,
    output: "",
    errors: expect.stringContaining("the password in the address"),
  });
  expect(password.errors).not.toContain("hunter2");
  expect(database).toMatchObject({ code: 1, errors: expect.stringMatching(/^error: [^\n]*database's name[^\n]*\n$/) });
  expect(schema).toMatchObject({ code: 2, errors: expect.stringMatching(/^error: There is no inbox at [^\n]+\n$/) });
});
