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
  /** `asked_again`: the answer under way may be older than what the plan was made for. */
  #planning: "no" | "soon" | "asked" | "asked_again" = "no";
  #leastMs = 0;

  constructor(store: Pick<InboxStore, "nextDue">, clock: Clock, wake: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Wakes when the next lane is due, `leastMs` from now at the earliest. The store is asked once per round of the event loop. */
  plan(leastMs: number): void {
    this.#leastMs = leastMs;
    if (this.#planning === "asked") this.#planning = "asked_again";
    if (this.#planning !== "no") return;
    this.#planning = "soon";
    setImmediate(() => void this.#ask());
  }

  wakeIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimeout(this.#wake, ms);
  }

  /** The turn may have been written all the same: an answer that is under way may be older. */
  wakeAfterFailure(): void {
    if (this.#planning === "asked") this.#planning = "asked_again";
    this.wakeIn(STORE_RETRY_MS);
  }

  stop(): void {
    this.#planning = "no";
    this.#timer?.cancel();
  }

  async #ask(): Promise<void> {
    if (this.#planning !== "soon") return;
    this.#planning = "asked";
    const dueInMs = await this.#store.nextDue().catch(() => STORE_RETRY_MS);
    const { again, stopped } = this.#answered();
    if (stopped) return;
    if (dueInMs !== null) this.wakeIn(Math.max(dueInMs, this.#leastMs));
    if (again) this.plan(this.#leastMs);
  }

  #answered(): { readonly again: boolean; readonly stopped: boolean } {
    const planning = this.#planning;
    this.#planning = "no";
    return { again: planning === "asked_again", stopped: planning === "no" };
  }
}
