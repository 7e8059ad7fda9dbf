/** What a transaction asks for once it holds its lanes, in one statement: numbers for what is new, and which leases have expired. */
import { AT, inRanges } from "./due.ts";
import type { Session } from "./session.ts";

/** Leases that have ended. */
const EXPIRED = inRanges("$5", (range) => `(select id from {}.lane where status = 2 and ${range} limit $4::int)`);

/** Texts: as rows, each number would be parsed with all that belongs to a row. */
const NUMBERS = `${AT("$3")}
  select array(select nextval('{}.lane_id') from generate_series(1, $1::int))::text as lanes,
    array(select nextval('{}.event_id') from generate_series(1, $2::int))::text as events,
    array(${EXPIRED})::text as expired`;

/** For who does not ask for leases that have ended. */
export const NONE_EXPIRED = Number.MAX_SAFE_INTEGER;

export interface Wanted {
  readonly lanes: number;
  readonly events: number;
  /** Epoch milliseconds; null for the server's clock. */
  readonly now: number | null;
  /** Lanes that the transaction may come to hold: one lease more is asked for. */
  readonly held: number;
  /** The least end of a lease to look at, epoch milliseconds. */
  readonly expiredFrom: number;
}

export interface Numbers {
  /** Ascending. */
  readonly lanes: readonly number[];
  /** Ascending. */
  readonly events: readonly number[];
  /** Lanes whose lease has expired: at least one that is not held, if there is one. */
  readonly expired: readonly number[];
}

export async function newNumbers(session: Session, wanted: Wanted): Promise<Numbers> {
  const { lanes, events, now, held, expiredFrom } = wanted;
  const values = [lanes, events, now, held + 1, expiredFrom];
  const [row] = await session.rows<Record<keyof Numbers, string>>("numbers", NUMBERS, values);
  if (row === undefined) throw new RangeError("The sequences gave no numbers.");
  return { lanes: listed(row.lanes), events: listed(row.events), expired: listed(row.expired) };
}

/** The numbers of a text such as `{1,2}`. */
export function listed(text: string): readonly number[] {
  return text === "{}" ? [] : text.slice(1, -1).split(",").map(Number);
}

export function numberAt(numbers: readonly number[], index: number): number {
  const number = numbers[index];
  if (number === undefined) throw new RangeError("There are fewer numbers than were asked for.");
  return number;
}
