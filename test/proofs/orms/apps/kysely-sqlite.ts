/** Kysely on SQLite: it waits for its driver, so it only makes the SQL, which the effect's connection runs. */
import { DummyDriver, type Generated, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import { sqliteStore } from "oncehook/sqlite";
import { assignment, serveEffect } from "./serve.ts";

interface Tables {
  orders: { id: Generated<number>; identity: string };
}

const db = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (kysely) => new SqliteIntrospector(kysely),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

const insert = (identity: string) => db.insertInto("orders").values({ identity }).compile();

await serveEffect(
  sqliteStore(assignment.path),
  (tx, { identity }) => {
    const { sql, parameters } = insert(identity);
    tx.prepare(sql).run(...parameters);
  },
  ({ identity }) => insert(identity),
);
