/** The server of a benchmark, a process of its own: `node server.js ROUTE FRAMEWORK INBOX`, a file or `postgres://…`. */
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import express from "express";
import fastify, { type FastifyInstance } from "fastify";
import { expressWebhook } from "../adapters/express.ts";
import { fastifyWebhook, type WebhookReceiver } from "../adapters/fastify.ts";
import { Instruments } from "../src/inbox/instruments.ts";
import { createReceiver, type Logger, parseEvent, verifySignature } from "../src/index.ts";
import { postgresStore } from "../src/stores/postgres.ts";
import { type SqliteDatabase, sqliteStore } from "../src/stores/sqlite.ts";
import { answerParent } from "./child.ts";
import { SECRET } from "./deliveries.ts";
import { exportedSpans, trace } from "./opentelemetry.ts";
import { startPgBoss } from "./pg-boss.ts";

/**
 * `bare` reads the body; `verify` also verifies and parses it; `accept` stores it before the 2xx; `handle` also hands it to
 * a handler with an effect in the same database. `unwatched` and `watched` do what `accept` does, with the seam
 * for telemetry cut out, and with OpenTelemetry's SDK listening; `traced`
 * what `handle` does, with OpenTelemetry's SDK listening. `postgres` stores it in Postgres before the 2xx, `pg-boss` as a job of pg-boss.
 */
export type Route =
  | "bare"
  | "verify"
  | "accept"
  | "handle"
  | "unwatched"
  | "watched"
  | "traced"
  | "postgres"
  | "pg-boss";
export type Framework = "express" | "fastify";

export type ServerQuestion = "listen" | "await handled" | "begin" | "delay" | "processor" | "memory" | "spans";

const OUTCOME = { outcome: "accepted" };
/** The worker is left out on purpose where storing alone is measured. */
const LOGGER: Logger = {
  debug() {},
  info() {},
  warn: console.error,
  error: (fields, message) => fields.code !== "worker_not_running" && console.error(fields, message),
};
/** The histogram measures how late its own timer is, and counts the timer's period too. */
const DELAY_RESOLUTION_MS = 1;

const [route, framework, inbox] = process.argv.slice(2) as [Route, Framework, string];
const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
let processor = process.cpuUsage();
let handled = 0;

answerParent<{ ask: ServerQuestion; count?: number }>(async ({ ask, count = 0 }) => {
  switch (ask) {
    case "listen":
      return listen();
    case "await handled":
      while (handled < count) await new Promise((resolve) => setTimeout(resolve, 1));
      handled -= count;
      return performance.timeOrigin + performance.now();
    case "begin":
      processor = process.cpuUsage();
      delay.reset();
      return delay.enable();
    case "delay":
      return delay.percentile(99) / 1e6 - DELAY_RESOLUTION_MS;
    case "processor": {
      const { user, system } = process.cpuUsage(processor);
      return user + system;
    }
    case "memory":
      return process.memoryUsage.rss() / 2 ** 20;
    case "spans":
      return exportedSpans();
    default:
      return ask satisfies never;
  }
});

async function listen(): Promise<number> {
  if (route === "pg-boss") return listenPgBoss();
  const receiver = await openReceiver();
  return framework === "express" ? listenExpress(receiver) : listenFastify(receiver);
}

async function openReceiver(): Promise<WebhookReceiver | null> {
  switch (route) {
    case "postgres":
      return createReceiver({ secrets: SECRET, store: postgresStore(inbox), logger: LOGGER });
    case "accept":
    case "handle":
    case "unwatched":
    case "watched":
    case "traced":
      return sqliteReceiver();
    default:
      return null;
  }
}

async function sqliteReceiver(): Promise<WebhookReceiver> {
  const receiver = createReceiver({ secrets: SECRET, store: sqliteStore(inbox), logger: LOGGER });
  if (route === "unwatched") cutOutTelemetry();
  if (route === "watched" || route === "traced") trace(receiver);
  let insert: ReturnType<SqliteDatabase["prepare"]> | null = null;
  receiver.onAny((event, ctx) => {
    ctx.commit((db) => {
      insert ??= prepareNotes(db);
      insert.run(event.eventType, ctx.meta.eventId);
      handled += 1;
    });
  });
  if (route === "handle" || route === "traced") await receiver.start();
  return receiver;
}

/** As if nobody could ever listen: not even whether somebody does is asked. */
function cutOutTelemetry(): void {
  Object.assign(Instruments.prototype, { hears: () => false, delivery: () => null, attempt: () => null });
}

function prepareNotes(db: SqliteDatabase): ReturnType<SqliteDatabase["prepare"]> {
  db.exec("create table if not exists note (id integer primary key, type text, event integer)");
  return db.prepare("insert into note (type, event) values (?, ?)");
}

function listenExpress(receiver: WebhookReceiver | null): Promise<number> {
  const app = express();
  if (receiver !== null) app.all("/webhooks", expressWebhook(receiver));
  else {
    app.post("/webhooks", express.raw({ type: "*/*" }), (request, response) => {
      response.status(statusFor(request.headers, request.body)).json(OUTCOME);
    });
  }
  return new Promise((resolve) => {
    const server = app.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

async function listenFastify(receiver: WebhookReceiver | null): Promise<number> {
  const app = fastify();
  if (receiver !== null) await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
  else {
    keepBytes(app);
    app.post<{ Body: Buffer }>("/webhooks", (request, reply) => {
      reply.code(statusFor(request.headers, request.body)).send(OUTCOME);
    });
  }
  return listenOn(app);
}

async function listenPgBoss(): Promise<number> {
  const queue = await startPgBoss(inbox);
  const app = fastify();
  keepBytes(app);
  app.post<{ Body: Buffer }>("/webhooks", async ({ headers, body }, reply) => {
    const parsed = verifySignature({ headers, body, secrets: SECRET }).ok ? parseEvent(body) : null;
    if (!parsed?.ok) return reply.code(401).send();
    await queue(parsed.event);
    return OUTCOME;
  });
  return listenOn(app);
}

function keepBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
}

async function listenOn(app: FastifyInstance): Promise<number> {
  await app.listen({ port: 0, host: "127.0.0.1" });
  return (app.server.address() as AddressInfo).port;
}

function statusFor(headers: Record<string, string | string[] | undefined>, body: Buffer): number {
  if (route === "bare") return 200;
  if (!verifySignature({ headers, body, secrets: SECRET }).ok) return 401;
  return parseEvent(body).ok ? 200 : 400;
}
