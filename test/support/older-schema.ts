/** Takes away from an inbox file what later schemas added, as if an older version had made it. */
import Database from "better-sqlite3";
import { MIGRATIONS } from "../../src/stores/sqlite/schema.ts";

interface Named {
  readonly type: string;
  readonly name: string;
}

/** Works because each schema only adds to the one before. */
export function takeBack(path: string, schema: number): void {
  const db = new Database(path);
  const older = new Database(":memory:");
  try {
    for (const { sql } of MIGRATIONS.slice(0, schema)) older.exec(sql);
    const named = "select type, name from sqlite_master where name like 'oncehook%'";
    const names = new Set((older.prepare(named).all() as Named[]).map(({ name }) => name));
    const added = (db.prepare(named).all() as Named[]).filter(({ name }) => !names.has(name));
    if (added.length === 0) throw new Error("No later schema added anything.");
    for (const { type, name } of added) db.exec(`drop ${type} if exists ${name}`);
    for (const table of names) {
      const kept = new Set(columnsOf(older, table));
      for (const column of columnsOf(db, table)) {
        if (!kept.has(column)) db.exec(`alter table ${table} drop column ${column}`);
      }
    }
    db.prepare("update oncehook_meta set value = ? where key = 'schema'").run(schema);
    db.prepare("update oncehook_meta set value = 1 where key = 'min_reader'").run();
  } finally {
    older.close();
    db.close();
  }
}

function columnsOf(db: Database.Database, table: string): string[] {
  return (db.pragma(`table_info(${table})`) as Pick<Named, "name">[]).map(({ name }) => name);
}
