/** What a transaction asks for once it holds its lanes, in one statement: numbers for what is new, and whether a lease has expired. */
import { LONGEST_WAIT_MS } from "../../inbox/gap.ts";
import { arrayOf } from "./arrays.ts";
import type { Session } from "./session.ts";

/** Texts: as rows, each number would be parsed with all that belongs to a row. What lies further ahead than any wait is due as well. */
const NUMBERS = `select array(select nextval('{}.lane_id') from generate_series(1, $1::int))::text as lanes,
  array(select nextval('{}.event_id') from generate_series(1, $2::int))::text as events,
  exists (select 1 from {}.lane
    where status = 2 and (ready_at <= $3::bigint or ready_at > $4::bigint) and id <> all($5::bigint[])) as expired`;

export interface Wanted {
  readonly lanes: number;
  readonly events: number;
  readonly now: number;
  /** Lanes that this transaction holds: what it decides about them counts, and not what is stored. */
  readonly held: readonly number[];
}

export interface Numbers {
  /** Ascending. */
  readonly lanes: readonly number[];
  /** Ascending. */
  readonly events: readonly number[];
  /** Whether a lane has an expired lease, other than those that are held. */
  readonly expired: boolean;
}

export async function newNumbers(session: Session, { lanes, events, now, held }: Wanted): Promise<Numbers> {
  const values = [lanes, events, now, now + LONGEST_WAIT_MS, arrayOf("bigint", held)];
  const [row] = await session.rows<{ lanes: string; events: string; expired: boolean }>("numbers", NUMBERS, values);
  if (row === undefined) throw new RangeError("The sequences gave no numbers.");
  return { lanes: listed(row.lanes), events: listed(row.events), expired: row.expired };
}

/** `{1,2}` */
function listed(text: string): readonly number[] {
  return text === "{}" ? [] : text.slice(1, -1).split(",").map(Number);
}
