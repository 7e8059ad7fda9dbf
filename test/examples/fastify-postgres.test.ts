/** The Fastify example on Postgres: a parent and its workers as real processes, which are killed, stopped and misconfigured. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pool } from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createApp } from "../../examples/servers/fastify-postgres/app.ts";
import { readClusterEnvironment } from "../../examples/servers/fastify-postgres/environment.ts";
import { createHistoryTable, keepRow } from "../../examples/servers/fastify-postgres/history.ts";
import { EnvironmentError } from "../../examples/shared/environment.ts";
import { createReceiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createEmulator } from "../../src/messaging/emulator/index.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { fixtures, lifecycle, signedRequest, TEST_SECRET } from "../../src/tools/testing/index.ts";
import { connect } from "../proofs/application.ts";
import { findings, type HandledRow, verdictOn } from "../proofs/ledger.ts";
import { sql, urlOf } from "../stores/postgres/place.ts";
import { holdRows } from "./holding.ts";
import { RunningExample, runToEnd, SECRET } from "./running.ts";

const WORKERS = 3;
/** All of a delivery's attempts, and a message that comes 90 minutes late. */
const ALL_ATTEMPTS_MS = 180 * 60_000;
/** As long as a busy machine may need. */
const eventually = <T>(read: () => Promise<T>) => expect.poll(read, { timeout: 15_000 });

interface Row extends HandledRow {
  readonly pid: number;
}

let databases = 0;

const NEXT_MIGRATION = fileURLToPath(new URL("../../examples/nextjs-postgres/migrate.mjs", import.meta.url));

/** A database of the test's own, because the example's table has no schema of its own. */
async function newDatabase(): Promise<string> {
  const database = `example_${process.pid}_${++databases}`;
  await sql(`create database ${database}`);
  onTestFinished(() => sql(`drop database ${database} with (force)`).then(() => {}));
  return urlOf({ database });
}

const handledIn = async (url: string) =>
  (await sql("select message_id, sequence, event_type, pid from message_history order by id", url)) as readonly Row[];

/** The workers that have a connection, or of them those whose statement waits for a lock. */
async function workersOf(url: string, waiting = false): Promise<number[]> {
  const condition = waiting ? "and wait_event_type = 'Lock'" : "";
  const names = await sql(
    `select distinct application_name from pg_stat_activity where datname = current_database()
     and application_name like 'worker %' ${condition}`,
    url,
  );
  return names.map((row) => Number(String(row.application_name).slice("worker ".length)));
}

function newSecretFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-example-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "webhook.secret");
  writeFileSync(path, `${SECRET}\n`);
  return path;
}

