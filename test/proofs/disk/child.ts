/** The process whose disk or clock goes wrong: receives over HTTP on a SQLite file, handles with effects, and tells how long it stood still. */
import { createServer } from "node:http";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../../src/testing/index.ts";
import { answeringFirst } from "../crash/flaws.ts";
import { makeEffectTable, writeEffect } from "../sqlite-inbox.ts";
import { endServer, listenOnLoopback } from "../../support/loopback.ts";
import type { SubjectOptions } from "./subject.ts";

const LOOK_EVERY_MS = 5;

const { path, busyTimeoutMs, answersFirst } = JSON.parse(process.argv[2] ?? "{}") as SubjectOptions;
const store = sqliteStore(path, { onOpen: makeEffectTable, busyTimeoutMs, minFreeBytes: 0 });
const receiver = createReceiver({ secrets: TEST_SECRET, store, logger: silentLogger, maxAttempts: 100 });
receiver
  .onAny((_event, ctx) => ctx.commit((db) => writeEffect(db, ctx)))
  .onLate((_event, ctx) => ctx.commit((db) => writeEffect(db, ctx)));

/** The longest that the event loop stood still since it was asked last, ms. */
let longestStallMs = 0;
let lookedAt = performance.now();
setInterval(() => {
  const now = performance.now();
  longestStallMs = Math.max(longestStallMs, now - lookedAt - LOOK_EVERY_MS);
  lookedAt = now;
}, LOOK_EVERY_MS);

const tell = (message: object) => void process.send?.(message, undefined, undefined, () => {});
process.on("message", async ({ id, kind }: { readonly id: number; readonly kind: "stall" | "stop" }) => {
  if (kind === "stall") {
    tell({ id, stallMs: Math.round(longestStallMs) });
    longestStallMs = 0;
    return;
  }
  await endServer(server);
  await receiver.stop();
  process.exit(0);
});
process.on("disconnect", () => process.exit(1));

await receiver.start();
const listener = answersFirst ? answeringFirst(receiver) : nodeWebhook(receiver);
const server = createServer(listener);
// A connection that rests between two windows is not closed under a request that is just sent.
server.keepAliveTimeout = 120_000;
tell({ id: 0, port: await listenOnLoopback(server) });
