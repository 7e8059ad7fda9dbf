/** Goes through a large table by its ids, in slices that leave the event loop free. */
import { setImmediate } from "node:timers/promises";
import type { OpenInbox } from "./open-inbox.ts";
import { Pace } from "./pace.ts";

export interface Walk {
  readonly table: "oncehook_event" | "oncehook_lane" | "oncehook_quarantine";
  /** Default `"oldest"`. */
  readonly first?: "newest" | "oldest";
  /** The id to begin behind. */
  readonly after?: number | undefined;
}

/** Looks at ids `from` to `to`, both included. Ends the walk with true. */
export type LookAt = (from: number, to: number) => Promise<boolean> | boolean;

export async function inSlices({ db, patience }: OpenInbox, walk: Walk, look: LookAt): Promise<void> {
  const { table, first = "oldest", after } = walk;
  const { lowest, highest } = db.prepare(endsSql(table)).get() as Ends;
  if (lowest === null || highest === null) return;
  const up = first === "oldest";
  const pace = new Pace(patience.clock);
  const start = up ? lowest : highest;
  let at = after === undefined ? start : up ? Math.max(start, after + 1) : Math.min(start, after - 1);
  for (let found = false; !found && at >= lowest && at <= highest; ) {
    found = await pace.take(async (size) => {
      const [from, to] = up ? [at, at + size - 1] : [at - size + 1, at];
      at = up ? to + 1 : from - 1;
      return look(from, to);
    });
    await setImmediate();
  }
}

/** Each by itself: asked for both at once, SQLite reads the whole table. */
export function endsSql(table: Walk["table"]): string {
  return `select (select min(id) from ${table}) as lowest, (select max(id) from ${table}) as highest`;
}

interface Ends {
  readonly lowest: number | null;
  readonly highest: number | null;
}
