/** Drizzle on SQLite: a database over the effect's connection. */
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { sqliteStore } from "oncehook/sqlite";
import { assignment, serveEffect, Undo, undone } from "./serve.ts";

const orders = sqliteTable("orders", { id: integer().primaryKey(), identity: text().notNull() });

await serveEffect(sqliteStore(assignment.path, { driver: Database }), (tx, { identity, nested }) => {
  const db = drizzle(tx);
  if (!nested) return db.insert(orders).values({ identity }).run();
  db.transaction((inner) => inner.insert(orders).values({ identity }).run());
  try {
    db.transaction((inner) => {
      inner
        .insert(orders)
        .values({ identity: `undone ${identity}` })
        .run();
      throw new Undo();
    });
  } catch (error) {
    undone(error);
  }
});
