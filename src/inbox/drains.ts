/** The drains under way: each handles what is ready now, within its budget, and then resolves. */
import type { Clock, Timer } from "../internal/clock.ts";

export interface DrainOptions {
  /** Start nothing new after this many milliseconds. Default: no bound. */
  readonly budgetMs?: number;
  /** Start at most this many events. Default: no bound. */
  readonly limit?: number;
}

export interface DrainResult {
  /** Events handed out while the drain ran. */
  readonly claimed: number;
  /** Nothing is left that is ready now; false when the budget or the limit ended the drain. */
  readonly complete: boolean;
}

interface Drain {
  claimed: number;
  remaining: number;
  over: "no" | "complete" | "cut";
  readonly timer: Timer | null;
  readonly resolve: (result: DrainResult) => void;
  readonly ended: () => void;
}

export class Drains {
  readonly #clock: Clock;
  readonly #all = new Set<Drain>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin({ budgetMs, limit }: DrainOptions, ended: () => void): Promise<DrainResult> {
    return new Promise((resolve) => {
      const timer = budgetMs === undefined ? null : this.#clock.setTimeout(() => this.#cut(drain), budgetMs);
      const drain: Drain = {
        claimed: 0,
        remaining: limit ?? Number.POSITIVE_INFINITY,
        over: "no",
        timer,
        resolve,
        ended,
      };
      this.#all.add(drain);
    });
  }

  /** Some drain still wants events. */
  get active(): boolean {
    return this.remaining > 0;
  }

  /** How many events the drains together may still start. */
  get remaining(): number {
    let most = 0;
    for (const drain of this.#all) if (drain.over === "no") most = Math.max(most, drain.remaining);
    return most;
  }

  claimed(count: number): void {
    if (count === 0) return;
    for (const drain of this.#all) {
      drain.claimed += count;
      drain.remaining -= count;
      if (drain.remaining <= 0) this.#cut(drain);
    }
  }

  /** A claim found nothing that is due. */
  nothingReady(): void {
    for (const drain of this.#all) if (drain.over === "no") drain.over = "complete";
  }

  endAll(): void {
    for (const drain of this.#all) this.#cut(drain);
  }

  /** Nothing runs: the drains that are over resolve. */
  quiet(): void {
    for (const drain of this.#all) {
      if (drain.over === "no") continue;
      this.#all.delete(drain);
      drain.timer?.cancel();
      drain.resolve({ claimed: drain.claimed, complete: drain.over === "complete" });
    }
  }

  #cut(drain: Drain): void {
    if (drain.over !== "no") return;
    drain.over = "cut";
    drain.ended();
  }
}
