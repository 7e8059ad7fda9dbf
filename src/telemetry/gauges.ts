/** What an inbox holds now, read as often as somebody asks but not oftener than every few seconds. */
import type { Instrumentation } from "../inbox/instrumentation.ts";
import type { InboxStats } from "../inbox/record.ts";
import type { Clock } from "../internal/clock.ts";
import type { GaugeKey } from "./names.ts";

/** A reader that scrapes oftener gets the same figures again. */
const FRESH_MS = 5_000;
/** How long somebody waits for an inbox that hangs; it is not asked again until it has answered. */
const PATIENCE_MS = 2_000;

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
  #inFlight: Promise<GaugeValues | null> | null = null;
  #answer: Promise<GaugeValues | null> = Promise.resolve(null);
  #readAt = Number.NEGATIVE_INFINITY;

  /** From now on those of `source`; false when they are already. */
  follow(source: Instrumentable): boolean {
    if (this.#source === source) return false;
    this.#source = source;
    this.#inFlight = null;
    this.#readAt = Number.NEGATIVE_INFINITY;
    return true;
  }

  /** Null when the inbox does not answer. */
  read(): Promise<GaugeValues | null> {
    if (this.#source !== null && this.#inFlight === null) this.#readUnlessFresh(this.#source);
    return this.#answer;
  }

  #readUnlessFresh(source: Instrumentable): void {
    const now = source.clock.monotonic();
    if (now - this.#readAt < FRESH_MS) return;
    this.#readAt = now;
    const reading = valuesOf(source).catch(() => null);
    this.#inFlight = reading;
    this.#answer = new Promise((resolve) => {
      const timer = source.clock.setTimeout(() => resolve(null), PATIENCE_MS);
      void reading.then((values) => {
        timer.cancel();
        if (this.#inFlight === reading) this.#inFlight = null;
        resolve(values);
      });
    });
  }
}

async function valuesOf({ inbox, clock }: Instrumentable): Promise<GaugeValues> {
  const { gauges, oldestPendingAt } = await inbox.stats();
  const { pending, dead, quarantined, blockedLanes } = gauges;
  const waitedMs = oldestPendingAt === null ? 0 : Math.max(0, clock.now() - oldestPendingAt);
  return { backlog: pending, oldest: waitedMs / 1000, deadLetters: dead, quarantined, blocked: blockedLanes };
}
