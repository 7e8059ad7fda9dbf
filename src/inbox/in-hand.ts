/** What this process has of each lane, from its claim until the end of that claim is committed. */
import type { Clock } from "../internal/clock.ts";
import type { LaneId } from "./record.ts";
import type { Lease } from "./store.ts";

export class InHand {
  readonly #leases = new Map<LaneId, Lease>();
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#leases.size === 0;
  }

  leaseOf(lane: LaneId): Lease | undefined {
    return this.#leases.get(lane);
  }

  take(lease: Lease): void {
    this.#leases.set(lease.lane, lease);
  }

  /** False when the lane was claimed anew since: that claim stays. */
  letGo(lease: Lease): boolean {
    if (this.#leases.get(lease.lane) !== lease) return false;
    this.#leases.delete(lease.lane);
    if (this.isEmpty) for (const resolve of this.#waiting.splice(0)) resolve();
    return true;
  }

  /** Resolves when nothing is in hand, or after `timeoutMs`. */
  untilEmpty(timeoutMs: number): Promise<void> {
    if (this.isEmpty) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(resolve, timeoutMs);
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
