/** One look at the inbox: its figures, a sample for the charts, and the number that says whether anything has changed. */
import { hash } from "node:crypto";
import type { AuditRecord, InboxStats } from "../../inbox/record.ts";
import type { Clock } from "../../internal/clock.ts";
import type { InboxOperator } from "../../receiver/operator.ts";
import type { Overview, Sample } from "./api.ts";

/** What every viewer gets. The viewer's name and rights are added for each. */
export type Look = Omit<Overview, "access" | "by">;

/** Two acts can commit in the other order of their ids, so the newest id alone can hide an act. */
const ACTS_READ = 20;

export async function lookAt(
  inbox: Pick<InboxOperator, "stats" | "audit"> & { readonly location?: string },
  clock: Clock,
): Promise<Look> {
  const stats = await inbox.stats();
  const changed = changeNumber(stats, await inbox.audit(ACTS_READ));
  const { gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances } = stats;
  const figures = {
    ...{ changed, now: clock.now(), location: inbox.location ?? null },
    ...{ gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances },
    slots: sumsOf(stats, "slot:"),
    rejections: sumsOf(stats, "refused:"),
  };
  return { ...figures, sample: sampleOf(figures) };
}

const NUMBER_BYTES = 6;

/**
 * Made of what the store counts, so it is the same in every process and after a restart. An act may move no counter, so the acts count
 * too. Instances do not: they report every few seconds, and only the overview shows them, which each look brings.
 */
function changeNumber({ gauges, counters }: InboxStats, acts: readonly AuditRecord[]): number {
  const counted = JSON.stringify([gauges, counters, acts.map(({ id }) => id)]);
  return hash("sha256", counted, "buffer").readUIntBE(0, NUMBER_BYTES);
}

function sampleOf({ now, gauges, counters, oldestPendingAt, rejections }: Omit<Look, "sample">): Sample {
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

/** Sums of the instances' counters with this prefix, by the rest of the name. Without a prototype, because the names come from a store. */
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

const KEPT_MS = 15 * 60_000;
/** Several pages ask in the same second. */
const SOONEST_MS = 1_000;

/** The samples of the last 15 minutes, by the monotonic clock: `Sample.at` may jump. */
export class Samples {
  readonly #clock: Clock;
  #kept: readonly { readonly at: number; readonly sample: Sample }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(sample: Sample): void {
    const at = this.#clock.monotonic();
    if (at - (this.#kept.at(-1)?.at ?? Number.NEGATIVE_INFINITY) < SOONEST_MS) return;
    this.#forget();
    this.#kept = [...this.#kept, { at, sample }];
  }

  /** The oldest first. */
  list(): readonly Sample[] {
    this.#forget();
    return this.#kept.map(({ sample }) => sample);
  }

  #forget(): void {
    const oldest = this.#clock.monotonic() - KEPT_MS;
    this.#kept = this.#kept.filter(({ at }) => at > oldest);
  }
}
