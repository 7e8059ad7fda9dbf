/** Randomness of one case: seed and number alone decide it, so that any case can be made again without those before it. */
import type { Random } from "../../../src/internal/clock.ts";
import { seededRandom } from "../../../src/tools/testing/scenarios.ts";

export class Dice {
  readonly #random: Random;

  constructor(seed: number, index: number) {
    this.#random = seededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  isOneIn(count: number): boolean {
    return this.below(count) === 0;
  }

  pick<T>(list: readonly T[]): T {
    const found = list[this.below(list.length)];
    if (found === undefined) throw new Error("There is nothing to pick from.");
    return found;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let index = 0; index < length; index++) bytes[index] = this.below(256);
    return bytes;
  }

  text(alphabet: readonly string[], length: number): string {
    let text = "";
    for (let index = 0; index < length; index++) text += this.pick(alphabet);
    return text;
  }
}
