/** The Next.js example on Postgres as on a serverless platform: no worker, one connection for each process, a cron. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/internal/logger.ts";
import { createEmulator } from "../../src/messaging/emulator/index.ts";
import {
  fixtures,
  lifecycle,
  seededRandom,
  shuffled,
  signedRequest,
  TEST_SECRETS,
} from "../../src/tools/testing/index.ts";
import { holdRows } from "../examples/holding.ts";
import { connect } from "../proofs/application.ts";
import { findings, type HandledRow, verdictOn } from "../proofs/ledger.ts";
import { sql } from "../stores/postgres/place.ts";
import { type PostgresServer, startPostgres } from "../stores/postgres/server.ts";
import { Application, CRON_SECRET, ROOT, SECRET, type Server } from "./application.ts";

/** All of a delivery's attempts, and a message that comes 90 minutes late. */
const ALL_ATTEMPTS_MS = 180 * 60_000;
/** How long `/billing` keeps events back. */
const HOLD_BACK_MS = 3_000;
/** As long as a busy machine may need. */
const eventually = <T>(read: () => Promise<T>) => expect.poll(read, { timeout: 15_000 });

let postgres: PostgresServer;
let application: Application;
let buildOutput = "";

beforeAll(async () => {
  postgres = await startPostgres();
  application = new Application("nextjs-postgres", {
    DATABASE_URL: postgres.url,
    STRIPE_WEBHOOK_SECRET: TEST_SECRETS.stripe,
    HOLD_BACK_MS: String(HOLD_BACK_MS),
  });
  await application.install();
  // A second receiver, which no route of the example uses.
  cpSync(join(ROOT, "test/next/billing"), application.folder, { recursive: true });
  buildOutput = await application.build();
  await application.run("npm", ["run", "migrate"], { DATABASE_URL: postgres.url });
  await sql("create table billed (id bigint generated always as identity, lane text, event text)", postgres.url);
}, 900_000);
afterEach(() => application.killAll());
afterAll(async () => {
  await application?.dispose();
  await postgres?.stop();
});

const handled = async () =>
  (await sql(
    "select message_id, sequence, event_type from handled order by id",
    postgres.url,
  )) as readonly HandledRow[];

const sequencesOf = async (messageId: string) =>
  (await handled()).filter((row) => row.message_id === messageId).map(({ sequence }) => sequence);

