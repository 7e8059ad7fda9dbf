/** Counts duplicates that the core answered from its cache. */
import type { Repeat } from "../../inbox/store.ts";
import type { Workspace } from "./workspace.ts";

/**
 * No lane is locked for it: the count is the only thing of a settled event that changes. But rows are locked in the order of their
 * ids, with those that the turn itself writes, or two turns could wait for each other.
 */
const LOCK = `select id from {}.event where id = any(array(
    select unnest($1::bigint[]) union select id from {}.event where lane = any($2::bigint[])
  )) order by id for update`;
const COUNT = `update {}.event e set duplicates = duplicates + new.count
  from unnest($1::bigint[], $2::int[]) as new (id, count) where e.id = new.id returning e.id, e.signed`;

/** To be called right before what was decided is written. */
export async function countRepeats(work: Workspace, repeats: readonly Repeat[]): Promise<void> {
  if (repeats.length === 0) return;
  const { session, sheet, byId } = work;
  // Who makes the same lane may wait for these rows: as everywhere, lanes come before events.
  await work.writeNewLanes();
  const ids = repeats.map(({ event }) => event);
  await session.rows("lock_rows", LOCK, [ids, [...byId.keys()]]);
  const values = [ids, repeats.map(({ count }) => count)];
  const rows = await session.rows<{ id: number; signed: number }>("repeats", COUNT, values);
  const signed = new Map(rows.map((row) => [row.id, row.signed]));
  for (const { event, count, signedAt } of repeats) {
    const first = signed.get(event);
    if (first === undefined) continue;
    sheet.count("duplicates", count);
    sheet.signed(signedAt);
    if (signedAt !== first) sheet.resigned();
  }
}
