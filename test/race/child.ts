/** A process that receives over HTTP on an inbox that others share; or a naive one, which looks whether it knows an event and then inserts it. */
import { createServer, type RequestListener } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { nodeWebhook } from "../../adapters/node.ts";
import {
  createReceiver,
  type EventsOf,
  eventIdentity,
  type HandlerContext,
  type KnownEvent,
  type SourcesReceiver,
} from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { service, stripe } from "../../src/presets/index.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { TEST_SECRET, TEST_SECRETS } from "../../src/testing/index.ts";
import { billIdentity } from "../prove/history.ts";
import { makeEffectTable, writeEffect } from "../prove/sqlite-inbox.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { Bystander } from "./bystander.ts";
import type { RacerOptions } from "./racers.ts";

const { place, naive } = JSON.parse(process.argv[2] ?? "{}") as RacerOptions;
const sources = {
  messages: service({ secrets: TEST_SECRET }),
  billing: stripe({ secrets: TEST_SECRETS.stripe, lane: null }),
};
const common = { sources, logger: silentLogger };

/** What the naive one does between looking and inserting takes its time. */
const NAIVE_WORK_MS = 5;

interface Bill {
  readonly id: string;
  readonly type: string;
}

/** What answers requests, and what ends it. */
interface Racer {
  readonly listener: RequestListener;
  stop(): Promise<void>;
}

async function onSqlite(path: string): Promise<Racer> {
  const bystander = new Bystander();
  const { driver } = bystander;
  const store = sqliteStore(path, { driver, onOpen: makeEffectTable, minFreeBytes: 0 });
  const receiver = createReceiver({ ...common, store });
  const listener = listenerOf(receiver, (_event, ctx) => ctx.commit((db) => writeEffect(db, ctx)));
  await receiver.start();
  bystander.join(path);
  const stop = async () => {
    await receiver.stop();
    bystander.leave();
  };
  return { listener, stop };
}

/** The two sources of a receiver, each at its path. */
function listenerOf<Tx>(
  receiver: SourcesReceiver<Tx, EventsOf<typeof sources>>,
  handler: (event: object, ctx: HandlerContext<Tx>) => void,
): RequestListener {
  const listeners = {
    "/messages": nodeWebhook(receiver.source("messages").onAny(handler)),
    "/billing": nodeWebhook(receiver.source("billing").onAny(handler)),
  };
  return (request, response) => listeners[request.url as keyof typeof listeners](request, response);
}

async function onPostgres(url: string, schema: string): Promise<Racer> {
  const receiver = createReceiver({ ...common, store: postgresStore(url, { schema, maxConnections: 5 }) });
  const insert = `insert into ${schema}_effect (identity, message, sequence, attempt, late, replay) values ($1, $2, $3, $4, $5, $6)`;
  const listener = listenerOf(receiver, (_event, ctx) => {
    const row = [ctx.identity, ctx.meta.lane.messageId, ctx.meta.sequence, ctx.attempt, ctx.outOfOrder, ctx.replay];
    ctx.commit((client) => client.query(insert, row));
  });
  await receiver.start();
  return { listener, stop: () => receiver.stop() };
}

/** The control: between looking and inserting somebody else can do the same, and no index is in the way. */
function naively(path: string): Racer {
  const db = new Database(path, { timeout: 5_000 });
  db.pragma("journal_mode = wal");
  makeEffectTable(db);
  const find = db.prepare("select 1 from effect where identity = ?");
  const insert = db.prepare(
    "insert into effect (identity, message, sequence, attempt, late, replay) values (?, ?, 1, 1, 0, 0)",
  );
  const listener: RequestListener = async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const event = JSON.parse(body.toString()) as KnownEvent | Bill;
    const identity = "id" in event ? billIdentity(event.id, event.type) : eventIdentity(event, body);
    const isKnown = find.get(identity) !== undefined;
    await sleep(NAIVE_WORK_MS);
    if (!isKnown) insert.run(identity, "messageId" in event ? event.messageId : "");
    response.end(JSON.stringify({ outcome: isKnown ? "duplicate" : "accepted" }));
  };
  return { listener, stop: async () => void db.close() };
}

const racer = naive
  ? naively(place.kind === "sqlite" ? place.path : "")
  : await (place.kind === "sqlite" ? onSqlite(place.path) : onPostgres(place.url, place.schema));
const server = createServer(racer.listener);
process.on("message", async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  await closed;
  await racer.stop();
  process.exit(0);
});
process.on("disconnect", () => process.exit(1));
process.send?.({ id: 0, port: await listenOnLoopback(server) });
