/** Knex on Postgres: the effect's connection is given to each query or transaction. */
import createKnex from "knex";
import { postgresStore } from "oncehook/postgres";
import { Pool } from "pg";
import { assignment, serveEffect, Undo, undone } from "./serve.ts";

const { url: connectionString, schema } = assignment;
const pool = new Pool({ connectionString });
const knex = createKnex({ client: "pg" });

await serveEffect(postgresStore(pool, { schema }), async (tx, { identity, nested }) => {
  if (!nested) return knex("orders").insert({ identity }).connection(tx);
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
});
