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
  readonly clock: Clock;
  readonly inbox: { stats(): Promise<InboxStats> };
}

export type GaugeValues = Readonly<Record<GaugeKey, number>>;

export class Gauges {
  readonly #source: Instrumentable;
  #reading: Promise<GaugeValues | null> | null = null;
  #readAt = 0;

  constructor(source: Instrumentable) {
    this.#source = source;
  }

  /** Null when the inbox does not answer. */
  read(): Promise<GaugeValues | null> {
    const now = this.#source.clock.monotonic();
    if (this.#reading === null || now - this.#readAt >= FRESH_MS) {
      this.#readAt = now;
      this.#reading = this.#read().catch(() => null);
    }
    return this.#reading;
  }

  async #read(): Promise<GaugeValues> {
    const { gauges, oldestPendingAt } = await this.#source.inbox.stats();
    const { pending, dead, quarantined, blockedLanes } = gauges;
    const waitedMs = oldestPendingAt === null ? 0 : Math.max(0, this.#source.clock.now() - oldestPendingAt);
    return { backlog: pending, oldest: waitedMs / 1000, deadLetters: dead, quarantined, blocked: blockedLanes };
  }
}
