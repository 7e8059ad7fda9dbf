/** The inbox's tables, a migration for each schema, and how a file is brought to the schema of this version. */

import type { InboxRules, OpenContext } from "../../inbox/store.ts";
import { checkMoved, copyUnfinished, rulesFor } from "../../inbox/store-rules.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { type FoundSchema, type Migration, missingMigrations, rulesFromMeta, rulesToMeta } from "../database.ts";

/**
 * Schema 1: the facts of docs/inbox.md in a physical form that writes little, and near. Bodies lie apart from their events,
 * so that a settled event rewrites no body; ids grow, so that rows and indexes are appended to. The prefix keeps the tables
 * apart from those of an application that shares the file for its effects.
 */
const inbox = `
create table oncehook_meta (key text primary key, value) without rowid;

create table oncehook_counter (name text primary key, value integer not null) without rowid;
insert into oncehook_counter (name, value) values
  ('next_event', 1), ('next_lane', 1), ('newest_signed', -1), ('service_resigns', 0),
  ('pending', 0), ('dead', 0), ('held', 0), ('held_bytes', 0), ('blocked', 0),
  ('accepted', 0), ('duplicates', 0), ('conflicts', 0), ('late', 0), ('handled', 0), ('unhandled', 0), ('retried', 0),
  ('dead_lettered', 0), ('discarded', 0), ('gaps_skipped', 0), ('quarantined', 0), ('filtered', 0);

create table oncehook_instance (
  id integer primary key autoincrement, name text not null unique, host text not null, pid integer not null,
  pid_started text not null, opened integer not null, seen integer, keyring text, counters text
);

-- The name is null, and ord 0, in a lane of one event. A tenant of none is ''.
-- ready_at is null exactly when the lane is idle or blocked; leased, holder are set exactly when it is leased.
-- below: a pending event may lie below the cursor, or be late. While 0, the head is looked for from the cursor on.
create table oncehook_lane (
  id integer primary key, name text, source text not null, tenant text not null, ord integer not null,
  status integer not null, ready_at integer, cursor integer, gap_since integer,
  token integer not null, holder integer, leased integer, below integer not null, peer text, reference text
);
create unique index oncehook_lane_key on oncehook_lane (name, source, tenant, ord) where name is not null;
create index oncehook_lane_due on oncehook_lane (ready_at) where status >= 3;
create index oncehook_lane_lease on oncehook_lane (ready_at) where status = 2;
-- For lists of lanes that wait for time or for somebody (blocked, gap, backoff). One that is ready or leased is not in it, and costs no write.
-- Comparisons, because a list of codes makes each write of a lane dearer by a fifth: SQLite builds a table of it each time.
create index oncehook_lane_parked on oncehook_lane (status) where status = 1 or status > 3;

-- own_id: the id that the source gives the event, as bytes if it is a digest; null by sequence. untimed is 1 where no time was signed, and
-- null otherwise.
create table oncehook_event (
  id integer primary key, lane integer not null, seq integer not null, type text not null, source text not null, tenant text not null,
  state integer not null, outcome integer, keep integer, finished integer, attempts integer not null, started integer,
  late integer not null, forced integer not null, duplicates integer not null, conflict integer not null,
  gap_wait integer not null, occurred integer not null, signed integer not null, accepted integer not null,
  error_code text, error text, digest blob not null, trace text, own_id, untimed integer
);
-- What identifies an event by sequence, and the index that finds a lane's head.
create unique index oncehook_event_place on oncehook_event (lane, seq, type);
create unique index oncehook_event_own_id on oncehook_event (own_id, source, tenant) where own_id is not null;
create index oncehook_event_owner on oncehook_event (source, tenant);
create index oncehook_event_open on oncehook_event (state) where state <> 1;
create index oncehook_event_keep on oncehook_event (keep, finished) where keep is not null;
create index oncehook_event_untimed on oncehook_event (keep, finished) where untimed = 1 and keep is not null;
create index oncehook_event_unhandled on oncehook_event (outcome) where outcome = 2;
create index oncehook_event_late on oncehook_event (late) where late = 1;
create index oncehook_event_conflict on oncehook_event (conflict) where conflict = 1;
create index oncehook_event_error on oncehook_event (error_code) where error_code is not null;

-- head: the headers that a source keeps, which go with the body.
create table oncehook_body (event integer primary key, raw blob not null, head text);
create table oncehook_conflict (event integer primary key, digest blob not null, signed integer not null, at integer not null, raw blob not null);
create table oncehook_gap (
  lane integer not null, hi integer not null, lo integer not null, skipped integer not null, filled integer,
  primary key (lane, hi)
) without rowid;
create table oncehook_attempt (
  id integer primary key, event integer not null, attempt integer not null, at integer not null,
  duration integer not null, error_code text not null, error text not null
);
create index oncehook_attempt_event on oncehook_attempt (event);

-- signer: which secret signed the body, for the quota of each.
create table oncehook_quarantine (
  id integer primary key autoincrement, digest blob not null unique, reason text not null, slot text not null,
  source text not null, tenant text not null, kinds text not null default '[]', state integer not null, replayed_as integer, signed integer not null, accepted integer not null,
  bytes integer not null, trace text, raw blob, signer text not null, head text, untimed integer
);
create index oncehook_quarantine_signer on oncehook_quarantine (signer, bytes) where state = 0;
create index oncehook_quarantine_accepted on oncehook_quarantine (accepted);

create table oncehook_audit (
  id integer primary key autoincrement, at integer not null, by text not null, act text not null, detail text not null
);

-- The notes of InboxStore.changeNotes. Pruning removes one once its time (until) has passed.
create table oncehook_note (name text primary key, value text not null, until integer not null) without rowid;

-- The webhook secrets of a kind, sealed outside of the database. revision grows with each write, so that of two who read the same one
-- only one replaces it.
create table oncehook_secret (kind text primary key, revision integer not null, sealed blob not null, changed integer not null) without rowid;
`;

