/** The worker's own pause: when every handler fails, events should wait instead of running through their attempts. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { LaneId } from "./record.ts";

/** While the worker has paused itself, one event is tried this often. */
export const PROBE_MS = 5_000;

/** Failures in a row, each of another lane: one poisonous message alone stops nobody. */
const WINDOW = 20;

export class Breaker {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #failing = new Set<LaneId>();
  #open = false;
  #nextProbeAt = 0;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The last 20 lanes failed one after the other: only probes run. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** Answers true when this success ends the pause. */
  succeeded(): boolean {
    this.#failing.clear();
    if (!this.#open) return false;
    this.#open = false;
    this.#logger.info({ code: "worker_resumed" }, "A probe succeeded: the worker goes on.");
    return true;
  }

  /** Answers true when this failure begins the pause. A `PermanentError` is no failure: it says that the handler works. */
  failed(lane: LaneId): boolean {
    if (this.#open) return false;
    this.#failing.add(lane);
    if (this.#failing.size < WINDOW) return false;
    this.#open = true;
    this.#nextProbeAt = this.#clock.monotonic() + PROBE_MS;
    this.#logger.error(
      { code: "worker_paused", probeMs: PROBE_MS },
      "Every handler failed: the worker paused itself and probes.",
    );
    return true;
  }

  /** True when a probe may be claimed now; it is then counted as taken. */
  takeProbe(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#nextProbeAt) return false;
    this.#nextProbeAt = now + PROBE_MS;
    return true;
  }
}
