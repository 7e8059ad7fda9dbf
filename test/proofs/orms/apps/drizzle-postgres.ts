/** Drizzle on Postgres: a database over the effect's connection. */
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import { postgresStore } from "oncehook/postgres";
import { Pool, type PoolClient } from "pg";
import { assignment, type Row, serveEffect, Undo, undone } from "./serve.ts";

const { url: connectionString, schema } = assignment;
const pool = new Pool({ connectionString });
const orders = pgTable("orders", {
  id: integer().primaryKey().generatedAlwaysAsIdentity(),
  identity: text().notNull(),
});

const declare = ({ identity }: Row) => drizzle(pool).insert(orders).values({ identity }).toSQL();

async function effect(tx: PoolClient, { identity }: Row) {
  const db = drizzle(tx);
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
}

await serveEffect(postgresStore(pool, { schema }), effect, declare);
