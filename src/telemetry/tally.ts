/** Counts by label, to be read whenever somebody collects: a count costs a look into a map, and no call of a metrics library. */
import type { Labels } from "./measuring.ts";

interface Count {
  readonly labels: Labels;
  value: number;
}

export class Tally {
  readonly #counts = new Map<string, Count>();

  add(labels: Labels, by: number): void {
    let key = "";
    // One counter's labels always come in the same order.
    for (const name in labels) key += `${name}\0${labels[name]}\0`;
    const count = this.#counts.get(key);
    if (count === undefined) this.#counts.set(key, { labels, value: by });
    else count.value += by;
  }

  /** What was counted since the beginning. */
  counts(): Iterable<Readonly<Count>> {
    return this.#counts.values();
  }
}
