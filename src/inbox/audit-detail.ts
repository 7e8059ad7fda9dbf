/** What an audit row says of an act beside its kind, the same in every store. */
import type { Act } from "./operations.ts";

/** Ids and counts; never a number or a text. */
export function auditDetail(act: Act, count: number): string {
  if ("quarantine" in act) return `quarantine ${act.quarantine}`;
  if ("lane" in act) return `lane ${act.lane}`;
  return act.kind === "erase" ? `${count} rows` : `event ${act.event}`;
}
