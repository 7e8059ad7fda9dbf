/** The Next.js example on Postgres as on a serverless platform: no worker, one connection for each process, a cron. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createEmulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { lifecycle } from "../../src/testing/index.ts";
import { holdRows } from "../examples/holding.ts";
import { connect } from "../outages/sender.ts";
import { findings, type HandledRow, verdictOn } from "../outages/verdict.ts";
import { sql } from "../postgres/place.ts";
import { type PostgresServer, startPostgres } from "../postgres/server.ts";
import { Application, CRON_SECRET, SECRET, type Server } from "./application.ts";

/** All of a delivery's attempts, and a message that comes 90 minutes late. */
const ALL_ATTEMPTS_MS = 180 * 60_000;
/** As long as a busy machine may need. */
const eventually = <T>(read: () => Promise<T>) => expect.poll(read, { timeout: 15_000 });

let postgres: PostgresServer;
let application: Application;
let buildOutput = "";

beforeAll(async () => {
  postgres = await startPostgres();
  application = new Application("nextjs-postgres", { DATABASE_URL: postgres.url });
  await application.install();
  buildOutput = await application.build();
  await application.run("npm", ["run", "migrate"], { DATABASE_URL: postgres.url });
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
async function drain(server: Server, secret = CRON_SECRET): Promise<readonly [status: number, answer: unknown]> {
  const answer = await fetch(`${server.url}/api/drain`, { headers: { authorization: `Bearer ${secret}` } });
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
    expect(await drain(server, "a-guess-of-the-secret-xxxxxxxxxx")).toEqual([401, { error: "unauthorized" }]);
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
