/** Prints what was handled, as fast as it is read and no faster. */
import { once } from "node:events";
import type { Writable } from "node:stream";

export class EventPrinter {
  readonly #output: Writable;
  #failure: Error | null = null;
  #drained: Promise<void> | null = null;
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

  /** Prints a line that must be seen: while the reader is behind, the promise lets the handler wait. @throws (or rejects) when nobody reads any more */
  result(line: string): Promise<void> | undefined {
    if (this.#failure !== null) throw this.#failure;
    if (this.#output.write(`${line}\n`)) return undefined;
    this.#drained ??= this.#untilDrained();
    return this.#drained;
  }

  /** Prints a line, unless the reader is behind or gone: nothing waits for it. */
  remark(line: string): undefined {
    if (this.#failure === null && !this.#output.writableNeedDrain) this.#output.write(`${line}\n`);
  }

  async #untilDrained(): Promise<void> {
    try {
      await Promise.race([this.broken, once(this.#output, "drain")]);
    } finally {
      this.#drained = null;
    }
    if (this.#failure !== null) throw this.#failure;
  }
}
