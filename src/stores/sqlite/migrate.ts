/** Brings the inbox's tables to the schema of this version, or says why it must not. */

import type { InboxRules, OpenContext } from "../../inbox/store.ts";
import { copyUnfinished, rulesFor } from "../../inbox/store-rules.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { rulesFromMeta, rulesToMeta } from "../recorded-rules.ts";
import { type FoundSchema, type Migration, missingMigrations } from "../schema-version.ts";
import { inbox } from "./migrations/0001-inbox.ts";
import { secrets } from "./migrations/0002-secrets.ts";
import { parkedLanes } from "./migrations/0003-parked-lanes.ts";
import { quarantineSigner } from "./migrations/0004-quarantine-signer.ts";
import { names } from "./migrations/0005-names.ts";

/** Entry n makes schema n + 1. */
export const MIGRATIONS: readonly Migration[] = [
  { sql: inbox, minReader: 1 },
  { sql: secrets, minReader: 1 },
  { sql: parkedLanes, minReader: 1 },
  { sql: quarantineSigner, minReader: 1 },
  { sql: names, minReader: 1 },
];

/** What `meta` says of the schema; 0 when there is no inbox in the file yet. */
function schemaOf(db: SqliteDatabase): FoundSchema {
  const table = db.prepare("select 1 from sqlite_master where type = 'table' and name = 'oncehook_meta'").get();
  if (table === undefined) return { schema: 0, minReader: 0 };
  return { schema: Number(readMeta(db, "schema") ?? 0), minReader: Number(readMeta(db, "min_reader") ?? 0) };
}

/**
 * Runs what is missing, inside the caller's write transaction.
 *
 * @param known - for tests: the migrations that an older version has
 * @throws SetupError `inbox_too_new`, or `migration_needed` with `"check"`
 */
export function migrate(db: SqliteDatabase, mode: OpenContext["migrate"], known = MIGRATIONS): void {
  const missing = missingMigrations(schemaOf(db), known, mode);
  if (missing.length === 0) return;
  for (const { sql } of missing) db.exec(sql);
  writeMeta(db, "schema", known.length);
  writeMeta(db, "min_reader", known.at(-1)?.minReader ?? known.length);
}

/** Whether a receiver has made an inbox in this file. */
export function holdsInbox(db: SqliteDatabase): boolean {
  return schemaOf(db).schema > 0;
}

/**
 * Records whose inbox this is, and the rest of a receiver's rules.
 *
 * @returns the rules that apply
 * @throws SetupError `wrong_receiver_name`, `no_inbox`, `copy_unfinished`
 */
export function applyRules(db: SqliteDatabase, context: OpenContext, location: string): InboxRules {
  const recorded = rulesFromMeta({
    name: readMeta(db, "name"),
    first_sequence: readMeta(db, "first_sequence"),
    tolerance_ms: readMeta(db, "tolerance_ms"),
  });
  const rules = rulesFor(context.rules, recorded, location);
  const isPart = readMeta(db, "copied_from") !== undefined && readMeta(db, "copy_finished") === undefined;
  if (isPart && context.copying !== true) throw copyUnfinished(db.name);
  for (const [key, value] of Object.entries(rulesToMeta(rules))) writeMeta(db, key, value);
  return rules;
}

export function readMeta(db: SqliteDatabase, key: string): unknown {
  const row = db.prepare("select value from oncehook_meta where key = ?").get(key) as { value: unknown } | undefined;
  return row?.value;
}

export function writeMeta(db: SqliteDatabase, key: string, value: string | number): void {
  const sql =
    "insert into oncehook_meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value where value is not excluded.value";
  db.prepare(sql).run(key, value);
}
