/** Counts duplicates that the core answered from its cache. */
import type { Repeat } from "../../inbox/store.ts";
import type { Session } from "./session.ts";
import type { TallySheet } from "./tally.ts";

/** No lane is locked for it: the count is the only thing of a settled event that changes. */
const COUNT = `update {}.event e set duplicates = duplicates + new.count
  from unnest($1::bigint[], $2::int[]) as new (id, count) where e.id = new.id returning e.id, e.signed`;

export async function countRepeats(session: Session, sheet: TallySheet, repeats: readonly Repeat[]): Promise<void> {
  if (repeats.length === 0) return;
  const sorted = [...repeats].sort((a, b) => a.event - b.event);
  const values = [sorted.map(({ event }) => event), sorted.map(({ count }) => count)];
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
