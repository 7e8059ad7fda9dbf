/** Drizzle in a handler: its query runs in the transaction that completes the event. */
import { once } from "node:events";
import { createServer } from "node:http";
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import { createReceiver } from "oncehook";
import { nodeWebhook } from "oncehook/node";
import { sqliteStore } from "oncehook/sqlite";

const sms = sqliteTable("sms", { id: text().primaryKey(), status: text().notNull() });

const port = Number(process.env.PORT ?? 3000);
const store = sqliteStore(process.env.INBOX_PATH ?? "inbox.db", {
  driver: Database, // Gives `tx` the type that Drizzle takes.
  // In your application, Drizzle's migrations make it.
  onOpen: (db) => db.exec("create table if not exists sms (id text primary key, status text not null)"),
});
const receiver = createReceiver({ secrets: process.env.WEBHOOK_SECRET ?? "", store });

receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], (event, ctx) => {
  const row = { id: event.messageId, status: event.data.status };
  ctx.commit((tx) => {
    const db = drizzle(tx);
    db.insert(sms).values(row).onConflictDoUpdate({ target: sms.id, set: row }).run(); // Without run() nothing is written.
  });
  console.log("handled", event.eventType, event.messageId);
});
receiver.on("message.inbound", (event) => console.log("handled", event.eventType, event.data.messageId));
receiver.onLate((event) => console.log("late", event.eventType)); // A newer event of the same message was handled.
await receiver.start();

const server = createServer(nodeWebhook(receiver)).listen(port);
await once(server, "listening");
console.log(`Listening on http://127.0.0.1:${port}/webhooks`);

const stop = async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  setTimeout(() => server.closeAllConnections(), 3_000).unref(); // A client that sends nothing would keep its connection.
  await receiver.stop({ until: closed }); // Running handlers end first.
};
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
