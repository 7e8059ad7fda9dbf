/** What has ended, the oldest by its creation first, whichever ended first. */
import { Heap } from "../heap.ts";

/** Something that is created once, and ends: perhaps several times, for it can be taken up again. */
export interface Ending {
  /** Epoch ms. */
  readonly createdAt: number;
  /** Decides between those of one time: the lower is the older. */
  readonly place: number;
  hasEnded: boolean;
  /** Kept by the queue. */
  isQueued: boolean;
}

/**
 * What is taken up again stays in the heap until it comes to the front: its place there would be the same when it ends anew, so
 * each is in it once.
 */
export class EndedQueue<T extends Ending> {
  readonly #heap = new Heap<T>((a, b) => (a.createdAt === b.createdAt ? a.place < b.place : a.createdAt < b.createdAt));
  #size = 0;

  /** How many have ended. */
  get size(): number {
    return this.#size;
  }

  /** Tells whether one has ended now; one that is removed counts as not ended. */
  set(item: T, hasEnded: boolean): void {
    if (item.hasEnded === hasEnded) return;
    item.hasEnded = hasEnded;
    this.#size += hasEnded ? 1 : -1;
    if (!hasEnded) return this.#clean();
    if (item.isQueued) return;
    item.isQueued = true;
    this.#heap.push(item);
  }

  oldest(): T | undefined {
    return this.#heap.peek();
  }

  /** What is in front has ended; so nothing that was removed is held on to for long. */
  #clean(): void {
    for (let first = this.#heap.peek(); first?.hasEnded === false; first = this.#heap.peek()) {
      first.isQueued = false;
      this.#heap.pop();
    }
  }
}
