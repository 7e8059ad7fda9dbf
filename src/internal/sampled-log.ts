/** Logs at most so many lines a second, and says how many it left out: a flood of bad requests must not become a flood of logs. */
import type { Clock } from "./clock.ts";
import type { LogFields, Logger } from "./logger.ts";

const LINES_PER_SECOND = 10;

export class SampledLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #windowStart = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #leftOut = 0;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  warn(fields: LogFields, message: string): void {
    this.#write("warn", fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.#write("error", fields, message);
  }

  #write(level: "warn" | "error", fields: LogFields, message: string): void {
    const now = this.#clock.monotonic();
    if (now - this.#windowStart >= 1000) {
      this.#windowStart = now;
      this.#lines = 0;
    }
    if (this.#lines >= LINES_PER_SECOND) {
      this.#leftOut += 1;
      return;
    }
    this.#lines += 1;
    this.#logger[level](this.#leftOut > 0 ? { ...fields, leftOut: this.#leftOut } : fields, message);
    this.#leftOut = 0;
  }
}
