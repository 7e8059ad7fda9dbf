/** The samples of the last 15 minutes. */
import type { Sample } from "./api.ts";

const KEPT_MS = 15 * 60_000;
/** One a second, and some for looks that were made at once. */
const MOST = 1_000;

/** Aged by a clock that only grows: `Sample.at` may jump. */
export class Samples {
  readonly #kept: { readonly at: number; readonly sample: Sample }[] = [];

  add(sample: Sample, at: number): void {
    this.#kept.push({ at, sample });
    this.#forget(at);
  }

  /** The oldest first. */
  list(now: number): readonly Sample[] {
    this.#forget(now);
    return this.#kept.map(({ sample }) => sample);
  }

  #forget(now: number): void {
    const firstKept = this.#kept.findIndex(({ at }) => at > now - KEPT_MS);
    const tooOld = firstKept === -1 ? this.#kept.length : firstKept;
    this.#kept.splice(0, Math.max(tooOld, this.#kept.length - MOST));
  }
}
