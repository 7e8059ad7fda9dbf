/** Dead letters by what went wrong: the first look after a bug. */
import type { EventId, EventRecord } from "../../inbox/record.ts";
import { type BulkQuery, type Finder, matching } from "./matching.ts";

/** Dead letters that failed alike. */
export interface ErrorGroup {
  readonly errorCode: string | null;
  /** The masked text, with each number in it as `#`; null where it was erased. */
  readonly error: string | null;
  readonly count: number;
  /** When the first and the last of them became a dead letter, epoch milliseconds. */
  readonly oldestAt: number;
  readonly newestAt: number;
  /** The one that was accepted last. */
  readonly exampleId: EventId;
}

/** The largest group first. */
export async function groupByError(inbox: Finder, query: BulkQuery): Promise<readonly ErrorGroup[]> {
  const groups = new Map<string, ErrorGroup>();
  for await (const event of matching(inbox, query, { allowed: ["dead"] })) {
    const one = groupOf(event);
    const key = JSON.stringify([one.errorCode, one.error]);
    groups.set(key, joined(groups.get(key), one));
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || b.newestAt - a.newestAt);
}

function groupOf({ id, errorCode, error, finishedAt, acceptedAt }: EventRecord): ErrorGroup {
  const at = finishedAt ?? acceptedAt;
  return { errorCode, error: error && shapeOf(error), count: 1, oldestAt: at, newestAt: at, exampleId: id };
}

function joined(group: ErrorGroup | undefined, one: ErrorGroup): ErrorGroup {
  if (group === undefined) return one;
  return {
    ...group,
    count: group.count + 1,
    oldestAt: Math.min(group.oldestAt, one.oldestAt),
    newestAt: Math.max(group.newestAt, one.newestAt),
    exampleId: one.exampleId,
  };
}

/** "No order 17" and "No order 18" are one mistake, and the last digits that masking leaves of a number tell nothing here. */
function shapeOf(error: string): string {
  return error.replace(/\d+/g, "#");
}
