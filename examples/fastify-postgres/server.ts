/** Webhooks in a Fastify application: stored in Postgres, then handled once and in order, by any number of processes. */
import Fastify from "fastify";
import { createReceiver } from "oncehook";
import { fastifyWebhook } from "oncehook/fastify";
import { postgresStore } from "oncehook/postgres";
import { Pool } from "pg";

const port = Number(process.env.PORT ?? 3000);
const pool = new Pool({ connectionString: process.env.DATABASE_URL });
// Your own table. The inbox makes its tables itself, in a schema of its own.
await pool.query("create table if not exists sms (id text primary key, status text not null)");
const receiver = createReceiver({ secrets: process.env.WEBHOOK_SECRET ?? "", store: postgresStore(pool) });

receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], (event, ctx) => {
  // Written in the transaction that completes the event: exactly once, also after a crash.
  ctx.commit({
    text: "insert into sms values ($1, $2) on conflict (id) do update set status = excluded.status",
    values: [event.messageId, event.data.status],
  });
  console.log("handled", event.eventType, event.messageId);
});
receiver.on("message.inbound", (event) => console.log("handled", event.eventType, event.data.messageId));
receiver.onLate((event) => console.log("late", event.eventType)); // A newer event of the same message was handled.
receiver.onDeadLetter(({ eventId, code }) => console.error("gave up on event", eventId, code));
await receiver.start();

const app = Fastify({ return503OnClosing: false }); // While it closes, open connections may still deliver.
await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
app.get("/health", async (_request, reply) => {
  const { status, reasons } = await receiver.health();
  return reply.code(reasons.includes("store_unavailable") ? 503 : 200).send({ status, reasons });
});
app.get<{ Params: { id: string } }>("/sms/:id", async ({ params }, reply) => {
  const { rows } = await pool.query("select id, status from sms where id = $1", [params.id]);
  return rows[0] ?? reply.code(404).send({ error: "unknown_message" });
});
await app.listen({ port, host: "0.0.0.0" });
console.log(`Listening on http://127.0.0.1:${port}/webhooks`);

const stop = async () => {
  setTimeout(() => app.server.closeAllConnections(), 3_000).unref(); // A client that sends nothing would keep its connection.
  await receiver.stop({ until: app.close() }); // Running handlers end first.
  await pool.end();
};
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
