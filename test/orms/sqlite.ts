/** ORMs on a SQLite inbox: what they write through `ctx.commit` is there exactly once, however often the process dies. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import type { Proof, Terms } from "../prove/programme.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { flawsOf, type Outcome, underDeaths } from "./apps.ts";

const APPS = ["better-sqlite3"] as const;

const EVENTS = { short: 24, full: 200 } as const;

export async function onSqlite({ full, say }: Terms): Promise<Proof> {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-orms-"));
  const problems: string[] = [];
  let count = 0;
  try {
    for (const app of APPS) {
      const outcome = await tried(folder, app, full ? EVENTS.full : EVENTS.short);
      say(`${app.padEnd(10)} on SQLite ${JSON.stringify(outcome)}`);
      problems.push(...flawsOf(`${app} on SQLite`, outcome));
      count += outcome.acknowledged;
    }
    return { count, unit: "events", problems };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function tried(folder: string, app: string, events: number): Promise<Outcome> {
  const path = join(folder, `${app}.db`);
  const table = new Database(path);
  table.exec("create table orders (id integer primary key, identity text not null)");
  table.close();
  return underDeaths({
    ...{ app: `${app}-sqlite`, events, place: { url: "", schema: "", path } },
    store: () => sqliteStore(path),
    rows: async () => {
      const db = new Database(path, { readonly: true });
      const identities = db.prepare("select identity from orders").pluck().all();
      db.close();
      return identities.map(String);
    },
  });
}
