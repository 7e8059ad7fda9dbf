/** Where a look into an index of `ready_at` begins. */
import type { Clock } from "../../internal/clock.ts";

/** Then what was passed over is looked at again, as a lane that somebody had locked. */
const WHOLE_EVERY_MS = 1_000;

/**
 * An entry stays in the index when its lane goes on, until the server cleans up: at its low end lie as many as lanes have gone on since
 * then. Each look would pass all of them, so it begins where the one before found the first that was left.
 */
export class LookFrom {
  readonly #clock: Clock;
  #readyAt = 0;
  #wholeAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The least `ready_at` to look at, epoch milliseconds; 0 for all of the index, as for one look every second. */
  next(): number {
    const now = this.#clock.now();
    const isRecent = now >= this.#wholeAt && now < this.#wholeAt + WHOLE_EVERY_MS;
    if (isRecent && this.#readyAt > 0) return this.#readyAt;
    this.#wholeAt = now;
    return 0;
  }

  /** Tells that what lay before is done with, or 0 to have all of the index looked at next. */
  goesOnFrom(readyAt: number): void {
    this.#readyAt = readyAt;
  }
}
