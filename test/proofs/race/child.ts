/** A process that receives over HTTP on an inbox that others share; or a naive one, which looks whether it knows an event and then inserts it. */
import { createServer, type RequestListener } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver, eventIdentity, type HandlerContext, type SourcesReceiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { type HandledEffect, ownOf } from "../history.ts";
import { commitEffect } from "../postgres-inbox.ts";
import { otherIdentity, sourcesFor } from "../sources.ts";
import { makeEffectTable, writeEffect } from "../sqlite-inbox.ts";
import { listenOnLoopback } from "../../support/loopback.ts";
import { Bystander } from "./bystander.ts";
import type { RacerOptions } from "./racers.ts";

const { place, naive } = JSON.parse(process.argv[2] ?? "{}") as RacerOptions;
const NAMES = ["messages", "billing", "held"] as const;
const common = { sources: sourcesFor(NAMES, {}), logger: silentLogger };

/** What the naive one does between looking and inserting takes its time. */
const NAIVE_WORK_MS = 5;

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
  const listener = listenerOf(receiver, (ctx, own) => ctx.commit((db) => writeEffect(db, ctx, own)));
  await receiver.start();
  bystander.join(path);
  const stop = async () => {
    await receiver.stop();
    bystander.leave();
  };
  return { listener, stop };
}

/** The sources of a receiver, each at its path. */
function listenerOf<Tx>(
  receiver: SourcesReceiver<Tx>,
  handler: (ctx: HandlerContext<Tx>, own: Partial<HandledEffect>) => void,
): RequestListener {
  const listeners = new Map<string | undefined, RequestListener>();
  for (const name of NAMES) {
    const source = receiver.source(name).onAny((event, ctx) => handler(ctx, ownOf(event, "on")));
    listeners.set(`/${name}`, nodeWebhook(source.onLate((event, ctx) => handler(ctx, ownOf(event, "late")))));
  }
  return (request, response) => listeners.get(request.url)?.(request, response);
}

async function onPostgres(url: string, schema: string): Promise<Racer> {
  const receiver = createReceiver({ ...common, store: postgresStore(url, { schema, maxConnections: 5 }) });
  const listener = listenerOf(receiver, (ctx, own) => commitEffect(ctx, schema, own));
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
    const name = NAMES.find((each) => incoming.url === `/${each}`) ?? "messages";
    const identity = name === "messages" ? eventIdentity(JSON.parse(`${body}`), body) : otherIdentity(name, body);
    const isKnown = find.get(identity) !== undefined;
    await sleep(NAIVE_WORK_MS);
    if (!isKnown) insert.run(identity, identity);
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
