/**
 * Makes the fixtures of a released version with that version's own package: `node make-fixtures.mjs PACKAGE OUT`, where PACKAGE is a folder
 * with its `dist/`. Postgres: the database of `PGDATABASE`, in the schema `oncehook_fixture`, which `pg_dump` then writes as SQL.
 */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [from, out] = process.argv.slice(2).map((path) => resolve(path));
const entry = (name) => import(pathToFileURL(join(from, "dist", `${name}.js`)).href);
const { createReceiver } = await entry("index");
const { sqliteStore } = await entry("sqlite");
const { postgresStore } = await entry("postgres");
const { fixtures, incomingOf, signedRequest, TEST_SECRET } = await entry("testing");

/** One message of each kind of history, and what waits for an operator. */
async function fill(store) {
  const receiver = createReceiver({ secrets: TEST_SECRET, store, maxAttempts: 1, gapWait: "strict", logger: silent });
  receiver.on("message.failed", () => {
    throw new Error("The handler has a bug.");
  });
  receiver.on(["message.queued", "message.sent", "message.delivery"], () => {});
  receiver.onLate(() => {});
  const send = (content) => receiver.handle(incomingOf(signedRequest(content)));
  const occurredAt = Date.now();
  const of = (messageId, more = {}) => ({ messageId, occurredAt, ...more });
  for (const make of [fixtures.queued, fixtures.sent, fixtures.delivery]) await send(make(of("msg_handled")));
  await send(fixtures.delivery(of("msg_handled")));
  await send(fixtures.delivery(of("msg_handled", { data: { status: "undelivered" } })));
  await send(fixtures.queued(of("msg_dead")));
  await send(fixtures.failed(of("msg_dead", { sequence: 2 })));
  await send(fixtures.inbound(of("msg_unhandled")));
  await send(fixtures.unknown({ eventType: "message.read" }));
  await send("{not json");
  await receiver.drain();
  // From here on pending: ready, and behind a gap.
  await send(fixtures.queued(of("msg_pending")));
  await send(fixtures.delivery(of("msg_gap")));
  await receiver.stop();
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const file = join(out, "inbox-0.1.0.db");
for (const each of ["", "-wal", "-shm"]) rmSync(file + each, { force: true });
await fill(sqliteStore(file));
const schema = "oncehook_fixture";
const database = process.env.PGDATABASE ?? "test";
execFileSync("psql", ["-qd", database, "-c", `drop schema if exists ${schema} cascade`]);
await fill(postgresStore(`postgres://${process.env.PGUSER ?? "postgres"}@127.0.0.1/${database}`, { schema }));
const dump = execFileSync("pg_dump", ["-d", database, "-n", schema, "--no-owner", "--inserts"]).toString();
writeFileSync(join(out, "inbox-0.1.0.sql"), dump.replace(/^\\(?:un)?restrict.*$/gm, ""));
execFileSync("psql", ["-qd", database, "-c", `drop schema ${schema} cascade`]);
