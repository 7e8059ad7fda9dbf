/** Knex on SQLite: it waits for its pool, so it only makes the SQL, which the effect's connection runs. */
import createKnex from "knex";
import { sqliteStore } from "oncehook/sqlite";
import { assignment, serveEffect } from "./serve.ts";

const knex = createKnex({ client: "better-sqlite3", useNullAsDefault: true });

const insert = (identity: string) => knex("orders").insert({ identity }).toSQL().toNative();

await serveEffect(
  sqliteStore(assignment.path),
  (tx, { identity }) => {
    const { sql, bindings } = insert(identity);
    tx.prepare(sql).run(...bindings);
  },
  ({ identity }) => insert(identity),
);
