/** How many transactions of a kind run at once, and which row of the instance's counters each of them adds to. */
import { CONNECTIONS } from "./driver.ts";
import { SHARED } from "./tally.ts";

/** Completions with effects, so that their commits share the server's syncs. */
const MOST = 8;
/** A turn, and the one that the core may run beside it. */
const OF_TURNS = [SHARED, MOST + 1];
/** Connections of the pool that are left to a turn and to listening, or effects that hang would hold up deliveries. */
const LEFT = 2;

export class Slots {
  readonly #free: number[];
  readonly #waiting: ((slot: number | null) => void)[] = [];
  #isClosed = false;

  private constructor(rows: readonly number[]) {
    this.#free = [...rows];
  }

  static ofTurns(): Slots {
    return new Slots(OF_TURNS);
  }

  /** @param connections - of the pool; a small one runs effects in turn */
  static ofCompletions(connections = CONNECTIONS): Slots {
    const count = Math.min(Math.max(1, connections - LEFT), MOST);
    return new Slots(Array.from({ length: count }, (_, index) => 1 + index));
  }

  /** Runs `work` once a slot is free; who asked first is first. Null when they were closed before. */
  async use<T>(work: (slot: number) => Promise<T>): Promise<T | null> {
    if (this.#isClosed) return null;
    const slot = this.#free.pop() ?? (await new Promise<number | null>((resolve) => this.#waiting.push(resolve)));
    if (slot === null) return null;
    try {
      return await work(slot);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(slot);
      else next(slot);
    }
  }

  /** What runs goes on; nothing new begins. */
  close(): void {
    this.#isClosed = true;
    for (const refuse of this.#waiting.splice(0)) refuse(null);
  }
}
