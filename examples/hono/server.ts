/** Webhooks in a Hono application: stored in a SQLite file, then handled once and in order. */
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { createReceiver } from "oncehook";
import { fetchWebhook } from "oncehook/fetch";
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
await receiver.start();

const receive = fetchWebhook(receiver);
const app = new Hono();
app.all("/webhooks", (c) => receive(c.req.raw)); // The request itself: Hono's wrapper may have read the body.
app.get("/health", async (c) => {
  const { status, reasons } = await receiver.health();
  return c.json({ status, reasons }, reasons.includes("store_unavailable") ? 503 : 200);
});
const server = serve({ fetch: app.fetch, port }, () => console.log(`Listening on http://127.0.0.1:${port}/webhooks`));

const stop = async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  if ("closeAllConnections" in server) setTimeout(() => server.closeAllConnections(), 3_000).unref();
  await receiver.stop({ until: closed }); // Running handlers end first.
};
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
