/** ORMs on a SQLite inbox: what they write through `ctx.commit` is there exactly once, however often the process dies. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import type { Proof, Terms } from "../programme.ts";
import { flawsOf, type Outcome, type Place, said, underDeaths } from "./apps.ts";

const APPS = ["better-sqlite3", "drizzle", "drizzle-effects", "kysely", "knex", "typeorm", "prisma"] as const;
const CONTROL = "careless";
/** What is refused before anything is written. */
const REFUSED = "refused";

const EVENTS = { short: 24, full: 200 } as const;
/** A wait for the lock that the inbox has lasts 5 s. */
const LONGEST_STALL_MS = 2_500;

interface Refusals {
  readonly refused: number;
  readonly found: readonly string[];
  readonly longestStallMs: number;
}

export async function onSqlite({ full, say }: Terms): Promise<Proof> {
  const folder = mkdtempSync(join(MEMORY_DISK, "oncehook-orms-"));
  const problems: string[] = [];
  let count = 0;
  try {
    for (const app of APPS) {
      const outcome = await tried(folder, app, full ? EVENTS.full : EVENTS.short);
      say(`${app.padEnd(15)} on SQLite ${JSON.stringify(outcome)}`);
      problems.push(...flawsOf(`${app} on SQLite`, outcome));
      count += outcome.acknowledged;
    }
    const control = await tried(folder, CONTROL, EVENTS.short);
    say(`${CONTROL.padEnd(15)} on SQLite ${JSON.stringify(control)}`);
    if (control.doubled === 0) problems.push("what is written past ctx.commit was not seen to be doubled");
    const refusals = said(`${REFUSED}-sqlite`, placed(folder, REFUSED)) as Refusals;
    say(`${REFUSED.padEnd(15)} on SQLite ${JSON.stringify(refusals)}`);
    problems.push(...refusals.found);
    if (refusals.refused === 0) problems.push("nothing was refused");
    if (refusals.longestStallMs > LONGEST_STALL_MS) problems.push(`it stood still for ${refusals.longestStallMs} ms`);
    return { count: count + refusals.refused, unit: "events", problems };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function tried(folder: string, app: string, events: number): Promise<Outcome> {
  const place = placed(folder, app);
  return underDeaths({
    ...{ app: `${app}-sqlite`, events, place },
    store: () => sqliteStore(place.path),
    rows: async () => {
      const db = new Database(place.path, { readonly: true });
      const identities = db.prepare("select identity from orders").pluck().all();
      db.close();
      return identities.map(String);
    },
  });
}

/** A file of the application's own, with its tables. */
function placed(folder: string, app: string): Place {
  const path = join(folder, `${app}.db`);
  const db = new Database(path);
  db.exec(`create table handled (identity text primary key);
    create table orders (id integer primary key, identity text not null)`);
  db.close();
  return { url: "", schema: "", path };
}
