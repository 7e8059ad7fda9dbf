/**
 * The process that is killed: accepts over HTTP and handles with transactional effects, on the inbox it is given. It loads,
 * says so, and opens the inbox when a line comes in, so that the next one can stand by while this one is killed.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";
import Database from "better-sqlite3";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver, type HandlerContext } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type SqliteDatabase, sqliteStore } from "../../../src/stores/sqlite.ts";
import { type HandledEffect, ownOf } from "../history.ts";
import { sourcesFor } from "../sources.ts";
import { commitEffect, makeEffectTable, writeEffect } from "../sqlite-inbox.ts";
import { listenOnLoopback } from "../../support/loopback.ts";
import { answeringFirst } from "./flaws.ts";
import type { ChildOptions, Ready } from "./process.ts";

const { path, flaws } = JSON.parse(process.argv[2] ?? "{}") as ChildOptions;

const store = sqliteStore(path, {
  onOpen: (db) => {
    makeEffectTable(db);
    db.exec(`
      create table if not exists total (events integer);
      insert into total select 0 where not exists (select 1 from total);
    `);
  },
});
const NAMES = ["messages", "billing", "held"] as const;
const receiver = createReceiver({ sources: sourcesFor(NAMES, {}), store, maxAttempts: 100, logger: silentLogger });
const outside = () => new Database(path, { timeout: 5_000 });
let careless: ReturnType<typeof outside> | undefined;

async function handle(ctx: HandlerContext<SqliteDatabase>, own: Partial<HandledEffect>): Promise<void> {
  if (flaws.includes("effect_outside_commit")) {
    careless ??= outside();
    writeEffect(careless, ctx, own);
  } else commitEffect(ctx, own);
  // Handlers that take turns of the event loop, so that a kill finds some of them between start and completion.
  for (let turn = 0; turn < (ctx.meta.sequence * 7) % 5; turn++) await setImmediate();
  ctx.commit((db) => db.prepare("update total set events = events + 1").run());
}
for (const name of NAMES)
  receiver
    .source(name)
    .onAny((event, ctx) => handle(ctx, ownOf(event, "on")))
    .onLate((event, ctx) => handle(ctx, ownOf(event, "late")));

console.log(JSON.stringify({ loadedMs: performance.now() }));
// A parent that is gone says nothing any more.
const [line] = await Promise.race([
  once(createInterface({ input: process.stdin }), "line"),
  once(process.stdin, "end"),
]);
if (line === undefined) process.exit(1);

const startedAt = performance.now();
const usedBefore = process.cpuUsage();
await receiver.start();
const listenerOf = flaws.includes("answer_before_commit") ? answeringFirst : nodeWebhook;
const listeners = new Map(NAMES.map((name) => [`/${name}`, listenerOf(receiver.source(name))]));
const server = createServer((request, response) => listeners.get(`${request.url}`)?.(request, response));
const port = await listenOnLoopback(server);
const { user, system } = process.cpuUsage(usedBefore);
const ready: Ready = {
  port,
  recoveryMs: performance.now() - startedAt,
  processorMs: (user + system) / 1_000,
};
console.log(JSON.stringify(ready));

process.once("SIGTERM", async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  await receiver.drain({ budgetMs: 120_000 });
  await receiver.stop({ until: closed });
  process.exit(0);
});
