/** Keeps out of the inbox's queries what an application's `analyze` has found of its tables. */
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";

/**
 * Taken while the tables held next to nothing, statistics make SQLite scan them ever after, and the application may never
 * `analyze` again: without any the plans are right at every size. Those of its own tables stay.
 */
export function forgetStatistics(db: SqliteDatabase): void {
  const tables = db.prepare("select name from sqlite_master where name in ('sqlite_stat1', 'sqlite_stat4')").all();
  let changes = 0;
  for (const { name } of tables as { name: string }[]) {
    changes += db.prepare(`delete from ${name} where tbl like 'oncehook\\_%' escape '\\'`).run().changes;
  }
  // They were read when the connection first looked into the file.
  if (changes > 0) db.exec("analyze sqlite_schema");
}
