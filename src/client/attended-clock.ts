/** A clock for work that nobody waits for yet: its timers keep the process only from the moment that somebody does. */
import type { Clock, Timer } from "../internal/clock.ts";

export class AttendedClock implements Clock {
  readonly #clock: Clock;
  /** Those that are to keep the process once somebody waits. */
  readonly #timers = new Set<Timer>();
  #isAttended = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  setTimeout(callback: () => void, ms: number): Timer {
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, ms);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.cancel();
      },
      keepAlive: () => {
        if (this.#isAttended) timer.keepAlive();
        else this.#timers.add(timer);
      },
    };
  }

  /** Somebody waits for the work from now on. */
  attend(): void {
    this.#isAttended = true;
    for (const timer of this.#timers) timer.keepAlive();
    this.#timers.clear();
  }
}
