/** `npm run example:express-bullmq`: webhooks in an Express application, stored in a SQLite file and handed to BullMQ. */
import { once } from "node:events";
import { Queue } from "bullmq";
import express from "express";
import { createReceiver } from "oncehook";
import { bullmqPublisher, type ForwardedJob } from "oncehook/bullmq";
import { expressWebhook } from "oncehook/express";
import { forward } from "oncehook/forward";
import { sqliteStore } from "oncehook/sqlite";
import { closedInTime, onEnd } from "../../shared/ending.ts";
import { endWithOneLine, readEnvironment } from "../../shared/environment.ts";
import { readinessStatus } from "../../shared/health.ts";
import { announce } from "../../shared/listening.ts";
import { readQueueEnvironment } from "./environment.ts";

async function main(): Promise<void> {
  const { port, secrets, inboxPath } = readEnvironment(process.env);
  const { redisUrl, queueName } = readQueueEnvironment(process.env);

  // One try per command: the inbox tries again, with its own waits. Without Redis the webhooks are still accepted.
  const queue = new Queue<ForwardedJob>(queueName, {
    connection: { url: redisUrl, maxRetriesPerRequest: 1 },
    defaultJobOptions: { attempts: 12, backoff: { type: "exponential", delay: 1_000 } },
  });
  queue.on("error", ({ name }) => console.error(JSON.stringify({ redis: name })));

  const receiver = createReceiver({ secrets, store: sqliteStore(inboxPath) });
  const handler = forward(bullmqPublisher({ queue }));
  receiver.onAny(handler).onLate(handler);
  await receiver.start();

  const app = express();
  app.disable("x-powered-by");
  app.all("/webhooks", expressWebhook(receiver));
  app.get("/healthz", (_request, response) => {
    response.json({ status: "ok" });
  });
  app.get("/readyz", async (_request, response) => {
    const health = await receiver.health();
    response.status(readinessStatus(health)).json(health);
  });
  const server = app.listen(port, "127.0.0.1");
  await once(server, "listening");
  announce(server);

  onEnd(async () => {
    // No new connections; open requests are still answered.
    const closed = closedInTime(server, new Promise((resolve) => server.close(resolve)));
    await receiver.stop({ until: closed, timeoutMs: 5_000 }); // What is not in the queue yet stays in the inbox.
    queue.disconnect().catch(() => {});
    process.exit(0);
  });
}

main().catch(endWithOneLine);
