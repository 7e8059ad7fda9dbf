/** A binary heap: the smallest element first, in O(log n). */

export class Heap<T> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  /** Empties the heap; what was in it, in no particular order. */
  drain(): T[] {
    return this.#items.splice(0);
  }

  push(item: T): void {
    this.#items.push(item);
    for (let i = this.#items.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!this.#swapIfBefore(i, parent)) return;
      i = parent;
    }
  }

  pop(): T | undefined {
    const first = this.#items[0];
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return first;
    this.#items[0] = last;
    for (let i = 0; ; ) {
      const left = 2 * i + 1;
      const right = left + 1;
      const child = right < this.#items.length && this.#before(right, left) ? right : left;
      if (child >= this.#items.length || !this.#swapIfBefore(child, i)) return first;
      i = child;
    }
  }

  #before(a: number, b: number): boolean {
    return this.#isBefore(this.#items[a] as T, this.#items[b] as T);
  }

  #swapIfBefore(a: number, b: number): boolean {
    if (!this.#before(a, b)) return false;
    [this.#items[a], this.#items[b]] = [this.#items[b] as T, this.#items[a] as T];
    return true;
  }
}
