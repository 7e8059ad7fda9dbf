/** Drizzle on Postgres: a database over the effect's connection. */
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import { postgresStore } from "oncehook/postgres";
import { Pool } from "pg";
import { assignment, serveEffect, Undo, undone } from "./serve.ts";

const { url: connectionString, schema } = assignment;
const pool = new Pool({ connectionString });
const orders = pgTable("orders", {
  id: integer().primaryKey().generatedAlwaysAsIdentity(),
  identity: text().notNull(),
});

await serveEffect(postgresStore(pool, { schema }), async (tx, { identity, nested }) => {
  const db = drizzle(tx);
  if (!nested) return db.insert(orders).values({ identity });
  const undo = `undone ${identity}`;
  await db.transaction(async (inner) => {
    await inner.insert(orders).values({ identity });
    await inner
      .transaction(async (deeper) => {
        await deeper.insert(orders).values({ identity: undo });
        throw new Undo();
      })
      .catch(undone);
  });
  await db
    .transaction(async (inner) => {
      await inner.insert(orders).values({ identity: undo });
      throw new Undo();
    })
    .catch(undone);
});
