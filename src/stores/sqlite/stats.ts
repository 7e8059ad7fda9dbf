/** Answers from kept counters and small indexes. */
import { isDue, TOO_FAR_AHEAD_MS } from "../../inbox/gap.ts";
import type { AuditRecord, InboxStats } from "../../inbox/record.ts";
import { readInstances } from "./instances.ts";
import type { Counter, Gauge } from "./ledger.ts";
import type { OpenInbox } from "./open-inbox.ts";

/** The oldest pending event, by the index of events that are not done. */
export const OLDEST_PENDING =
  "select accepted from oncehook_event where state <> 1 and state = 0 order by state, id limit 1";

export function readStats(inbox: OpenInbox): Promise<InboxStats> {
  return inbox.during(() => {
    const { db } = inbox;
    const rows = db.prepare("select name, value from oncehook_counter").all() as { name: string; value: number }[];
    const values = new Map(rows.map(({ name, value }) => [name, value]));
    const count = (name: Gauge | Counter) => values.get(name) ?? 0;
    const newestSigned = values.get("newest_signed") ?? -1;
    const oldest = db.prepare(OLDEST_PENDING).get() as { accepted: number } | undefined;
    return {
      gauges: {
        pending: count("pending"),
        dead: count("dead"),
        quarantined: count("held"),
        quarantinedBytes: count("held_bytes"),
        blockedLanes: count("blocked"),
      },
      counters: {
        accepted: count("accepted"),
        duplicates: count("duplicates"),
        conflicts: count("conflicts"),
        late: count("late"),
        handled: count("handled"),
        unhandled: count("unhandled"),
        retried: count("retried"),
        deadLettered: count("dead_lettered"),
        discarded: count("discarded"),
        gapsSkipped: count("gaps_skipped"),
        quarantined: count("quarantined"),
      },
      oldestPendingAt: oldest?.accepted ?? null,
      newestSignedAt: newestSigned < 0 ? null : newestSigned,
      serviceResigns: values.get("service_resigns") === 1,
      instances: readInstances(db),
    };
  });
}

/** Milliseconds until a lane is due; null for none waiting. */
export function readNextDue(inbox: OpenInbox): Promise<number | null> {
  return inbox.during(() => {
    const { sql } = inbox.session;
    const now = inbox.context.clock.now();
    const soonest = sql.soonest.get()?.at ?? null;
    if (soonest === null) return null;
    if (inbox.clockSteps.wentBack(now)) return 0;
    const farthest = sql.farthest.get()?.at ?? soonest;
    return isDue(soonest, now) || farthest > now + TOO_FAR_AHEAD_MS ? 0 : soonest - now;
  });
}

/** The newest `limit` audit rows, newest first. */
export function readAudit(inbox: OpenInbox, limit: number): Promise<readonly AuditRecord[]> {
  const sql = "select id, at, by, act, detail from oncehook_audit order by id desc limit ?";
  return inbox.during(() => inbox.db.prepare(sql).all(limit) as AuditRecord[]);
}
