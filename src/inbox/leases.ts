/** The leases this process holds: those waiting for a handler's place, those running or waiting for effects, and their renewal. */
import { LeaseLost } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { Run } from "./handlers.ts";
import type { LaneId } from "./record.ts";
import type { InboxStore, Lease, LeaseRef } from "./store.ts";

export interface Held {
  readonly lease: Lease;
  /** The event, when it was leased as it was accepted; else it is parsed from its bytes. */
  readonly parsed: WebhookEvent | null;
}

interface LeaseBookOptions {
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Quick handlers are fed from leases taken ahead, enough for this much work; slow ones get none ahead. */
const AHEAD_MS = 50;
const MOST_HELD = 256;
/** How much of the average handler time a new measurement makes up. */
const SMOOTHING = 0.1;

export class LeaseBook {
  readonly #store: Pick<InboxStore, "extend">;
  readonly #options: LeaseBookOptions;
  readonly #lost: (held: Held) => void;
  readonly #running = new Map<Held, Run | null>();
  /** Their handlers have ended, and their effects have not. */
  readonly #unfinished = new Set<LeaseRef>();
  #waiting: Held[] = [];
  #averageMs: number | null = null;
  #renewal: Timer | null = null;

  /** @param lost - told of a lease that was lost before it was started: nobody else will hear of it */
  constructor(store: Pick<InboxStore, "extend">, options: LeaseBookOptions, lost: (held: Held) => void) {
    this.#store = store;
    this.#options = options;
    this.#lost = lost;
  }

  get size(): number {
    return this.#waiting.length + this.#running.size + this.#unfinished.size;
  }

  /** How many leases to hold at most: `concurrency` until handlers prove quick. */
  get capacity(): number {
    const { concurrency } = this.#options;
    if (this.#averageMs === null) return concurrency;
    const ahead = Math.ceil((concurrency * AHEAD_MS) / Math.max(this.#averageMs, 0.01));
    return Math.max(concurrency, Math.min(ahead, MOST_HELD));
  }

  add(lease: Lease, parsed: WebhookEvent | null): void {
    this.#waiting.push({ lease, parsed });
    this.#renewal ??= this.#planRenewal();
  }

  /** The next lease to run, if a place is free; it counts as running from here on. */
  next(): Held | null {
    if (this.#running.size >= this.#options.concurrency) return null;
    const held = this.#waiting.shift();
    if (held === undefined) return null;
    this.#running.set(held, null);
    return held;
  }

  /** Ties a lease to its run, unless the run has ended already. */
  started(held: Held, run: Run): void {
    if (this.#running.has(held)) this.#running.set(held, run);
  }

  finished(held: Held, durationMs: number): void {
    this.#running.delete(held);
    this.#averageMs =
      this.#averageMs === null ? durationMs : this.#averageMs + (durationMs - this.#averageMs) * SMOOTHING;
  }

  /** A lease that could not be settled yet takes a place, or more and more would be claimed than can be settled in time. */
  keep(lease: LeaseRef): void {
    this.#unfinished.add(lease);
    this.#renewal ??= this.#planRenewal();
  }

  /** Whether its end frees a place. */
  letGo(lease: LeaseRef): boolean {
    return this.#unfinished.delete(lease);
  }

  /** Takes the leases that were not started out of the book. */
  takeWaiting(): readonly Held[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }

  close(): void {
    this.#renewal?.cancel();
    this.#renewal = null;
  }

  #planRenewal(): Timer {
    return this.#options.clock.setTimeout(() => void this.#renew(), this.#options.leaseMs / 3);
  }

  /** A lease that is lost aborts its handler: another worker has the event now, and this one could not commit. */
  async #renew(): Promise<void> {
    this.#renewal = this.size > 0 ? this.#planRenewal() : null;
    const held = [...this.#waiting, ...this.#running.keys()];
    // What becomes of the unfinished is told when they are settled.
    const leases = [...held.map(({ lease }) => lease), ...this.#unfinished];
    if (leases.length === 0) return;
    try {
      const kept = await this.#store.extend(leases, this.#options.leaseMs);
      for (const [index, one] of held.entries()) if (!kept[index]) this.#drop(one);
    } catch {
      this.#options.logger.warn(
        { leases: leases.length },
        "Leases could not be renewed; the next renewal tries again.",
      );
    }
  }

  #drop(held: Held): void {
    if (this.#waiting.includes(held)) {
      this.#waiting = this.#waiting.filter((one) => one !== held);
      return this.#lost(held);
    }
    this.#running.get(held)?.abort(new LeaseLost("The lease of this event passed to another worker."));
  }
}

// What this process has of each lane, from its claim until the end of that claim is committed.

interface Watch {
  readonly leases: Set<Lease>;
  readonly resolve: () => void;
}

export class InHand {
  readonly #leases = new Map<LaneId, Lease>();
  readonly #watches = new Set<Watch>();

  get isEmpty(): boolean {
    return this.#leases.size === 0;
  }

  leaseOf(lane: LaneId): Lease | undefined {
    return this.#leases.get(lane);
  }

  lanes(): readonly LaneId[] {
    return [...this.#leases.keys()];
  }

  take(lease: Lease): void {
    this.#leases.set(lease.lane, lease);
  }

  /** False when the lane was claimed anew since: that claim stays. */
  letGo(lease: Lease): boolean {
    const current = this.#leases.get(lease.lane) === lease;
    if (current) this.#leases.delete(lease.lane);
    for (const watch of this.#watches) {
      if (!watch.leases.delete(lease) || watch.leases.size > 0) continue;
      this.#watches.delete(watch);
      watch.resolve();
    }
    return current;
  }

  /** Resolves when what is in hand now has been let go, whatever is taken meanwhile. */
  untilLetGo(): Promise<void> {
    if (this.isEmpty) return Promise.resolve();
    return new Promise((resolve) => void this.#watches.add({ leases: new Set(this.#leases.values()), resolve }));
  }
}
