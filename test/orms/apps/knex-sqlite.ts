/** Knex on SQLite: it waits for its pool, so it only makes the SQL, which the effect's connection runs. */
import createKnex from "knex";
import { sqliteStore } from "oncehook/sqlite";
import { assignment, serveEffect } from "./serve.ts";

const knex = createKnex({ client: "better-sqlite3", useNullAsDefault: true });

await serveEffect(sqliteStore(assignment.path), (tx, { identity }) => {
  const { sql, bindings } = knex("orders").insert({ identity }).toSQL().toNative();
  tx.prepare(sql).run(...bindings);
});