describe("examples/servers/fastify-postgres", () => {
  it("handles each event once, in order, in several processes of which one is killed at work (RCV-6, RCV-7, RCV-10)", {
    tags: "full",
    timeout: 60_000,
  }, async () => {
    const url = await newDatabase();
    const example = await RunningExample.start("fastify-postgres", {
      DATABASE_URL: url,
      WORKERS: `${WORKERS}`,
      WEBHOOK_SECRET: "",
      WEBHOOK_SECRET_FILE: newSecretFile(),
    });
    const target = `${example.url}/webhooks`;
    const urls = { inboundUrl: target, deliveryUrl: target };
    await using emulator = await createEmulator({
      ...urls,
      port: null,
      profile: "hostile",
      webhookSecret: SECRET,
      // A connection that was on its way to the killed worker is never answered.
      attemptTimeoutMs: 3_000,
      logger: silentLogger,
    });
    const service = connect(emulator);
    for (let number = 0; number < 30; number += 1) await service.send(number);

    const release = await holdRows(url, "message_history");
    const sending = emulator.clock.advance(ALL_ATTEMPTS_MS);
    await eventually(async () => (await workersOf(url, true)).length).toBe(WORKERS);
    const [victim = 0] = await workersOf(url, true);
    process.kill(victim, "SIGKILL");
    await release();
    await sending;

    const events = emulator.control.events({ limit: 1_000 });
    const deliveries = emulator.control.deliveries({ limit: 1_000 });
    expect(events.length).toBeGreaterThan(85);
    await eventually(async () => (await handledIn(url)).length).toBe(events.length);
    const rows = await handledIn(url);
    expect(findings(verdictOn({ events, deliveries }, rows))).toEqual([]);
    expect(new Set(rows.map(({ pid }) => pid)).size).toBeGreaterThan(1);
    await eventually(async () => example.lines.map((line) => JSON.parse(line).attempt)).toContain(2);
    // Another has taken its place.
    await eventually(async () => (await workersOf(url)).length).toBe(WORKERS);
    expect(await workersOf(url)).not.toContain(victim);
    expect(await example.terminate()).toBe(0);
    expect(await workersOf(url)).toEqual([]);
  });

  it("lets running handlers end, and waits for no unfinished request, when each of its processes is told twice", {
    tags: "full",
    timeout: 60_000,
  }, async () => {
    const url = await newDatabase();
    const example = await RunningExample.start("fastify-postgres", { DATABASE_URL: url, WORKERS: "2" });
    const workers = await workersOf(url);
    // As a service manager and its kind do, which signal all processes: a worker is told by the parent once more.
    const tellWorkers = () => workers.forEach((pid) => void process.kill(pid, "SIGTERM"));
    const release = await holdRows(url, "message_history");
    expect((await example.deliver(fixtures.queued({ occurredAt: Date.now() }))).status).toBe(200);
    await eventually(() => workersOf(url, true)).toHaveLength(1);
    const busy = await workersOf(url, true);
    await example.beginRequest();
    tellWorkers();
    await eventually(() => example.isListening()).toBe(false);
    process.kill(busy[0]!, "SIGTERM");
    const exit = example.terminate();
    await release();
    expect(await exit).toBe(0);
    expect((await handledIn(url)).map(({ pid }) => pid)).toEqual(busy);
  });

  it("tells what became of a message, and is stopped through npm run example:fastify-postgres", {
    tags: "full",
    timeout: 60_000,
  }, async () => {
    const url = await newDatabase();
    // The other example's table may be there too.
    execFileSync(process.execPath, [NEXT_MIGRATION], { env: { ...process.env, DATABASE_URL: url } });
    // The script replaces its shell: npm would signal that one alone, and leave the server behind.
    const command = ["npm", "run", "--silent", "example:fastify-postgres"];
    const example = await RunningExample.start("fastify-postgres", { DATABASE_URL: url, WORKERS: "2" }, command);
    const get = async (path: string) => {
      const answer = await fetch(`${example.url}${path}`);
      return [answer.status, await answer.json()];
    };
    const [queued, sent, delivery] = lifecycle({ occurredAt: Date.now() });
    for (const content of [delivery, queued, sent]) expect((await example.deliver(content!)).status).toBe(200);
    expect((await example.deliver(fixtures.queued(), "a-secret-that-nobody-installed-xx")).status).toBe(401);
    await eventually(async () => (await handledIn(url)).length).toBe(3);
    expect(await get("/messages/msg_000001")).toEqual([
      200,
      {
        messageId: "msg_000001",
        state: "message.delivery",
        history: [
          { sequence: 1, eventType: "message.queued" },
          { sequence: 2, eventType: "message.sent" },
          { sequence: 3, eventType: "message.delivery" },
        ],
      },
    ]);
    expect(await get("/messages/msg_000002")).toEqual([404, { error: "unknown_message" }]);
    expect(await get("/healthz")).toEqual([200, { status: "ok" }]);
    expect(await get("/readyz")).toEqual([200, { status: "ok", reasons: [], details: { late: 0 } }]);
    // As a terminal does it, but for the parent alone.
    expect(await example.terminate("SIGINT")).toBe(0);
    expect(await workersOf(url)).toEqual([]);
    await expect(fetch(example.url)).rejects.toThrow();
  });

  it("tells the newest state of a message whose history has a replay in it (RCV-7)", async () => {
    const url = await newDatabase();
    await createHistoryTable(url);
    const pool = new Pool({ connectionString: url });
    onTestFinished(() => pool.end());
    const receiver = createReceiver({ secrets: TEST_SECRET, store: postgresStore(pool), logger: silentLogger });
    receiver.onAny(keepRow);
    const app = await createApp(receiver, pool);
    onTestFinished(() => receiver.stop());
    for (const event of lifecycle({ occurredAt: Date.now() })) {
      const { method, headers, body } = signedRequest(event);
      const { statusCode } = await app.inject({ method, url: "/webhooks", headers, payload: Buffer.from(body) });
      expect(statusCode).toBe(200);
    }
    await receiver.drain();
    const [first] = (await receiver.inbox.find({ order: "oldest" })).items;
    expect(await receiver.inbox.replay(first!.id)).toMatchObject({ ok: true });
    await receiver.drain();
    expect((await handledIn(url)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 1]);
    expect((await app.inject("/messages/msg_000001")).json()).toMatchObject({ state: "message.delivery" });
  });

  it("has a worker per core, and 8 at most unless told otherwise", () => {
    const variables = { DATABASE_URL: "postgres://nowhere", WEBHOOK_SECRET: SECRET };
    expect([2, 96].map((cores) => readClusterEnvironment(variables, cores).workers)).toEqual([2, 8]);
    expect(readClusterEnvironment({ ...variables, WORKERS: "64" }, 96).workers).toBe(64);
  });

  it.each([
    ["no database", { WEBHOOK_SECRET: SECRET }, /^DATABASE_URL is not set: put .* in it\.$/],
    [
      "no worker",
      { DATABASE_URL: "postgres://nowhere", WORKERS: "0" },
      /^WORKERS must be a whole number from 1 to 64\.$/,
    ],
    [
      "no address",
      { DATABASE_URL: "hello", WEBHOOK_SECRET: SECRET },
      /^DATABASE_URL is not the address of a database: put postgres:.* in it\.$/,
    ],
    [
      "no secret",
      { DATABASE_URL: "postgres://nowhere" },
      /^Neither WEBHOOK_SECRET nor WEBHOOK_SECRET_FILE is set: put .*\.$/,
    ],
    [
      "an empty file",
      { DATABASE_URL: "postgres://nowhere", WEBHOOK_SECRET_FILE: "/dev/null" },
      /^WEBHOOK_SECRET_FILE names an empty file: put .* in it\.$/,
    ],
    [
      "no such file",
      { DATABASE_URL: "postgres://nowhere", WEBHOOK_SECRET_FILE: "/nowhere" },
      /^WEBHOOK_SECRET_FILE cannot/,
    ],
  ])("names the variable and the fix: %s", (_case, variables, message) => {
    expect(() => readClusterEnvironment(variables)).toThrow(message);
  });

  it.each([
    ["another password", /:postgres@/, ":another@", /the role or its password \(28P01\)\.$/],
    ["no such database", /postgres$/, "nowhere", /no such database \(3D000\)\.$/],
    ["no server", /:\d+\//, ":1/", /cannot be reached.* \(ECONNREFUSED\)\.$/],
    ["a slash in the password", /:postgres@/, ":ano/ther@", /not an address.* \(ERR_INVALID_URL\)\.$/],
    ["no TLS", /$/, "?sslmode=require", /cannot be used: look into the server's log\.$/],
  ])("names DATABASE_URL and not its password: %s", async (_case, part, mistake, message) => {
    const failed = createHistoryTable(inject("postgresUrl").replace(part, mistake));
    await expect(failed).rejects.toThrow(EnvironmentError);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.toThrow(/^DATABASE_URL: (?!.*(?:ano|ther@))/);
  });

  it("ends with 1 and one line when the database refuses it", { tags: "full" }, async () => {
    const environment = { DATABASE_URL: urlOf({ user: "nobody" }), WEBHOOK_SECRET: SECRET };
    const { code, errors } = await runToEnd("fastify-postgres", environment);
    expect(code).toBe(1);
    expect(errors).toMatch(/^DATABASE_URL: [^\n]*\n$/);
  });

  it("ends with 1 when its first worker cannot start, which says why once", { tags: "full" }, async () => {
    const environment = { DATABASE_URL: await newDatabase(), WEBHOOK_SECRET: "short", WORKERS: "4" };
    const { code, errors } = await runToEnd("fastify-postgres", environment);
    expect(code).toBe(1);
    expect(errors).toMatch(/^[^\n]*at least 16[^\n]*\n$/);
  });
});
