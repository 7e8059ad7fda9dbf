/** Tells whether an event is still as it was when somebody decided to act on it. */
import type { AsFound } from "./operations.ts";
import type { EventRecord } from "./record.ts";

/** What is not said may be anything. */
export function isAsFound(event: Pick<EventRecord, "state" | "finishedAt">, { from, finishedAt }: AsFound): boolean {
  if (from !== undefined && event.state !== from) return false;
  return finishedAt === undefined || event.finishedAt === finishedAt;
}
