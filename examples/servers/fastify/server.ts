/** `npm run example:fastify`: webhooks in a Fastify application, stored in a SQLite file and handled in order. */
import fastify from "fastify";
import { createReceiver } from "oncehook";
import { fastifyWebhook } from "oncehook/fastify";
import { sqliteStore } from "oncehook/sqlite";
import { closedInTime, onEnd } from "../../shared/ending.ts";
import { endWithOneLine, readEnvironment } from "../../shared/environment.ts";
import { createHandledTable, recordHandled } from "../../shared/handled.ts";
import { readinessStatus } from "../../shared/health.ts";
import { announce } from "../../shared/listening.ts";

async function main(): Promise<void> {
  const { port, secrets, inboxPath } = readEnvironment(process.env);
  const receiver = createReceiver({ secrets, store: sqliteStore(inboxPath, { onOpen: createHandledTable }) });
  recordHandled(receiver);
  await receiver.start();

  // While it closes, deliveries on open connections are still accepted.
  const app = fastify({ return503OnClosing: false });
  await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
  app.post("/api/echo", async (request) => request.body);
  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const health = await receiver.health();
    return reply.code(readinessStatus(health)).send(health);
  });
  await app.listen({ port, host: "127.0.0.1" });
  announce(app.server);

  onEnd(async () => {
    const closed = closedInTime(app.server, app.close()); // No new connections; open requests are still answered.
    await receiver.drain({ budgetMs: 10_000 }).catch(() => {}); // Handles what is ready. A store that fails was logged.
    await receiver.stop({ until: closed }); // Lets running handlers end, and closes the inbox behind the last request.
    process.exit(0);
  });
}

main().catch(endWithOneLine);
