/** What this process has of each lane, from its claim until the end of that claim is committed. */
import type { LaneId } from "./record.ts";
import type { Lease } from "./store.ts";

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
