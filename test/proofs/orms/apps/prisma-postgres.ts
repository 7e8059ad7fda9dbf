/** Prisma on Postgres, which takes no connection of others: its own transaction begins with the event's identity. */
import { PrismaPg } from "@prisma/adapter-pg";
import { postgresStore } from "oncehook/postgres";
import { PrismaClient } from "prisma-client-postgres";
import { assignment, serve, Undo, undone } from "./serve.ts";

const { url: connectionString, schema } = assignment;
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) });

await serve(postgresStore(connectionString, { schema }), async ({ row: { identity, nested }, die }) => {
  await prisma.$transaction(async (tx) => {
    const { count } = await tx.handled.createMany({ data: { identity }, skipDuplicates: true });
    if (count === 0) return;
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
