/** The drains under way: each handles what is ready now, within its budget, and then resolves; it rejects if the store failed meanwhile. */
import type { Clock, Timer } from "../internal/clock.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { InHand } from "./in-hand.ts";
import type { LaneId } from "./record.ts";

export interface DrainOptions {
  /** Start nothing new after this many milliseconds, 1 to 86,400,000. Default: no bound. */
  readonly budgetMs?: number;
  /** Start at most this many events, 1 to 86,400,000. Default: no bound. */
  readonly limit?: number;
}

export interface DrainResult {
  /** Events handed out while the drain ran. */
  readonly claimed: number;
  /** Nothing is left that is ready now; false when the budget or the limit ended the drain. */
  readonly complete: boolean;
}

/** Throws a `SetupError` for an unknown option or one beyond its bounds. */
export function checkDrainOptions(options: DrainOptions): void {
  refuseUnknownOptions("drain", options, ["budgetMs", "limit"]);
  numberOption("budgetMs", options.budgetMs, 1, { min: 1, max: 86_400_000, unit: "ms" });
  numberOption("limit", options.limit, 1, { min: 1, max: 86_400_000, unit: "events" });
}

interface Drain {
  claimed: number;
  remaining: number;
  /** Lanes that were in hand when a claim found nothing else: what becomes ready in them still belongs to this drain. */
  lanes: ReadonlySet<LaneId> | null;
  readonly timer: Timer | null;
  failure: Error | null;
  readonly resolve: (result: DrainResult) => void;
  readonly reject: (error: Error) => void;
}

export class Drains {
  readonly #clock: Clock;
  readonly #inHand: InHand;
  readonly #cut: () => void;
  readonly #all = new Set<Drain>();
  /** They start nothing more, and what is in hand has not ended. */
  readonly #ending = new Set<Drain>();

  /** @param cut - called when drains were cut off before their limit: what they have not started should go back */
  constructor(clock: Clock, inHand: InHand, cut: () => void) {
    this.#clock = clock;
    this.#inHand = inHand;
    this.#cut = cut;
  }

  begin({ budgetMs, limit }: DrainOptions): Promise<DrainResult> {
    return new Promise((resolve, reject) => {
      const timer = budgetMs === undefined ? null : this.#clock.setTimeout(() => this.#end([drain]), budgetMs);
      const remaining = limit ?? Number.POSITIVE_INFINITY;
      const drain: Drain = { claimed: 0, remaining, lanes: null, timer, failure: null, resolve, reject };
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
    for (const drain of this.#all) most = Math.max(most, drain.remaining);
    return most;
  }

  claimed(count: number): void {
    for (const drain of this.#all) {
      drain.claimed += count;
      drain.remaining -= count;
      if (drain.remaining <= 0) this.#finish(drain);
    }
  }

  /** So many claimed events went back without having been started. */
  putBack(count: number): void {
    for (const drain of this.#all) drain.claimed = Math.max(0, drain.claimed - count);
  }

  /**
   * A claim found nothing more that is due. What is in hand now may still make the next event of its lane ready; other
   * lanes that become ready are no longer waited for, so that a drain ends under steady traffic too.
   */
  nothingReady(): void {
    for (const drain of this.#all) {
      const lanes = this.#inHand.lanes().filter((lane) => drain.lanes?.has(lane) ?? true);
      drain.lanes = new Set(lanes);
      if (lanes.length > 0) continue;
      this.#remove(drain);
      drain.resolve({ claimed: drain.claimed, complete: true });
    }
  }

  endAll(): void {
    if (this.#all.size > 0) this.#end([...this.#all]);
  }

  /** As `endAll()`, and none of them was all right. */
  fail(error: Error): void {
    for (const drain of [...this.#all, ...this.#ending]) drain.failure ??= error;
    this.endAll();
  }

  #end(drains: readonly Drain[]): void {
    for (const drain of drains) drain.remaining = 0;
    this.#cut();
    for (const drain of drains) this.#finish(drain);
  }

  /** Starts nothing more, and settles when what is in hand has ended. */
  #finish(drain: Drain): void {
    this.#remove(drain);
    this.#ending.add(drain);
    void this.#inHand.untilLetGo().then(() => {
      this.#ending.delete(drain);
      if (drain.failure !== null) drain.reject(drain.failure);
      else drain.resolve({ claimed: drain.claimed, complete: false });
    });
  }

  #remove(drain: Drain): void {
    this.#all.delete(drain);
    drain.timer?.cancel();
  }
}
