/** An application that sends messages and receives what becomes of them. Postgres holds the inbox and the table `sms`. */
import { randomUUID } from "node:crypto";
import Fastify from "fastify";
import { createReceiver } from "oncehook";
import { createClient } from "oncehook/client";
import { fastifyWebhook } from "oncehook/fastify";
import { postgresStore } from "oncehook/postgres";
import { Pool } from "pg";

const { DATABASE_URL = "", SERVICE_BASE_URL = "", SERVICE_CLIENT_ID = "", SERVICE_CLIENT_SECRET = "" } = process.env;
const pool = new Pool({ connectionString: DATABASE_URL });
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
await receiver.start();

const client = createClient({
  baseUrl: SERVICE_BASE_URL,
  clientId: SERVICE_CLIENT_ID,
  clientSecret: SERVICE_CLIENT_SECRET,
  allowHttpToPrivateHosts: true, // The emulator of compose.yaml. Plain http to a public host stays refused.
});

const app = Fastify({ return503OnClosing: false }); // While it closes, open connections may still deliver.
await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
app.get("/health", async (_request, reply) => {
  const { status, reasons } = await receiver.health();
  return reply.code(reasons.includes("store_unavailable") ? 503 : 200).send({ status, reasons });
});
app.post<{ Body: { to: string; text: string } }>("/sms", async ({ body }, reply) => {
  const numbers = await client.numbers.list();
  const number = numbers.find(
    ({ status, smsEnabled, campaignRegId }) => status === "ACTIVE" && smsEnabled && campaignRegId,
  );
  if (number === undefined) return reply.code(500).send({ error: "no_number_can_send" });
  const message = { sendFrom: number.numberId, to: [body.to], messageType: "SMS", text: body.text } as const;
  const { results, errors } = await client.messages.send({ ...message, externalReference: randomUUID() });
  return reply
    .code(202)
    .send({ ids: results.map(({ messageId }) => messageId), errors: errors.map(({ error }) => error.code) });
});
app.get<{ Params: { id: string } }>("/sms/:id", async ({ params }, reply) => {
  const { rows } = await pool.query("select id, status from sms where id = $1", [params.id]);
  return rows[0] ?? reply.code(404).send({ error: "unknown_message" });
});
await app.listen({ port: Number(process.env.PORT ?? 3000), host: "0.0.0.0" });
console.log("Listening");

const stop = async () => {
  setTimeout(() => app.server.closeAllConnections(), 3_000).unref(); // A client that sends nothing would keep its connection.
  await receiver.stop({ until: app.close() }); // Running handlers end first.
  await pool.end();
};
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
