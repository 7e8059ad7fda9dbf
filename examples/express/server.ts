/** Webhooks in an Express application: stored in a SQLite file, then handled once and in order. */
import { once } from "node:events";
import express from "express";
import { createReceiver } from "oncehook";
import { expressWebhook } from "oncehook/express";
import { sqliteStore } from "oncehook/sqlite";

const port = Number(process.env.PORT ?? 3000);
const store = sqliteStore(process.env.INBOX_PATH ?? "inbox.db", {
  // Your own table, in the same file as the inbox.
  onOpen: (db) => db.exec("create table if not exists sms (id text primary key, status text not null)"),
});
const receiver = createReceiver({ secrets: process.env.WEBHOOK_SECRET ?? "", store });

receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], (event, ctx) => {
  // Written in the transaction that completes the event: exactly once, also after a crash.
  ctx.commit({
    text: "insert into sms values (?, ?) on conflict (id) do update set status = excluded.status",
    values: [event.messageId, event.data.status],
  });
  console.log("handled", event.eventType, event.messageId);
});
receiver.on("message.inbound", (event) => console.log("handled", event.eventType, event.data.messageId));
receiver.onLate((event) => console.log("late", event.eventType)); // A newer event of the same message was handled.
receiver.onDeadLetter(({ eventId, code }) => console.error("gave up on event", eventId, code));
await receiver.start();

const app = express();
app.all("/webhooks", expressWebhook(receiver)); // Before any body parser: the signature covers the raw bytes.
app.use(express.json());
app.get("/health", async (_request, response) => {
  const { status, reasons } = await receiver.health();
  response.status(reasons.includes("store_unavailable") ? 503 : 200).json({ status, reasons });
});
const server = app.listen(port);
await once(server, "listening");
console.log(`Listening on http://127.0.0.1:${port}/webhooks`);

const stop = async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  setTimeout(() => server.closeAllConnections(), 3_000).unref(); // A client that sends nothing would keep its connection.
  await receiver.stop({ until: closed }); // Running handlers end first.
};
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
