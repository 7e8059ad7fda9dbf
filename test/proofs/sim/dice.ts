/** Chance that a seed decides: one stream of numbers for each question, so that another answer to one leaves the others alone. */
import { seededRandom } from "../../../src/tools/testing/index.ts";

export class Dice {
  readonly #random: () => number;

  constructor(seed: number, question: string) {
    this.#random = seededRandom(mixed(seed, question));
  }

  /** A number in [0, 1), as `Random` gives. */
  readonly next = (): number => this.#random();

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  /** At least `low`, less than `high`. */
  between(low: number, high: number): number {
    return low + this.#random() * (high - low);
  }

  /** As `between`, but small numbers are as likely as great ones. */
  spread(low: number, high: number): number {
    return Math.round(low * (high / low) ** this.#random());
  }

  whole(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  pick<T>(list: readonly T[]): T {
    const found = list[Math.floor(this.#random() * list.length)];
    if (found === undefined) throw new Error("There is nothing to pick from.");
    return found;
  }
}

/** FNV-1a of the question, mixed with the seed. */
function mixed(seed: number, question: string): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let index = 0; index < question.length; index++) {
    hash = Math.imul(hash ^ question.charCodeAt(index), 0x01000193);
  }
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) ^ (seed << 7);
}
