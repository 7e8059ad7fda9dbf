/** Answers from kept counters and small indexes. */
import type { AuditRecord } from "../../inbox/record.ts";
import type { InboxStats } from "../../inbox/store.ts";
import { readInstances } from "./instances.ts";
import type { Session } from "./session.ts";
import { countersOf, STATS, type StatsRow } from "./tally.ts";

/** Pending is the lowest state; asked for by itself, it may be looked for among all events in the order of their ids. */
const OLDEST = `select accepted from (select state, accepted from {}.event where state <> 1 order by state, id limit 1) oldest
  where state = 0`;

export async function readStats(session: Session): Promise<InboxStats> {
  const [row] = await session.rows<StatsRow>("stats", STATS);
  if (row === undefined) throw new RangeError("The inbox has no counters.");
  const [oldest] = await session.rows<{ accepted: number }>("oldest_pending", OLDEST);
  return {
    gauges: {
      pending: row.pending,
      dead: row.dead,
      quarantined: row.held,
      quarantinedBytes: row.held_bytes,
      blockedLanes: row.blocked,
    },
    counters: countersOf(row),
    oldestPendingAt: oldest?.accepted ?? null,
    newestSignedAt: row.newest_signed,
    serviceResigns: row.resigned,
    instances: await readInstances(session),
  };
}

const AUDIT = "select id, at, by, act, detail from {}.audit order by id desc limit $1::int";

/** The newest `limit` audit rows, newest first. */
export function readAudit(session: Session, limit: number): Promise<readonly AuditRecord[]> {
  return session.rows<AuditRecord>("audit", AUDIT, [limit]);
}
