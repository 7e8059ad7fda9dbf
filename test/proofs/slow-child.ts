/** The server that is attacked: a receiver on a SQLite file behind one of the adapters, or one of two careless fronts. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import express from "express";
import fastify from "fastify";
import { expressWebhook } from "../../adapters/express.ts";
import { fastifyWebhook } from "../../adapters/fastify.ts";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver, type HandlerContext, type Keyring, type KeyringContext } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { github } from "../../src/sources/index.ts";
import { TEST_SECRET, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { endServer, listenOnLoopback } from "../support/loopback.ts";
import { carelessly } from "./careless.ts";
import { commitEffect, storeAt } from "./inbox.ts";
import { answering, givenOptions } from "./process.ts";
import { type Connected, LOOK_UP_MS, type Memory, type ServerOptions, TENANT, TIMEOUTS } from "./slow-besieged.ts";

const MIB = 1024 * 1024;
const SAMPLE_EVERY_MS = 50;

const { adapter, path, flaw, bodies } = givenOptions<ServerOptions>();
const store = storeAt({ path });
const known: Keyring = { current: { secret: TEST_SECRET, tenant: "apc_1" } };

async function secrets({ tenant }: KeyringContext): Promise<Keyring | undefined> {
  if (tenant === TENANT) return known;
  await sleep(LOOK_UP_MS);
  return undefined;
}
const tenant = ({ url = "" }: { url?: string | undefined }) => url.split("/").at(-1) ?? "";

const handle = (_event: unknown, ctx: HandlerContext<never>) => commitEffect(ctx, { path });
const service = () =>
  // The largest bodies that can be allowed are the hardest on memory.
  createReceiver({ secrets, store, logger: silentLogger, maxBodyBytes: MIB }).onAny(handle).onLate(handle);
const large = () =>
  createReceiver({ source: github({ secrets: TEST_SECRETS.github }), store, logger: silentLogger }).onAny(() => {});
const receiver = bodies === "large" ? large() : service();

async function listening(): Promise<Server> {
  if (flaw !== "none") return createServer(TIMEOUTS, carelessly(receiver, flaw, tenant));
  if (adapter === "node") return createServer(TIMEOUTS, nodeWebhook(receiver, { tenant }));
  if (adapter === "express") {
    const app = express();
    app.all("/webhooks/:tenant", expressWebhook(receiver, { tenant }));
    return createServer(TIMEOUTS, app);
  }
  const app = fastify({ serverFactory: (listener: RequestListener) => createServer(TIMEOUTS, listener) });
  await app.register(fastifyWebhook, { receiver, path: "/webhooks/:tenant", tenant });
  await app.ready();
  return app.server;
}

/** Since when each is open; and those that were. */
const open = new Map<Socket, { readonly port: number; readonly since: number }>();
const held: Connected[] = [];

function watch(socket: Socket): void {
  const connection = { port: socket.remotePort ?? 0, since: Date.now() };
  open.set(socket, connection);
  socket.once("close", () => {
    held.push(heldSince(connection));
    open.delete(socket);
  });
}

function heldSince(connection: Omit<Connected, "ms">): Connected {
  return { ...connection, ms: Date.now() - connection.since };
}

const rss = () => Math.round(process.memoryUsage.rss() / MIB);
let memory: Memory = { idle: rss(), peak: rss() };
setInterval(() => {
  memory = { ...memory, peak: Math.max(memory.peak, rss()) };
}, SAMPLE_EVERY_MS);

await receiver.start();
const server = await listening();
server.on("connection", watch);

answering(
  {
    listen: () => listenOnLoopback(server),
    /** From here on the memory is compared with what it is now. */
    idle: () => {
      memory = { idle: rss(), peak: rss() };
    },
    memory: () => memory,
    open: () => [...open.values()].map(heldSince),
    held: () => held,
    /** How many events are not yet handled. */
    pending: async () => (await receiver.inbox.stats()).gauges.pending,
  },
  async () => {
    await endServer(server);
    await receiver.stop();
  },
);
