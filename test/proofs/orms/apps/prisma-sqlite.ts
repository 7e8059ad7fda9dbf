/** Prisma on SQLite, which takes no connection of others: its own transaction begins with the event's identity. */
import { PrismaBetterSqlite3 } from "@prisma/adapter-better-sqlite3";
import { sqliteStore } from "oncehook/sqlite";
import { PrismaClient } from "prisma-client-sqlite";
import { assignment, serve, Undo, undone } from "./serve.ts";

const { path } = assignment;
const prisma = new PrismaClient({ adapter: new PrismaBetterSqlite3({ url: `file:${path}` }) });

await serve(sqliteStore(path), async ({ row: { identity, nested }, die }) => {
  await prisma.$transaction(async (tx) => {
    if ((await tx.handled.findUnique({ where: { identity } })) !== null) return;
    await tx.handled.create({ data: { identity } });
    await tx.order.create({ data: { identity } });
    die("before the commit");
  });
  die("after the commit");
  if (!nested) return;
  await prisma
    .$transaction(async (tx) => {
      await tx.order.create({ data: { identity: `undone ${identity}` } });
      throw new Undo();
    })
    .catch(undone);
});
