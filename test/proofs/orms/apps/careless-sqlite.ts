/** The control: what a handler writes on a connection of its own, outside of `ctx.commit`, is written again after a death. */
import Database from "better-sqlite3";
import { sqliteStore } from "oncehook/sqlite";
import { assignment, serve } from "./serve.ts";

const own = new Database(assignment.path);

await serve(sqliteStore(assignment.path), ({ row: { identity }, die }) => {
  own.prepare("insert into orders (identity) values (?)").run(identity);
  die("after the commit");
});
