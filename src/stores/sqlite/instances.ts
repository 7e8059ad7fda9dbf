/** The processes that work on the inbox, and the leases of those that are gone. */

import type { Heartbeat, InstanceRecord } from "../../inbox/record.ts";
import type { EntryPreset, InstanceIdentity } from "../../inbox/store.ts";
import { checkPreset, entryOf, entryText, stillOpenIn } from "../../inbox/store-rules.ts";
import { processRuns } from "../../internal/process.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { MOVED_TO, readMeta, writeMeta } from "./schema.ts";
import type { Work } from "./transaction.ts";

interface InstanceRow {
  readonly id: number;
  readonly name: string;
  readonly pid: number;
  readonly pidStarted: string;
}

/** Enters this open among the instances, and expires the leases of those of this host that no longer run. */
export function enterInstance(db: SqliteDatabase, instance: InstanceIdentity, now: number): number {
  const rows = db
    .prepare("select id, name, pid, pid_started as pidStarted from oncehook_instance where host = ?")
    .all(instance.host) as InstanceRow[];
  const remove = db.prepare("delete from oncehook_instance where id = ?");
  for (const row of rows) {
    // The same name again is this open itself, after a close that could not be written.
    if (row.name === instance.id || !processRuns(row.pid, row.pidStarted)) remove.run(row.id);
  }
  // The process that held these leases has closed the inbox or died, and can settle nothing any more.
  db.prepare(
    `update oncehook_lane set ready_at = min(ready_at, ?) where status = 2 and ready_at is not null
     and not exists (select 1 from oncehook_instance where id = holder)`,
  ).run(now);
  const { id, host, pid, pidStartedAt } = instance;
  const insert = db.prepare(
    "insert into oncehook_instance (name, host, pid, pid_started, opened) values (?, ?, ?, ?, ?)",
  );
  return Number(insert.run(id, host, pid, pidStartedAt, now).lastInsertRowid);
}

/** Takes this open out again: leases it still holds expire when the inbox is opened next. */
export function leaveInstance(db: SqliteDatabase, holder: number): void {
  db.prepare("delete from oncehook_instance where id = ?").run(holder);
}

export function beat(db: SqliteDatabase, { holder, instance, beat, now }: Beat): void {
  const { id, host, pid, pidStartedAt } = instance;
  db.prepare(
    `insert into oncehook_instance (id, name, host, pid, pid_started, opened, seen, keyring, counters)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (id) do update set seen = excluded.seen, keyring = excluded.keyring, counters = excluded.counters`,
  ).run(holder, id, host, pid, pidStartedAt, now, now, beat.keyringVersion, JSON.stringify(beat.counters));
}

interface Beat {
  readonly holder: number;
  readonly instance: InstanceIdentity;
  readonly beat: Heartbeat;
  readonly now: number;
}

/** Begins the key of an entry in `meta`. */
export const ENTRY = "entry:";

/** See `InboxStore.admit`. In a write transaction. */
export function admit(db: SqliteDatabase, entries: readonly EntryPreset[]): readonly EntryPreset[] {
  for (const entry of entries) checkPreset(readMeta(db, ENTRY + entry.name) as string | undefined, entry);
  for (const entry of entries) writeMeta(db, ENTRY + entry.name, entryText(entry));
  const rows = db.prepare("select key, value from oncehook_meta where key like 'entry:%' order by key").all();
  return (rows as { readonly key: string; readonly value: string }[]).map(({ key, value }) =>
    entryOf(key.slice(ENTRY.length), value),
  );
}

/** See `InboxStore.markMoved`. In a write transaction: a process that opens meanwhile waits. */
export function markMoved({ db, facts, now }: Work, to: string | null, here: InstanceIdentity): readonly number[] {
  if (to === null) {
    db.prepare("delete from oncehook_meta where key = ?").run(MOVED_TO);
    return [];
  }
  const select = `select host, pid, pid_started as pidStartedAt, max(opened, coalesce(seen, 0)) as seenAt
    from oncehook_instance where id <> ?`;
  const others = stillOpenIn(db.prepare(select).all(facts.holder) as Parameters<typeof stillOpenIn>[0], here, now);
  if (others.length === 0) writeMeta(db, MOVED_TO, to);
  return others;
}

/** Those that ever said that they live. */
export function readInstances(db: SqliteDatabase): InstanceRecord[] {
  const rows = db
    .prepare(
      `select name as id, host, pid, seen as seenAt, keyring as keyringVersion, counters
       from oncehook_instance where seen is not null order by oncehook_instance.id`,
    )
    .all() as (Omit<InstanceRecord, "counters"> & { readonly counters: string })[];
  return rows.map((row) => ({ ...row, counters: JSON.parse(row.counters) as InstanceRecord["counters"] }));
}
