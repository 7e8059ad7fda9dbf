/** pg itself on Postgres, without an ORM. */

import { postgresStore } from "oncehook/postgres";
import { Pool } from "pg";
import { assignment, serveEffect } from "./serve.ts";

const { url: connectionString, schema } = assignment;
const pool = new Pool({ connectionString });

await serveEffect(postgresStore(pool, { schema }), async (tx, { identity }) => {
  await tx.query("insert into orders (identity) values ($1)", [identity]);
});
