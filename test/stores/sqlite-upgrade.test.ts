import { copyFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe } from "vitest";
import type { InboxStore } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { type Place, upgradeTests } from "../upgrade/cases.ts";

let places = 0;

async function sqlitePlace(folder: string): Promise<Place> {
  const path = join(folder, `${++places}.db`);
  return {
    text: path,
    restore: async () => copyFileSync(join(import.meta.dirname, "../upgrade/inbox-0.1.0.db"), path),
    store: () => sqliteStore(path) as unknown as InboxStore<never>,
    async versions() {
      const db = new Database(path);
      const rows = db.prepare("select key, value from oncehook_meta").all() as { key: string; value: unknown }[];
      db.close();
      const meta = new Map(rows.map(({ key, value }) => [key, Number(value)]));
      return [meta.get("schema") ?? 0, meta.get("min_reader") ?? 0];
    },
  };
}

describe("SQLite and version 0.1.0", () => upgradeTests(sqlitePlace, { old: 5, own: 6 }));
