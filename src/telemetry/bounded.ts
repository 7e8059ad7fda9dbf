/** Keeps a label from having values without end: each makes another series. */
import { OTHER } from "./names.ts";

const MOST_VALUES = 50;

export class BoundedLabel {
  readonly #known = new Set<string>();

  /** `value` itself when it is among the first 50. */
  of(value: string): string {
    if (this.#known.has(value)) return value;
    if (this.#known.size >= MOST_VALUES) return OTHER;
    this.#known.add(value);
    return value;
  }
}
