/** Finds a quarantined body by its id. */
import type { Page, QuarantineQuery } from "../inbox/operations.ts";
import type { QuarantineRecord } from "../inbox/record.ts";

/** What it needs of an inbox or a store. */
interface Finder {
  findQuarantined(query: QuarantineQuery): Promise<Page<QuarantineRecord>>;
}

export async function findQuarantined(inbox: Finder, id: number): Promise<QuarantineRecord | null> {
  // No row has the last of all ids, behind which no page could begin.
  const { items } = await inbox.findQuarantined({ after: Math.min(id + 1, Number.MAX_SAFE_INTEGER), limit: 1 });
  // What comes first behind the next id is the one itself, if it is there.
  return items.find((row) => row.id === id) ?? null;
}
