/** Finds a quarantined body by its id. */
import type { QuarantineRecord } from "../inbox/record.ts";
import type { InboxOperator } from "../receiver/operator.ts";

export async function findQuarantined(inbox: InboxOperator, id: number): Promise<QuarantineRecord | null> {
  const { items } = await inbox.findQuarantined({ after: id + 1, limit: 1 });
  // What comes first behind the next id is the one itself, if it is there.
  return items.find((row) => row.id === id) ?? null;
}
