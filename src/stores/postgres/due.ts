/** Finds lanes whose turn has come, without waiting for those that others hold. */
import { LONGEST_WAIT_MS } from "../../inbox/gap.ts";
import { arrayOf } from "./arrays.ts";
import type { LaneRow } from "./lanes.ts";
import type { Session } from "./session.ts";

/**
 * What lies further ahead than any wait (`$2`), because the clock went back, is due as well. Each range by itself, so that the index
 * bounds both, whatever else waits: one condition for the two would be tried on every lane that does.
 */
const DUE = (which: string) =>
  `${inRange(which, "ready_at <= $1::bigint")} union all ${inRange(which, "ready_at > $2::bigint")}`;
const inRange = (which: string, range: string) => `select * from (select * from {}.lane
  where ${which} and ${range} and id not in (select unnest($4::bigint[]))
  order by ready_at, id limit $3::int for update skip locked) l`;
const WAITING = DUE("status >= 3");
const LEASED = DUE("status = 2");

export interface DueRequest {
  readonly now: number;
  readonly limit: number;
  /** Expired leases instead of ordinary lanes. */
  readonly recover: boolean;
  /** Lanes that this transaction holds already. */
  readonly seen: readonly number[];
}

/** Locks due lanes, the oldest first; as many again may follow that lie too far ahead. */
export function claimable(session: Session, { now, limit, recover, seen }: DueRequest): Promise<readonly LaneRow[]> {
  const [name, text] = recover ? ["claim_expired", LEASED] : ["claim_due", WAITING];
  return session.rows<LaneRow>(name, text, [now, now + LONGEST_WAIT_MS, limit, arrayOf("bigint", seen)]);
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
  return soonest <= now || Math.max(...times) > now + LONGEST_WAIT_MS ? 0 : soonest - now;
}
