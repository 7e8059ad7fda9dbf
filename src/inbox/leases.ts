/** The leases that this process holds: their slots, their renewal, and the waits until they end. */
import { LeaseLost } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { Run } from "./handlers.ts";
import type { LaneId } from "./record.ts";
import type { InboxStore, Lease, LeaseRef } from "./store.ts";

export interface HeldLease {
  readonly lease: Lease;
  /** Set if the event was leased when it was accepted. Otherwise it is parsed from its bytes. */
  readonly parsed: WebhookEvent | null;
}

export interface LeaseOptions {
  /** Handlers that run at once. */
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Waits until some leases have ended. */
interface Watch {
  readonly leases: Set<Lease>;
  readonly resolve: () => void;
}

/** Quick handlers get leases ahead, enough for this much work. Slow ones get none ahead. */
const AHEAD_MS = 50;
const MOST_HELD = 256;
/** The weight of a new measurement in the average handler time. */
const SMOOTHING = 0.1;

export class Leases {
  readonly #store: Pick<InboxStore, "extend">;
  readonly #options: LeaseOptions;
  readonly #lost: (lease: Lease) => void;
  /** From each claim until its end is committed. */
  readonly #byLane = new Map<LaneId, Lease>();
  readonly #watches = new Set<Watch>();
  /** Not started: they wait for a free handler. */
  #waiting: HeldLease[] = [];
  readonly #running = new Map<HeldLease, Run | null>();
  /** Their handlers have ended, their effects have not. */
  readonly #unfinished = new Set<LeaseRef>();
  #averageMs: number | null = null;
  #renewal: Timer | null = null;

  /** @param lost - called with a lease that was lost before it started: nothing else reports that one */
  constructor(store: Pick<InboxStore, "extend">, options: LeaseOptions, lost: (lease: Lease) => void) {
    this.#store = store;
    this.#options = options;
    this.#lost = lost;
  }

  get isEmpty(): boolean {
    return this.#byLane.size === 0;
  }

  /** Slots in use: a lease whose end waits for its commit takes none. */
  get slotsTaken(): number {
    return this.#waiting.length + this.#running.size + this.#unfinished.size;
  }

  /** How many slots there are: `concurrency` until handlers prove quick. */
  get capacity(): number {
    const { concurrency } = this.#options;
    if (this.#averageMs === null) return concurrency;
    const ahead = Math.ceil((concurrency * AHEAD_MS) / Math.max(this.#averageMs, 0.01));
    return Math.max(concurrency, Math.min(ahead, MOST_HELD));
  }

  of(lane: LaneId): Lease | undefined {
    return this.#byLane.get(lane);
  }

  lanes(): readonly LaneId[] {
    return [...this.#byLane.keys()];
  }

  add(lease: Lease, parsed: WebhookEvent | null): void {
    this.#byLane.set(lease.lane, lease);
    this.#waiting.push({ lease, parsed });
    this.#renewal ??= this.#planRenewal();
  }

  /** The next lease to run, if a handler is free. It counts as running from here on. */
  next(): HeldLease | null {
    if (this.#running.size >= this.#options.concurrency) return null;
    const held = this.#waiting.shift();
    if (held === undefined) return null;
    this.#running.set(held, null);
    return held;
  }

  /** Ties a lease to its run, unless the run has ended already. */
  started(held: HeldLease, run: Run): void {
    if (this.#running.has(held)) this.#running.set(held, run);
  }

  finished(held: HeldLease, durationMs: number): void {
    this.#running.delete(held);
    this.#averageMs =
      this.#averageMs === null ? durationMs : this.#averageMs + (durationMs - this.#averageMs) * SMOOTHING;
  }

  /** Its end is not stored yet. It takes a slot, or more would be claimed than can be completed in time. */
  keepUnfinished(lease: LeaseRef): void {
    this.#unfinished.add(lease);
    this.#renewal ??= this.#planRenewal();
  }

  /** Removes a lease whose end is committed. Returns whether that freed a slot, and its lane; a lane claimed anew is not free. */
  end(lease: Lease): { readonly slot: boolean; readonly lane: boolean } {
    const slot = this.#unfinished.delete(lease);
    const lane = this.#byLane.get(lease.lane) === lease;
    if (lane) this.#byLane.delete(lease.lane);
    for (const watch of this.#watches) {
      if (!watch.leases.delete(lease) || watch.leases.size > 0) continue;
      this.#watches.delete(watch);
      watch.resolve();
    }
    return { slot, lane };
  }

  /** Removes the leases that have not started from their slots, and returns them. */
  takeWaiting(): readonly Lease[] {
    const waiting = this.#waiting.map(({ lease }) => lease);
    this.#waiting = [];
    return waiting;
  }

  /** Resolves when all leases that are held now have ended, whatever is claimed meanwhile. */
  untilEnded(): Promise<void> {
    if (this.isEmpty) return Promise.resolve();
    return new Promise((resolve) => void this.#watches.add({ leases: new Set(this.#byLane.values()), resolve }));
  }

  stopRenewing(): void {
    this.#renewal?.cancel();
    this.#renewal = null;
  }

  #planRenewal(): Timer {
    return this.#options.clock.setTimeout(() => void this.#renew(), this.#options.leaseMs / 3);
  }

  /** A lost lease aborts its handler: another worker has the event now, so this one could not commit. */
  async #renew(): Promise<void> {
    this.#renewal = this.slotsTaken > 0 ? this.#planRenewal() : null;
    const held = [...this.#waiting, ...this.#running.keys()];
    // Whether an unfinished one was lost shows when its end is stored.
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

  #drop(held: HeldLease): void {
    if (this.#waiting.includes(held)) {
      this.#waiting = this.#waiting.filter((one) => one !== held);
      return this.#lost(held.lease);
    }
    this.#running.get(held)?.abort(new LeaseLost("The lease of this event passed to another worker."));
  }
}
