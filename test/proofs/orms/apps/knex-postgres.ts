/** Knex on Postgres: the effect's connection is given to each query or transaction. */
import createKnex from "knex";
import { postgresStore } from "oncehook/postgres";
import { Pool, type PoolClient } from "pg";
import { assignment, type Row, serveEffect, Undo, undone } from "./serve.ts";

const { url: connectionString, schema } = assignment;
const pool = new Pool({ connectionString });
const knex = createKnex({ client: "pg" });

const declare = ({ identity }: Row) => knex("orders").insert({ identity }).toSQL().toNative();

async function effect(tx: PoolClient, { identity }: Row) {
  await knex("orders")
    .insert({ identity: `undone ${identity}` })
    .connection(tx);
  await knex("orders")
    .where({ identity: `undone ${identity}` })
    .delete()
    .connection(tx);
  const undo = { identity: `undone ${identity}` };
  await knex.transaction(
    async (inner) => {
      await inner("orders").insert({ identity });
      await inner
        .transaction(async (deeper) => {
          await deeper("orders").insert(undo);
          throw new Undo();
        })
        .catch(undone);
    },
    { connection: tx },
  );
  await knex
    .transaction(
      async (inner) => {
        await inner("orders").insert(undo);
        throw new Undo();
      },
      { connection: tx },
    )
    .catch(undone);
}

await serveEffect(postgresStore(pool, { schema }), effect, declare);
