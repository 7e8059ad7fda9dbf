/** Stripe's events, with Stripe's own types, next to the messaging service's webhooks: two sources in one inbox. */
import { once } from "node:events";
import express from "express";
import { createReceiver } from "oncehook";
import { expressWebhook } from "oncehook/express";
import { service, stripe } from "oncehook/sources";
import { sqliteStore } from "oncehook/sqlite";
import type Stripe from "stripe";

const port = Number(process.env.PORT ?? 3000);
const store = sqliteStore(process.env.INBOX_PATH ?? "inbox.db", {
  // Your own table, in the same file as the inbox.
  onOpen: (db) => db.exec("create table if not exists paid (invoice text primary key, amount integer not null)"),
});
const receiver = createReceiver({
  store,
  sources: {
    messages: service({ secrets: process.env.WEBHOOK_SECRET ?? "" }),
    billing: stripe<Stripe.Event>({ secrets: process.env.STRIPE_WEBHOOK_SECRET ?? "" }),
  },
});
const messages = receiver.source("messages");
const billing = receiver.source("billing");

messages.on(["message.queued", "message.sent", "message.delivery", "message.failed"], (event) =>
  console.log("handled", event.eventType, event.messageId),
);
messages.on("message.inbound", (event) => console.log("handled", event.eventType, event.data.messageId));
messages.onLate((event) => console.log("late", event.eventType));
billing.on("invoice.paid", (event, ctx) => {
  const { id = "", amount_paid: amount } = event.data.object;
  // Written in the transaction that completes the event: exactly once, also after a crash.
  ctx.commit({ text: "insert into paid values (?, ?)", values: [id, amount] });
  console.log("handled", event.type, event.id);
});
billing.onLate((event) => console.log("late", event.type, event.id)); // Stripe does not deliver in order.
await receiver.start();

const app = express();
// Before any body parser: signatures cover the raw bytes.
app.all("/webhooks", expressWebhook(messages));
app.all("/webhooks/stripe", expressWebhook(billing));
const server = app.listen(port);
await once(server, "listening");
console.log(`Listening on http://127.0.0.1:${port}/webhooks and /webhooks/stripe`);

const stop = async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  setTimeout(() => server.closeAllConnections(), 3_000).unref(); // A client that sends nothing would keep its connection.
  await receiver.stop({ until: closed }); // Running handlers end first.
};
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
