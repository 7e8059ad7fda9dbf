/** better-sqlite3 itself, without an ORM. */
import { sqliteStore } from "oncehook/sqlite";
import { assignment, serveEffect } from "./serve.ts";

await serveEffect(sqliteStore(assignment.path), (tx, { identity }) => {
  tx.prepare("insert into orders (identity) values (?)").run(identity);
});
