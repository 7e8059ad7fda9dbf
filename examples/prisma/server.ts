/** Prisma in a handler: it takes no connection of others, so its own transaction begins with the event's identity. */
import { once } from "node:events";
import { createServer } from "node:http";
import { PrismaBetterSqlite3 } from "@prisma/adapter-better-sqlite3";
import { createReceiver } from "oncehook";
import { nodeWebhook } from "oncehook/node";
import { sqliteStore } from "oncehook/sqlite";
import { PrismaClient } from "./generated/client.ts";

const port = Number(process.env.PORT ?? 3000);
const url = process.env.DATABASE_URL ?? "file:app.db";
const prisma = new PrismaClient({ adapter: new PrismaBetterSqlite3({ url }) });
// In your application, `prisma migrate` makes them.
await prisma.$executeRaw`create table if not exists handled (identity text primary key)`;
await prisma.$executeRaw`create table if not exists sms (id text primary key, status text not null)`;

const store = sqliteStore(process.env.INBOX_PATH ?? "inbox.db");
const receiver = createReceiver({ secrets: process.env.WEBHOOK_SECRET ?? "", store });

receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], async (event, ctx) => {
  const { identity } = ctx;
  const row = { id: event.messageId, status: event.data.status };
  await prisma.$transaction(async (tx) => {
    if (await tx.handled.findUnique({ where: { identity } })) return; // An earlier attempt has committed.
    await tx.handled.create({ data: { identity } });
    await tx.sms.upsert({ where: { id: row.id }, create: row, update: row });
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
  await prisma.$disconnect();
};
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
