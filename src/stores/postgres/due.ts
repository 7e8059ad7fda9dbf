/** Finds lanes whose turn has come, without waiting for those that others hold. */
import { TOO_FAR_AHEAD_MS } from "../../inbox/gap.ts";
import { arrayOf } from "./arrays.ts";
import { type LaneRow, laneColumns } from "./lanes.ts";
import { CLOCK, type Session } from "./session.ts";

/** The time for `inRanges`: that of the parameter, or the server's where it is null. */
export const AT = (parameter: string): string => `with c as (select coalesce(${parameter}::bigint, ${CLOCK}) as now)`;

/**
 * What is due from `from` on. What lies further ahead than any wait, because the clock went back, is due as well. Each range by itself,
 * so that the index bounds both, whatever else waits: one condition for the two would be tried on every lane that does.
 */
export const inRanges = (from: string, inRange: (range: string) => string): string =>
  `${inRange(`ready_at >= ${from}::bigint and ready_at <= (select now from c)`)}
  union all ${inRange(`ready_at > (select now + ${TOO_FAR_AHEAD_MS} from c)`)}`;

const DUE = (which: string) => `${AT("$1")} ${inRanges("$4", (range) => inRange(which, range))}`;
const inRange = (which: string, range: string) => `select * from (select ${laneColumns("l")} from {}.lane l
  where ${which} and ${range} and id not in (select unnest($3::bigint[]))
  order by ready_at, id limit $2::int for update skip locked) due`;
const WAITING = DUE("status >= 3");
const LEASED = DUE("status = 2");

export interface DueRequest {
  /** Epoch milliseconds; null for the server's clock. */
  readonly now: number | null;
  readonly limit: number;
  /** Expired leases instead of ordinary lanes. */
  readonly recover: boolean;
  /** Lanes that this transaction holds already. */
  readonly seen: readonly number[];
  /** The least `ready_at`, epoch milliseconds. */
  readonly from: number;
}

/** Locks due lanes, the oldest first; as many again may follow that lie too far ahead. Less than `limit` are all from `from` on that nobody else holds. */
export function claimable(
  session: Session,
  { now, limit, recover, seen, from }: DueRequest,
): Promise<readonly LaneRow[]> {
  const [name, text] = recover ? ["claim_expired", LEASED] : ["claim_due", WAITING];
  return session.rows<LaneRow>(name, text, [now, limit, arrayOf("bigint", seen), from]);
}

const SOONEST = `select (select min(ready_at) from {}.lane where status >= 3) as waiting,
  (select max(ready_at) from {}.lane where status >= 3) as farthest,
  (select min(ready_at) from {}.lane where status = 2) as leased,
  (select max(ready_at) from {}.lane where status = 2) as longest`;

/** Milliseconds until a lane is due: 0 for now, null for none waiting. */
export async function nextDue(session: Session, now: number): Promise<number | null> {
  const [row] = await session.rows<Record<"waiting" | "farthest" | "leased" | "longest", number | null>>(
    "soonest",
    SOONEST,
  );
  const times = [row?.waiting, row?.farthest, row?.leased, row?.longest].filter((at) => typeof at === "number");
  if (times.length === 0) return null;
  const soonest = Math.min(...times);
  return soonest <= now || Math.max(...times) > now + TOO_FAR_AHEAD_MS ? 0 : soonest - now;
}
