/** Two functions of AWS Lambda: `webhooks` stores each delivery, `drain` runs on a schedule and handles what is stored. */
import { Hono } from "hono";
import { handle } from "hono/aws-lambda";
import { createReceiver } from "oncehook";
import { fetchWebhook } from "oncehook/fetch";
import { postgresStore } from "oncehook/postgres";

// A function has no disk that stays, so the inbox is in Postgres. One connection per instance, and none kept open to listen.
const store = postgresStore(process.env.DATABASE_URL ?? "", { maxConnections: 1, listen: false });
const receiver = createReceiver({ secrets: process.env.WEBHOOK_SECRET ?? "", store });

receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], (event) =>
  console.log("handled", event.eventType, event.messageId),
);
receiver.on("message.inbound", (event) => console.log("handled", event.eventType, event.data.messageId));
receiver.onLate((event) => console.log("late", event.eventType)); // A newer event of the same message was handled.

const receive = fetchWebhook(receiver);
const app = new Hono();
app.all("/webhooks", (c) => receive(c.req.raw));

export const webhooks = handle(app);
export const drain = () => receiver.drain({ budgetMs: 20_000 });
