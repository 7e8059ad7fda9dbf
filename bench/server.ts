/** The server of a benchmark, a process of its own: `node server.js ROUTE FRAMEWORK INBOX`, a file or an address. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import express from "express";
import fastify, { type FastifyInstance } from "fastify";
import { expressWebhook } from "../adapters/express.ts";
import { fastifyWebhook } from "../adapters/fastify.ts";
import { nodeWebhook, type WebhookReceiver } from "../adapters/node.ts";
import { Instruments } from "../src/inbox/instrumentation.ts";
import {
  createReceiver,
  eventIdentity,
  type Handler,
  type Logger,
  parseEvent,
  verifySignature,
  type WebhookEvent,
} from "../src/index.ts";
import { stripe } from "../src/sources/index.ts";
import { memoryStore } from "../src/stores/memory.ts";
import { postgresStore } from "../src/stores/postgres.ts";
import { type SqliteDatabase, sqliteStore } from "../src/stores/sqlite.ts";
import { listenOnLoopback } from "../test/support/loopback.ts";
import { p99 } from "../test/support/statistics.ts";
import { answerParent } from "./child.ts";
import { SECRET } from "./deliveries.ts";
import { exportedSpans, trace } from "./opentelemetry.ts";
import { QUEUES, type QueueRoute } from "./queues.ts";

/**
 * `bare` reads the body; `verify` also verifies and parses it; `accept` stores it before the 2xx; `handle` also hands it to
 * a handler with an effect in the same database. `unwatched` and `watched` do what `accept` does, with the seam
 * for telemetry cut out, and with OpenTelemetry's SDK listening; `traced` what `handle` does, with OpenTelemetry's SDK
 * listening; `timed` what `handle` does, noting how long each event waited; `stuck` has handlers that never end.
 * `stripe` does what `accept` does with Stripe's events, and `postgres` with another store. `memory` hands each to a handler too,
 * since it is not durable. The others verify and store in the same way, and `graphile-worker-handling` also handles.
 */
export type Route =
  | "bare"
  | "verify"
  | "accept"
  | "handle"
  | "unwatched"
  | "watched"
  | "traced"
  | "timed"
  | "stuck"
  | "postgres"
  | "memory"
  | "stripe"
  | QueueRoute;
export type Framework = "express" | "fastify" | "node";

/**
 * `await handled` resolves when so many more were handled, `waits` with what one event in a hundred waited longer than,
 * `memory` with the most that the process has taken so far.
 */
export type ServerQuestion =
  | "listen"
  | "await handled"
  | "begin"
  | "delay"
  | "processor"
  | "memory"
  | "spans"
  | "waits";

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
const MEMORY_EVENTS = 10_000_000;
let processor = process.cpuUsage();
let handled = 0;
/** Milliseconds from the acceptance of an event, just before its 2xx, to the commit of its end. */
let waits: number[] = [];

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
      waits = [];
      delay.reset();
      return delay.enable();
    case "delay":
      return delay.percentile(99) / 1e6 - DELAY_RESOLUTION_MS;
    case "processor": {
      const { user, system } = process.cpuUsage(processor);
      return user + system;
    }
    case "memory":
      return mostMemory();
    case "spans":
      return exportedSpans();
    case "waits":
      return p99(waits);
    default:
      return ask satisfies never;
  }
});

/** MiB. Not by `resourceUsage`, which on Linux begins with what the process that forked this one took. Elsewhere: what is taken now. */
function mostMemory(): number {
  if (process.platform !== "linux") return process.memoryUsage.rss() / 2 ** 20;
  const [, kibibytes] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return Number(kibibytes) / 2 ** 10;
}

async function listen(): Promise<number> {
  if (isQueue(route)) return listenQueue(route);
  const receiver = await openReceiver();
  if (framework === "express") return listenExpress(receiver);
  return framework === "node" ? listenNode(receiver) : listenFastify(receiver);
}

function isQueue(route: Route): route is QueueRoute {
  return route in QUEUES;
}

async function openReceiver(): Promise<WebhookReceiver | null> {
  switch (route) {
    case "bare":
    case "verify":
      return null;
    case "postgres":
      return createReceiver({ secrets: SECRET, store: postgresStore(inbox), logger: LOGGER });
    case "memory": {
      const store = memoryStore({ maxEvents: MEMORY_EVENTS, volatile: true });
      return createReceiver({ secrets: SECRET, store, logger: LOGGER });
    }
    case "stripe":
      return stripeReceiver();
    default:
      return sqliteReceiver();
  }
}

function stripeReceiver(): WebhookReceiver {
  const source = stripe({ secrets: SECRET });
  const receiver = createReceiver({ source, store: sqliteStore(inbox), logger: LOGGER });
  const unused = () => {
    throw new Error("Nothing is handled here.");
  };
  return receiver.onAny(unused).onLate(unused);
}

async function sqliteReceiver(): Promise<WebhookReceiver> {
  const receiver = createReceiver({ secrets: SECRET, store: sqliteStore(inbox), logger: LOGGER });
  if (route === "unwatched") cutOutTelemetry();
  if (route === "watched" || route === "traced") trace(receiver);
  if (route === "timed") {
    receiver.instrument({
      attempt: ({ acceptedAt }) => ({ ended: () => void waits.push(receiver.clock.now() - acceptedAt) }),
    });
  }
  receiver.onAny(route === "stuck" ? () => new Promise<void>(() => {}) : noting());
  if (["handle", "traced", "timed", "stuck"].includes(route)) await receiver.start();
  return receiver;
}

/** A handler with an effect: it notes each event in a table of the same database. */
function noting(): Handler<WebhookEvent, SqliteDatabase> {
  let insert: ReturnType<SqliteDatabase["prepare"]> | null = null;
  return (event, ctx) => {
    ctx.commit((db) => {
      insert ??= prepareNotes(db);
      insert.run(event.eventType, ctx.meta.eventId);
      handled += 1;
    });
  };
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
  return listenOnLoopback(createServer(app));
}

function listenNode(receiver: WebhookReceiver | null): Promise<number> {
  if (receiver === null) throw new Error(`The route ${route} is not served without a framework.`);
  return listenOnLoopback(createServer(nodeWebhook(receiver)));
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

async function listenQueue(route: QueueRoute): Promise<number> {
  const keep = await QUEUES[route](inbox, () => {
    handled += 1;
  });
  const app = fastify();
  keepBytes(app);
  app.post<{ Body: Buffer }>("/webhooks", async ({ headers, body }, reply) => {
    const parsed = verifySignature({ headers, body, secrets: SECRET }).ok ? parseEvent(body) : null;
    if (!parsed?.ok) return reply.code(401).send();
    await keep({ event: parsed.event, raw: body, identity: eventIdentity(parsed.event, body) });
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
