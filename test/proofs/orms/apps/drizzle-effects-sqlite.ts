/** Drizzle on SQLite with a connection of its own, which is the store's option `effects`: effects use it as it is. */
import Database from "better-sqlite3";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { sqliteStore } from "oncehook/sqlite";
import { assignment, serve } from "./serve.ts";

const orders = sqliteTable("orders", { id: integer().primaryKey(), identity: text().notNull() });
const effects = new Database(assignment.path);
const db = drizzle(effects);

await serve(sqliteStore(assignment.path, { effects }), ({ ctx, row: { identity, nested }, die }) => {
  ctx.commit(() => {
    if (nested) db.transaction((inner) => inner.insert(orders).values({ identity }).run());
    else db.insert(orders).values({ identity }).run();
    die("before the commit");
  });
});
