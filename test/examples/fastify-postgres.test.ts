/** The Fastify example on Postgres: a parent and its workers as real processes, which are killed, stopped and misconfigured. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readClusterEnvironment } from "../../examples/fastify-postgres/environment.ts";
import { createEmulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { fixtures, lifecycle } from "../../src/testing/index.ts";
import { connect } from "../outages/sender.ts";
import { findings, type HandledRow, verdictOn } from "../outages/verdict.ts";
import { sql, urlOf } from "../postgres/place.ts";
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

/** A database of the test's own, because the example's table has no schema of its own. */
async function newDatabase(): Promise<string> {
  const database = `example_${process.pid}_${++databases}`;
  await sql(`create database ${database}`);
  onTestFinished(() => sql(`drop database ${database} with (force)`).then(() => {}));
  return urlOf({ database });
}

const handledIn = async (url: string) =>
  (await sql("select message_id, sequence, event_type, pid from handled order by id", url)) as readonly Row[];

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

describe("examples/fastify-postgres", () => {
  it("handles each event once, in order, in several processes of which one is killed at work (RCV-6, RCV-7, RCV-10)", async () => {
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

    const release = await holdRows(url);
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
    expect(example.lines.map((line) => JSON.parse(line).attempt)).toContain(2);
    // Another has taken its place.
    await eventually(async () => (await workersOf(url)).length).toBe(WORKERS);
    expect(await workersOf(url)).not.toContain(victim);
    expect(await example.terminate()).toBe(0);
    expect(await workersOf(url)).toEqual([]);
  }, 60_000);

  it("tells what became of a message, and is stopped through npm run example:fastify-postgres", async () => {
    const url = await newDatabase();
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
    expect(await get("/health")).toEqual([200, { status: "ok", reasons: [] }]);
    // As a terminal does it, but for the parent alone.
    expect(await example.terminate("SIGINT")).toBe(0);
    expect(await workersOf(url)).toEqual([]);
    await expect(fetch(example.url)).rejects.toThrow();
  }, 60_000);

  it.each([
    ["no database", { WEBHOOK_SECRET: SECRET }, /^DATABASE_URL is not set: put .* in it\.$/],
    [
      "no worker",
      { DATABASE_URL: "postgres://nowhere", WORKERS: "0" },
      /^WORKERS must be a whole number from 1 to 64\.$/,
    ],
    ["no secret", { DATABASE_URL: "postgres://nowhere" }, /^WEBHOOK_SECRET is not set/],
    [
      "no such file",
      { DATABASE_URL: "postgres://nowhere", WEBHOOK_SECRET_FILE: "/nowhere" },
      /^WEBHOOK_SECRET_FILE cannot/,
    ],
  ])("names the variable and the fix: %s", (_case, variables, message) => {
    expect(() => readClusterEnvironment(variables)).toThrow(message);
  });

  it("ends with 1 when its first worker cannot start, which says why once", async () => {
    const environment = { DATABASE_URL: await newDatabase(), WEBHOOK_SECRET: "short", WORKERS: "4" };
    const { code, errors } = await runToEnd("fastify-postgres", environment);
    expect(code).toBe(1);
    expect(errors).toMatch(/^[^\n]*at least 16[^\n]*\n$/);
  });
});
