/** One who watches: gets the newest look when ready for it. Whoever is slow misses some, and nothing piles up. */
import type { Look } from "./watch.ts";

export class Viewer implements AsyncIterableIterator<Look> {
  readonly #signal: AbortSignal;
  readonly #left: (viewer: Viewer) => void;
  readonly #end = () => this.end();
  #newest: Look | null = null;
  #hasEnded = false;
  #wake: () => void = () => {};

  /** @param left - called once, when the viewer has ended */
  constructor(signal: AbortSignal, left: (viewer: Viewer) => void) {
    this.#signal = signal;
    this.#left = left;
    signal.addEventListener("abort", this.#end, { once: true });
  }

  offer(look: Look): void {
    this.#newest = look;
    this.#wake();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#signal.removeEventListener("abort", this.#end);
    this.#left(this);
    this.#wake();
  }

  async next(): Promise<IteratorResult<Look, undefined>> {
    if (this.#newest === null && !this.#hasEnded)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    const look = this.#newest;
    this.#newest = null;
    return look === null || this.#hasEnded ? { done: true, value: undefined } : { done: false, value: look };
  }

  async return(): Promise<IteratorResult<Look, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