/** As the cron does. */
async function drain(
  server: Server,
  { secret = CRON_SECRET, path = "/api/drain" } = {},
): Promise<readonly [status: number, answer: unknown]> {
  const answer = await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${secret}` } });
  return [answer.status, await answer.json()];
}

async function deliverAll(server: Server, events: readonly object[]): Promise<void> {
  for (const event of events) expect((await server.deliver("/webhooks", event)).status).toBe(200);
}

/** The inbox's own connections, with what they did last. */
const connections = () =>
  sql("select query, wait_event_type from pg_stat_activity where application_name = 'oncehook'", postgres.url);

describe("examples/nextjs-postgres", () => {
  it("builds without secrets and without a database, with its routes on the server", () => {
    for (const route of ["/api/drain", "/webhooks"]) expect(buildOutput).toContain(`ƒ ${route}`);
  });

  it("handles each event once, in order, after the responses of two processes (RCV-6, RCV-7, RCV-10)", async () => {
    const servers = await Promise.all([application.start("start"), application.start("start")]);
    const [deliveryUrl, inboundUrl] = servers.map(({ url }) => `${url}/webhooks`) as [string, string];
    const urls = { deliveryUrl, inboundUrl };
    await using emulator = await createEmulator({
      ...urls,
      port: null,
      profile: "hostile",
      webhookSecret: SECRET,
      logger: silentLogger,
    });
    const service = connect(emulator);
    for (let number = 0; number < 30; number += 1) await service.send(number);
    await emulator.clock.advance(ALL_ATTEMPTS_MS);
    const events = emulator.control.events({ limit: 1_000 });
    const deliveries = emulator.control.deliveries({ limit: 1_000 });
    expect(events.length).toBeGreaterThan(85);
    // Nobody calls the cron's route.
    await eventually(async () => (await handled()).length).toBe(events.length);
    expect(findings(verdictOn({ events, deliveries }, await handled()))).toEqual([]);
    const open = await connections();
    expect(open).toHaveLength(servers.length);
    expect(open.filter(({ query }) => /listen/i.test(String(query)))).toEqual([]);
    for (const server of servers) await server.end();
  });

  it("leaves retries to the cron, which needs its secret", async () => {
    const server = await application.start("start");
    await sql("alter table handled rename to moved", postgres.url);
    await deliverAll(server, lifecycle({ messageId: "msg_retried", occurredAt: Date.now() }));
    const failed = "select event from oncehook.attempt";
    await eventually(async () => (await sql(failed, postgres.url)).length).toBeGreaterThan(0);
    await sql("alter table moved rename to handled", postgres.url);
    expect(await drain(server, { secret: "a-guess-of-the-secret-xxxxxxxxxx" })).toEqual([
      401,
      { error: "unauthorized" },
    ]);
    // Its first wait is a second: a cron that comes too early comes again.
    await eventually(async () => {
      expect(await drain(server)).toMatchObject([200, { outcome: "drained" }]);
      return sequencesOf("msg_retried");
    }).toEqual([1, 2, 3]);
    await server.end();
  });

  it("has the cron handle what a killed process had in hand, once", async () => {
    const killed = await application.start("start");
    const letGo = await holdRows(postgres.url, "handled");
    const [queued] = lifecycle({ messageId: "msg_killed", occurredAt: Date.now() });
    await deliverAll(killed, [queued!]);
    await eventually(async () => (await connections()).map(({ wait_event_type }) => wait_event_type)).toEqual(["Lock"]);
    await killed.kill();
    await letGo();
    expect(await sequencesOf("msg_killed")).toEqual([]);
    const server = await application.start("start");
    expect(await drain(server)).toMatchObject([200, { outcome: "drained", complete: true }]);
    expect(await sequencesOf("msg_killed")).toEqual([1]);
    await server.end();
  });
});

describe("examples/nextjs-postgres with a source that holds events back", () => {
  const drainBilling = (server: Server) => drain(server, { path: "/api/drain-billing" });

  const billed = async () =>
    (await sql("select lane, event from billed order by id", postgres.url)) as readonly {
      lane: string;
      event: string;
    }[];

  const eventsOf = async (lane: string) =>
    (await billed()).filter((row) => row.lane === lane).map(({ event }) => event);

  /** Starts a server and opens its inbox, which would take a part of the hold-back. */
  async function startBilling(environment: NodeJS.ProcessEnv = {}): Promise<Server> {
    const server = await application.start("start", environment);
    expect(await drainBilling(server)).toMatchObject([200, { complete: true }]);
    return server;
  }

  /** One event of Stripe. `second` is when it happened. */
  async function deliverStripe(server: Server, object: string, second: number): Promise<number> {
    const id = `${object} ${second}`;
    const event = { ...fixtures.stripe({ id }), created: 1_760_000_000 + second, data: { object: { id: object } } };
    const answer = await fetch(`${server.url}/billing`, signedRequest(event, { source: "stripe" }));
    return answer.status;
  }

  it("handles shuffled events once, in order, after the responses of two processes, without a cron", async () => {
    const servers = await Promise.all([startBilling(), startBilling()]);
    const objects = Array.from({ length: 20 }, (_, index) => `sub_${index}`);
    const seconds = [1, 2, 3, 4, 5, 6];
    const events = objects.flatMap((object) => seconds.map((second) => ({ object, second })));
    const deliveries = shuffled(events, seededRandom(1));
    const half = deliveries.length / 2;
    const answerTimes: number[] = [];
    for (const wave of [deliveries.slice(0, half), deliveries.slice(half)]) {
      await Promise.all(
        wave.map(async ({ object, second }, index) => {
          const start = performance.now();
          expect(await deliverStripe(servers[index % 2]!, object, second)).toBe(200);
          answerTimes.push(performance.now() - start);
        }),
      );
      // The second half comes later, and within the hold-back.
      if (answerTimes.length === half) await sleep(HOLD_BACK_MS / 2);
    }
    for (const event of lifecycle({ messageId: "msg_beside", occurredAt: Date.now() }))
      expect((await servers[0]!.deliver("/billing-messages", event)).status).toBe(200);
    expect(Math.max(...answerTimes)).toBeLessThan(HOLD_BACK_MS / 3);
    await eventually(async () => (await billed()).length).toBe(events.length + 3);
    for (const server of servers) await server.end();
    const rows = await billed();
    for (const object of objects)
      expect(await eventsOf(object)).toEqual(seconds.map((second) => `${object} ${second}`));
    // The messages came last, and waited for nothing.
    expect(rows.slice(0, 3).map(({ lane }) => lane)).toEqual(Array(3).fill("msg_beside"));
    expect(rows).toHaveLength(events.length + 3);
  });

  it("handles an event that came while another process had its lane in hand, without a cron", async () => {
    const [first, second] = await Promise.all([startBilling(), startBilling()]);
    const letGo = await holdRows(postgres.url, "billed");
    onTestFinished(letGo);
    expect(await deliverStripe(first, "sub_taken", 1)).toBe(200);
    await eventually(async () => (await connections()).map((each) => each.wait_event_type)).toContain("Lock");
    expect(await deliverStripe(second, "sub_taken", 2)).toBe(200);
    await letGo();
    await eventually(() => eventsOf("sub_taken")).toEqual(["sub_taken 1", "sub_taken 2"]);
    for (const server of [first, second]) await server.end();
  });

  it("has the cron wait for what a killed process held back, and handle it once", async () => {
    const [killed, server] = await Promise.all([startBilling(), startBilling()]);
    expect(await deliverStripe(killed, "sub_killed", 1)).toBe(200);
    await killed.kill();
    const start = performance.now();
    expect(await drainBilling(server)).toEqual([200, { outcome: "drained", claimed: 1, complete: true }]);
    expect(performance.now() - start).toBeLessThan(2 * HOLD_BACK_MS);
    expect(await eventsOf("sub_killed")).toEqual(["sub_killed 1"]);
    expect(await drainBilling(server)).toEqual([200, { outcome: "drained", claimed: 0, complete: true }]);
    expect(await eventsOf("sub_killed")).toEqual(["sub_killed 1"]);
    await server.end();
  });

  it("answers a cron with a short budget before the hold-back ends, and a later run handles the event", async () => {
    const [killed, server] = await Promise.all([startBilling(), startBilling({ DRAIN_BUDGET_MS: "500" })]);
    expect(await deliverStripe(killed, "sub_short", 1)).toBe(200);
    await killed.kill();
    const start = performance.now();
    expect(await drainBilling(server)).toEqual([200, { outcome: "drained", claimed: 0, complete: false }]);
    expect(performance.now() - start).toBeLessThan(HOLD_BACK_MS / 2);
    expect(await eventsOf("sub_short")).toEqual([]);
    await eventually(async () => {
      await drainBilling(server);
      return eventsOf("sub_short");
    }).toEqual(["sub_short 1"]);
    expect(await drainBilling(server)).toEqual([200, { outcome: "drained", claimed: 0, complete: true }]);
    expect(await eventsOf("sub_short")).toEqual(["sub_short 1"]);
    await server.end();
  });
});
