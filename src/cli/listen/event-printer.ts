/** Prints what was handled, as fast as it is read and no faster. */
import type { Writable } from "node:stream";

export class EventPrinter {
  readonly #output: Writable;
  #failure: Error | null = null;
  /** Resolves with the error once nothing can be printed any more: nobody reads it, or there is no room for it. */
  readonly broken: Promise<Error>;

  constructor(output: Writable) {
    this.#output = output;
    this.broken = new Promise((resolve) => {
      output.once("error", (error) => {
        this.#failure = error;
        resolve(error);
      });
    });
  }

  /**
   * Prints a line that must be seen, and resolves when it has left the process: what only lies in its buffer is lost when it is killed,
   * so the handler waits. Rejects when nobody reads any more.
   */
  async result(line: string): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    const cause = await new Promise((resolve) => this.#output.write(`${line}\n`, resolve));
    if (cause) throw cause;
  }

  /** Prints a line, unless the reader is behind or gone: nothing waits for it. */
  remark(line: string): undefined {
    if (this.#failure === null && !this.#output.writableNeedDrain) this.#output.write(`${line}\n`);
  }
}
