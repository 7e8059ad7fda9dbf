/** Kysely on Postgres: a pool that has the effect's connection and no other. */
import { type Generated, Kysely, PostgresDialect } from "kysely";
import { postgresStore } from "oncehook/postgres";
import { Pool, type PoolClient } from "pg";
import { assignment, type Row, serveEffect, Undo, undone } from "./serve.ts";

interface Tables {
  orders: { id: Generated<number>; identity: string };
}

const { url: connectionString, schema } = assignment;
const pool = new Pool({ connectionString });
const kyselyOn = (tx: PoolClient) =>
  new Kysely<Tables>({ dialect: new PostgresDialect({ pool: { connect: async () => tx, end: async () => {} } }) });

const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
const declare = ({ identity }: Row) => kysely.insertInto("orders").values({ identity }).compile();

async function effect(tx: PoolClient, { identity }: Row) {
  const db = kyselyOn(tx);
  await db.transaction().execute((inner) => inner.insertInto("orders").values({ identity }).execute());
  await db
    .transaction()
    .execute(async (inner) => {
      await inner
        .insertInto("orders")
        .values({ identity: `undone ${identity}` })
        .execute();
      throw new Undo();
    })
    .catch(undone);
}

await serveEffect(postgresStore(pool, { schema }), effect, declare);
