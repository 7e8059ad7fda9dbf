/** Deliveries that wait for a turn, and when so many wait that a turn of their own should not wait for more. */
import { type QueuedAccept, takeUpTo } from "./batching.ts";
import type { NewEvent } from "./record.ts";

/**
 * So many of a quick kind are a turn: fewer would cost more for each, and were there more, this process would rest while the store works on
 * all of them, and the store while the next are read.
 */
export const QUICK_TURN = 32;

export interface AcceptLimits {
  /** In one turn at most. */
  readonly maxEvents: number;
  /** Bytes of bodies in one turn at most. */
  readonly maxBytes: number;
}

export class AcceptQueue {
  readonly #items: QueuedAccept[] = [];
  readonly #limits: AcceptLimits;
  readonly #isQuick: (event: NewEvent) => boolean;
  #areAllQuick = true;

  constructor(limits: AcceptLimits, isQuick: (event: NewEvent) => boolean) {
    this.#limits = limits;
    this.#isQuick = isQuick;
  }

  get length(): number {
    return this.#items.length;
  }

  /** They are a turn already, whatever else is on its way. */
  get isQuickTurn(): boolean {
    return this.#areAllQuick && this.#items.length >= QUICK_TURN;
  }

  push(item: QueuedAccept): void {
    // Asked first: a store that throws here has taken nothing.
    this.#areAllQuick &&= this.#isQuick(item.event);
    this.#items.push(item);
  }

  /** What fits into one turn, oldest first. */
  take(): QueuedAccept[] {
    const { maxEvents, maxBytes } = this.#limits;
    return this.#left(takeUpTo(this.#items, maxEvents, maxBytes, ({ event }) => event.raw.byteLength));
  }

  takeAll(): QueuedAccept[] {
    return this.#left(this.#items.splice(0));
  }

  #left(taken: QueuedAccept[]): QueuedAccept[] {
    if (this.#items.length === 0) this.#areAllQuick = true;
    return taken;
  }
}
