/** One timer for the next lane that comes due, instead of polling. */
import type { Clock, Timer } from "../internal/clock.ts";
import type { InboxStore } from "./store.ts";

/** After a failure the store is asked again this much later. */
const STORE_RETRY_MS = 1_000;

export class Waker {
  readonly #store: Pick<InboxStore, "nextDue">;
  readonly #clock: Clock;
  readonly #wake: () => void;
  #timer: Timer | null = null;
  #planning = false;

  constructor(store: Pick<InboxStore, "nextDue">, clock: Clock, wake: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Wakes when the next lane is due, `leastMs` from now at the earliest. The store is asked once per round of the event loop. */
  plan(leastMs: number): void {
    if (this.#planning) return;
    this.#planning = true;
    setImmediate(async () => {
      const dueInMs = await this.#store.nextDue().catch(() => STORE_RETRY_MS);
      if (!this.#planning) return;
      this.#planning = false;
      if (dueInMs !== null) this.wakeIn(Math.max(dueInMs, leastMs));
    });
  }

  wakeIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimeout(this.#wake, ms);
  }

  wakeAfterFailure(): void {
    this.wakeIn(STORE_RETRY_MS);
  }

  stop(): void {
    this.#planning = false;
    this.#timer?.cancel();
  }
}
