/** The worker's own pause: when every handler fails, events should wait instead of running through their attempts. */
const WINDOW = 20;

export class Breaker {
  #failures = 0;
  #open = false;

  /** Handlers have failed `WINDOW` times in a row: only probes run. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** Answers "closed" when this success ends the pause. */
  succeeded(): "closed" | null {
    this.#failures = 0;
    if (!this.#open) return null;
    this.#open = false;
    return "closed";
  }

  /** Answers "opened" when this failure begins the pause. A `PermanentError` is no failure: it says that the handler works. */
  failed(): "opened" | null {
    this.#failures += 1;
    if (this.#open || this.#failures < WINDOW) return null;
    this.#open = true;
    return "opened";
  }
}
