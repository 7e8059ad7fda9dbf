/** The receiver under test: its clock is a day ahead when it is told to, some of its handlers fail, and it says what it takes. */
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver, type HandlerContext, RetryAfter, type WebhookEvent } from "../../../src/index.ts";
import { systemClock } from "../../../src/internal/clock.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type SqliteDatabase, sqliteStore } from "../../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../../src/testing/index.ts";
import { answering } from "../asked.ts";
import { makeEffectTable, writeEffect } from "../sqlite-inbox.ts";
import { endServer, listenOnLoopback } from "../../support/loopback.ts";
import { RETENTION, TOLERANCE } from "./day.ts";
import type { Sample, ServerOptions } from "./subject.ts";

const MIB = 1024 * 1024;
const AGAIN_AFTER_MS = 10;
const DELAY_RESOLUTION_MS = 5;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const { path, leaks } = JSON.parse(process.argv[2] ?? "{}") as ServerOptions;
let aheadMs = 0;
const receiver = createReceiver({
  secrets: TEST_SECRET,
  store: sqliteStore(path, { onOpen: makeEffectTable, minFreeBytes: 0 }),
  clock: { ...systemClock, now: () => Date.now() + aheadMs },
  logger: silentLogger,
  toleranceMs: TOLERANCE,
  retention: RETENTION,
  maxAttempts: 3,
});
const kept: unknown[] = [];

function handle(event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>): void {
  const { messageId } = ctx.meta.lane;
  if (leaks) kept.push(event, Uint8Array.from(ctx.rawBody));
  const fails = messageId.startsWith("poison") || (messageId.startsWith("flaky") && ctx.attempt === 1);
  if (fails) throw new RetryAfter(AGAIN_AFTER_MS);
  ctx.commit((db) => writeEffect(db, ctx));
}
receiver.onAny(handle).onLate(handle);

const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
delay.enable();

function sample(): Sample {
  const delayMs = delay.percentile(99) / 1e6 - DELAY_RESOLUTION_MS;
  // Twice: what is finalised by the first is freed by the second.
  collect();
  collect();
  delay.reset();
  const { heapUsed, external, rss } = process.memoryUsage();
  const descriptors = readdirSync("/proc/self/fd").length;
  return { heap: (heapUsed + external) / MIB, rss: rss / MIB, descriptors, delayMs };
}

await receiver.start();
const server = createServer(nodeWebhook(receiver));
// A connection that rests between two days is not closed under the first request of the next.
server.keepAliveTimeout = 120_000;

answering(
  {
    listen: () => listenOnLoopback(server),
    sample,
    advance: (ms: number) => {
      aheadMs = ms;
    },
  },
  async () => {
    await endServer(server);
    await receiver.stop();
  },
);
