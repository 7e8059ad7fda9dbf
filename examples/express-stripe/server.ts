/** `npm run example:express-stripe`: Stripe's events, with Stripe's own types, beside the messaging service's, in one inbox. */
import { once } from "node:events";
import express from "express";
import { createReceiver } from "oncehook";
import { expressWebhook } from "oncehook/express";
import { service, stripe } from "oncehook/sources";
import { sqliteStore } from "oncehook/sqlite";
import type Stripe from "stripe";
import { closedInTime, onEnd } from "../shared/ending.ts";
import { endWithOneLine, readEnvironment, required } from "../shared/environment.ts";
import { announce } from "../shared/listening.ts";

async function main(): Promise<void> {
  const { port, secrets, inboxPath } = readEnvironment(process.env);
  const stripeSecret = required(process.env, "STRIPE_WEBHOOK_SECRET", "the signing secret of the endpoint (whsec_…)");
  const store = sqliteStore(inboxPath, {
    onOpen: (db) => db.exec("create table if not exists paid (invoice text primary key, amount integer not null)"),
  });
  const receiver = createReceiver({
    store,
    sources: { messages: service({ secrets }), billing: stripe<Stripe.Event>({ secrets: stripeSecret }) },
  });
  receiver
    .source("messages")
    .onAny((event, ctx) => print({ source: "messages", type: event.eventType, id: ctx.identity }));
  receiver.source("billing").on("invoice.paid", (event, ctx) => {
    const { id = "", amount_paid: amount } = event.data.object;
    ctx.commit((db) => db.prepare("insert into paid values (?, ?)").run(id, amount)); // exactly once
    print({ source: "billing", type: event.type, id: event.id });
  });
  // Older than what was handled of the same object: Stripe does not deliver in order.
  receiver.source("billing").onLate((event) => print({ source: "billing", type: `late: ${event.type}`, id: event.id }));
  await receiver.start();

  const app = express();
  // Before any body parser: signatures cover the raw bytes.
  app.all("/webhooks/messages", expressWebhook(receiver.source("messages")));
  app.all("/webhooks/billing", expressWebhook(receiver.source("billing")));
  const server = app.listen(port, "127.0.0.1");
  await once(server, "listening");
  announce(server);

  onEnd(async () => {
    const closed = closedInTime(server, new Promise((resolve) => server.close(resolve)));
    await receiver.stop({ until: closed }); // Lets running handlers end, and closes the inbox behind the last request.
    process.exit(0);
  });
}

/** A line for each handled event. Ids and types only. */
function print(handled: Readonly<Record<"source" | "type" | "id", string>>): void {
  console.log(JSON.stringify(handled));
}

main().catch(endWithOneLine);
