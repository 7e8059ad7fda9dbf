/** The control: what is written past `ctx.commit`, on a connection of its own, is written again after a death. */

import { postgresStore } from "oncehook/postgres";
import { Pool } from "pg";
import { assignment, serveEffect } from "./serve.ts";

const { url: connectionString, schema } = assignment;
const pool = new Pool({ connectionString });

await serveEffect(postgresStore(pool, { schema }), async (_tx, { identity }) => {
  await pool.query("insert into orders (identity) values ($1)", [identity]);
});
