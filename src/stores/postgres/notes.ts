/** Small values that all processes of the inbox share. */
import type { ChangeNotes } from "../../inbox/store.ts";
import type { PgSession } from "./session.ts";

/** Rows to lock, also for notes that do not exist. Sorted, so that two transactions never wait for each other. */
const MAKE = `insert into {}.note (name, value, until) select n, '', 0 from unnest($1::text[]) n order by n on conflict do nothing`;
const LOCK = "select name, value from {}.note where name = any($1::text[]) order by name for update";
const WRITE = `update {}.note t set value = w.value, until = w.until
  from unnest($1::text[], $2::text[], $3::bigint[]) as w (name, value, until) where t.name = w.name`;
const REMOVE = `delete from {}.note where name in (
  select name from {}.note where until < $1::bigint order by name for update skip locked)`;

/** See `InboxStore.changeNotes`. A row without a value stands for a note that does not exist. */
export async function changeNoteRows(
  session: PgSession,
  now: number,
  names: readonly string[],
  change: ChangeNotes,
): Promise<void> {
  await session.rows("make_notes", MAKE, [names]);
  const rows = await session.rows<{ name: string; value: string }>("lock_notes", LOCK, [names]);
  const known = rows.flatMap(({ name, value }) => (value === "" ? [] : [[name, value] as const]));
  const written = [...change(new Map(known), now)];
  if (written.length === 0) return;
  const values = written.map(([, { value }]) => value);
  const ends = written.map(([, { keepMs }]) => Math.round(now + keepMs));
  await session.rows("write_notes", WRITE, [written.map(([name]) => name), values, ends]);
}

export async function pruneNoteRows(session: PgSession, now: number): Promise<void> {
  await session.rows("remove_notes", REMOVE, [now]);
}
