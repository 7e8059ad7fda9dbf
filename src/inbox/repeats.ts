/** Counts duplicates that need no answer of the store, so that a flood of them writes each row once a second at most. */
import type { Clock, Timer } from "../internal/clock.ts";
import type { EventId } from "./record.ts";
import type { Repeat } from "./store.ts";

const WRITE_EVERY_MS = 1_000;

export class Repeats {
  readonly #clock: Clock;
  readonly #write: () => void;
  readonly #counted = new Map<EventId, Repeat>();
  #timer: Timer | null = null;
  #due = false;

  /** `write` asks for a turn that takes what was counted. */
  constructor(clock: Clock, write: () => void) {
    this.#clock = clock;
    this.#write = write;
  }

  add({ event, count, signedAt }: Repeat): void {
    this.#timer ??= this.#clock.setTimeout(() => this.writeNow(), WRITE_EVERY_MS);
    const known = this.#counted.get(event) ?? { count: 0, signedAt: 0 };
    this.#counted.set(event, { event, count: known.count + count, signedAt: Math.max(known.signedAt, signedAt) });
  }

  writeNow(): void {
    if (this.#counted.size === 0) return;
    this.#due = true;
    this.#write();
  }

  /** What the turn that is made now should write: nothing before its time. */
  take(): readonly Repeat[] {
    if (!this.#due) return [];
    this.stop();
    const counted = [...this.#counted.values()];
    this.#counted.clear();
    return counted;
  }

  stop(): void {
    this.#due = false;
    this.#timer?.cancel();
    this.#timer = null;
  }
}
