/** The worker's own pause: when every handler fails, events should wait instead of running through their attempts. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { LaneId } from "./record.ts";
import type { Verdict } from "./runner.ts";
import type { SettleResult } from "./store.ts";

/** While the worker has paused itself, one event is tried this often. */
export const PROBE_MS = 5_000;

/** Failures in a row, each of another lane: one poisonous message alone stops nobody. */
const WINDOW = 20;

/** What a verdict changed. */
export type BreakerChange = "opened" | "closed" | "probe_again" | null;

export class Breaker {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #failing = new Set<LaneId>();
  /**
   * Handlers that returned and whose effects are not committed yet. Each may still prove that not every handler fails, so as many
   * more lanes must; to wait until there are none would be for ever under load.
   */
  #undecided = 0;
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

  /**
   * The handlers of an event ended. Told before their end is committed, so that of what was claimed ahead no more fails than
   * must. A `PermanentError` is no failure: it says that the handler works.
   */
  ended<Tx>(lane: LaneId, verdict: Verdict<Tx>): BreakerChange {
    if (verdict.kind === "failed" && verdict.permanent) return this.#open ? this.#succeeded() : null;
    if (verdict.kind === "failed") return this.#failed(lane);
    if (verdict.outcome !== "handled") return null;
    if (verdict.effects.length === 0) return this.#succeeded();
    this.#undecided++;
    return null;
  }

  /**
   * What `ended` was told is committed, or has failed: an effect that threw is told to `ended` as a failure of its own. A
   * probe of an event that no handler takes says nothing, so that the next one need not wait.
   */
  committed<Tx>(verdict: Verdict<Tx>, status: SettleResult["status"]): BreakerChange {
    if (verdict.kind === "failed") return null;
    if (verdict.outcome !== "handled") return this.#probeAgain();
    if (verdict.effects.length === 0) return null;
    this.#undecided--;
    return status === "settled" ? this.#succeeded() : null;
  }

  #probeAgain(): BreakerChange {
    if (!this.#open) return null;
    this.#nextProbeAt = this.#clock.monotonic();
    return "probe_again";
  }

  #succeeded(): BreakerChange {
    this.#failing.clear();
    if (!this.#open) return null;
    this.#open = false;
    this.#logger.info({ code: "worker_resumed" }, "A probe succeeded: the worker goes on.");
    return "closed";
  }

  #failed(lane: LaneId): BreakerChange {
    if (this.#open) return null;
    this.#failing.add(lane);
    if (this.#failing.size < WINDOW + this.#undecided) return null;
    this.#open = true;
    this.#nextProbeAt = this.#clock.monotonic() + PROBE_MS;
    this.#logger.error(
      { code: "worker_paused", probeMs: PROBE_MS },
      "Every handler failed: the worker paused itself and probes.",
    );
    return "opened";
  }

  /** True when a probe may be claimed now; it is then counted as taken. */
  takeProbe(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#nextProbeAt) return false;
    this.#nextProbeAt = now + PROBE_MS;
    return true;
  }
}
