/** What an inbox holds now, read as often as somebody asks but not oftener than every few seconds. */
import type { Instrumentation } from "../inbox/instrumentation.ts";
import type { InboxStats } from "../inbox/store.ts";
import type { Clock } from "../internal/clock.ts";
import type { GaugeKey } from "./names.ts";

/** A reader that scrapes oftener gets the same figures again. */
const FRESH_MS = 5_000;

/** What of a receiver is watched. */
export interface Instrumentable {
  instrument(instrumentation: Instrumentation): unknown;
  /** Its name and its inbox: a receiver of the same key counts on where another ended. */
  readonly key: string;
  readonly clock: Clock;
  readonly inbox: { stats(): Promise<InboxStats> };
}

export type GaugeValues = Readonly<Record<GaugeKey, number>>;

export class Gauges {
  #source: Instrumentable | null = null;
  #reading: Promise<GaugeValues | null> | null = null;
  #readAt = 0;

  /** From now on those of `source`; false when they are already. */
  follow(source: Instrumentable): boolean {
    if (this.#source === source) return false;
    this.#source = source;
    this.#reading = null;
    return true;
  }

  /** Null when the inbox does not answer. */
  async read(): Promise<GaugeValues | null> {
    const source = this.#source;
    if (source === null) return null;
    const now = source.clock.monotonic();
    if (this.#reading === null || now - this.#readAt >= FRESH_MS) {
      this.#readAt = now;
      this.#reading = valuesOf(source).catch(() => null);
    }
    return this.#reading;
  }
}

async function valuesOf({ inbox, clock }: Instrumentable): Promise<GaugeValues> {
  const { gauges, oldestPendingAt } = await inbox.stats();
  const { pending, dead, quarantined, blockedLanes } = gauges;
  const waitedMs = oldestPendingAt === null ? 0 : Math.max(0, clock.now() - oldestPendingAt);
  return { backlog: pending, oldest: waitedMs / 1000, deadLetters: dead, quarantined, blocked: blockedLanes };
}