/** Entry n makes schema n + 1. A published entry never changes: what changes comes as a further one. */
export const MIGRATIONS: readonly Migration[] = [{ sql: inbox, minReader: 1 }];

/** The schema number in `meta`; 0 when there is no inbox in the file yet. */
function schemaOf(db: SqliteDatabase): FoundSchema {
  const table = db.prepare("select 1 from sqlite_master where type = 'table' and name = 'oncehook_meta'").get();
  if (table === undefined) return { schema: 0, minReader: 0 };
  return { schema: Number(readMeta(db, "schema") ?? 0), minReader: Number(readMeta(db, "min_reader") ?? 0) };
}

/**
 * Runs what is missing, inside the caller's write transaction.
 *
 * @throws SetupError `inbox_too_new`, or `migration_needed` with `"check"`
 */
export function migrate(db: SqliteDatabase, mode: OpenContext["migrate"]): void {
  const missing = missingMigrations(schemaOf(db), MIGRATIONS, mode);
  const last = missing.at(-1);
  if (last === undefined) return;
  for (const { sql } of missing) db.exec(sql);
  writeMeta(db, "schema", MIGRATIONS.length);
  writeMeta(db, "min_reader", last.minReader);
}

/** Whether a receiver has made an inbox in this file. */
export function holdsInbox(db: SqliteDatabase): boolean {
  return schemaOf(db).schema > 0;
}

/**
 * Records whose inbox this is, and the rest of a receiver's rules.
 *
 * @returns the rules that apply
 * @throws SetupError `wrong_receiver_name`, `no_inbox`, `copy_unfinished`, `inbox_moved`
 */
export function applyRules(db: SqliteDatabase, context: OpenContext, location: string): InboxRules {
  const recorded = rulesFromMeta({
    name: readMeta(db, "name"),
    tolerance_ms: readMeta(db, "tolerance_ms"),
  });
  const rules = rulesFor(context.rules, recorded, location);
  const isPart = readMeta(db, "copied_from") !== undefined && readMeta(db, "copy_finished") === undefined;
  if (isPart && context.copying !== true) throw copyUnfinished(db.name);
  checkMoved(readMeta(db, MOVED_TO) as string | undefined, location, context.movedTo);
  for (const [key, value] of Object.entries(rulesToMeta(rules))) writeMeta(db, key, value);
  return rules;
}

/** The location that the inbox was moved to. */
export const MOVED_TO = "moved_to";

export function readMeta(db: SqliteDatabase, key: string): unknown {
  const row = db.prepare("select value from oncehook_meta where key = ?").get(key) as { value: unknown } | undefined;
  return row?.value;
}

export function writeMeta(db: SqliteDatabase, key: string, value: string | number): void {
  const sql =
    "insert into oncehook_meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value where value is not excluded.value";
  db.prepare(sql).run(key, value);
}
