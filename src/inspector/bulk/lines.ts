/** The answer to a bulk order as it is sent: the newest progress when the reader is ready for it, then the end. */
import type { Clock } from "../../internal/clock.ts";
import type { BulkLine } from "../api.ts";
import { HEARTBEAT_MS } from "../stream.ts";

type Progress = Extract<BulkLine, { kind: "progress" }>;
type End = Exclude<BulkLine, Progress>;

export class BulkLines implements AsyncIterableIterator<string> {
  readonly #clock: Clock;
  readonly #left: () => void;
  #progress: Progress | null = null;
  #end: End | null = null;
  #isOver = false;
  #wake: () => void = () => {};

  /** @param left - called when the reader is gone */
  constructor(clock: Clock, left: () => void) {
    this.#clock = clock;
    this.#left = left;
  }

  /** Takes the place of a progress that nobody has read yet. */
  progress(progress: Omit<Progress, "kind">): void {
    this.#progress = { kind: "progress", ...progress };
    this.#wake();
  }

  end(end: End): void {
    this.#end = end;
    this.#wake();
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    while (!this.#isOver) {
      const line = this.#take();
      if (line !== null) return { done: false, value: `${JSON.stringify(line)}\n` };
      if (!(await this.#wakesInTime())) return { done: false, value: "\n" };
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string, undefined>> {
    this.#isOver = true;
    this.#left();
    this.#wake();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #wakesInTime(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(() => resolve(false), HEARTBEAT_MS);
      this.#wake = () => {
        timer.cancel();
        resolve(true);
      };
    });
  }

  #take(): BulkLine | null {
    const line = this.#progress ?? this.#end;
    if (this.#progress === null && this.#end !== null) this.#isOver = true;
    this.#progress = null;
    return line;
  }
}
