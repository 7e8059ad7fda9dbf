/** The routes: webhooks, what is known of a message, liveness and readiness. Each worker has its own, all listen on one port. */
import fastify, { type FastifyInstance } from "fastify";
import type { Receiver } from "oncehook";
import { fastifyWebhook } from "oncehook/fastify";
import type { Pool, PoolClient } from "pg";
import { readinessStatus } from "../../shared/health.ts";
import { readHistory } from "./history.ts";

export async function createApp(receiver: Receiver<PoolClient>, pool: Pool): Promise<FastifyInstance> {
  // While it closes, deliveries on open connections are still accepted.
  const app = fastify({ return503OnClosing: false });
  await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
  app.get<{ Params: { id: string } }>("/messages/:id", async ({ params }, reply) => {
    const history = await readHistory(pool, params.id);
    // The last one that was handled may be an operator's replay of an earlier state.
    const newest = history.at(-1);
    if (newest === undefined) return reply.code(404).send({ error: "unknown_message" });
    return { messageId: params.id, state: newest.eventType, history };
  });
  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const health = await receiver.health();
    return reply.code(readinessStatus(health)).send(health);
  });
  return app;
}
