/** What one look at the inbox shows, and whether something changed since the one before. */

import type { InboxStats } from "../inbox/record.ts";
import type { Sample } from "./api.ts";
import type { Look } from "./watch.ts";

export interface Seen {
  readonly now: number;
  readonly location: string | null;
}

export function overviewOf(stats: InboxStats, { now, location }: Seen): Look["overview"] {
  const { gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances } = stats;
  return {
    ...{ now, location, gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances },
    slots: sumsOf(stats, "slot:"),
    rejections: sumsOf(stats, "refused:"),
  };
}

export function sampleOf({ now, gauges, counters, oldestPendingAt, rejections }: Look["overview"]): Sample {
  return {
    at: now,
    pending: gauges.pending,
    oldestWaitingMs: oldestPendingAt === null ? 0 : Math.max(0, now - oldestPendingAt),
    dead: gauges.dead,
    quarantined: gauges.quarantined,
    accepted: counters.accepted,
    handled: counters.handled,
    late: counters.late,
    gapsSkipped: counters.gapsSkipped,
    rejected: Object.values<number>(rejections).reduce((sum, count) => sum + count, 0),
  };
}

/** Equal texts for looks between which nothing happened. When an instance was seen is no news. */
export function fingerprintOf({ gauges, counters, newestSignedAt, instances }: InboxStats): string {
  return JSON.stringify([gauges, counters, newestSignedAt, instances.map(({ id, counters }) => [id, counters])]);
}

/** The instances' counters with this prefix, added up by what follows it: names without a prototype, since they come from a store. */
function sumsOf({ instances }: InboxStats, prefix: string): Record<string, number> {
  const sums: Record<string, number> = Object.create(null);
  for (const { counters } of instances) {
    for (const [counter, count] of Object.entries(counters)) {
      const name = counter.slice(prefix.length);
      if (counter.startsWith(prefix)) sums[name] = (sums[name] ?? 0) + count;
    }
  }
  return sums;
}
