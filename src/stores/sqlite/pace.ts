/** Cuts a long piece of work so that the event loop gets its turn: larger pieces while they are quick, smaller ones else. */
import type { Clock } from "../../internal/clock.ts";

const QUICK_MS = 10;
const SMALLEST = 16;
const LARGEST = 20_000;

export class Pace {
  readonly #clock: Clock;
  #size = 128;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does `work` for the next `size` rows. */
  async take<T>(work: (size: number) => Promise<T>): Promise<T> {
    const size = this.#size;
    const startedAt = this.#clock.monotonic();
    const result = await work(size);
    const tookMs = this.#clock.monotonic() - startedAt;
    if (tookMs < QUICK_MS) this.#size = Math.min(LARGEST, size * 2);
    else if (tookMs > 2 * QUICK_MS) this.#size = Math.max(SMALLEST, size >> 1);
    return result;
  }
}
