/** The one place that reads the time, sets a timer or draws a number, so that tests can pass a clock of their own. */
import { randomFillSync } from "node:crypto";

/** An opaque timer, as given by `Clock.setTimeout`. */
export interface Timer {
  /** Stops the timer; harmless when it already fired. */
  cancel(): void;
  /** Keeps the process alive while the timer runs. Use it when something awaits the timer. */
  keepAlive(): void;
}

/** Time as oncehook sees it. Waits use the monotonic clock; stored times use the wall clock. */
export interface Clock {
  /** Wall-clock time, epoch milliseconds. It may jump. */
  now(): number;
  /** Milliseconds that only ever grow, from an arbitrary start. */
  monotonic(): number;
  /** Calls `callback` once after `ms` milliseconds. The timer does not keep the process alive unless `keepAlive()` is called. */
  setTimeout(callback: () => void, ms: number): Timer;
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The real clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout(callback, ms) {
    const handle = setTimeout(callback, Math.min(Math.max(0, ms), LONGEST_TIMER_MS));
    handle.unref();
    return { cancel: () => clearTimeout(handle), keepAlive: () => void handle.ref() };
  },
};

/** Settles as `work` does, and resolves after `ms` at the latest. Keeps the process alive until then. */
export async function atMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([work, sleep(clock, ms, over.signal)]);
  } finally {
    over.abort();
  }
}

/** A number in [0, 1), as `Math.random` gives. */
export type Random = () => number;

export const systemRandom: Random = Math.random;

const TOKEN_BYTES = 6;
const tokens = Buffer.alloc(256 * TOKEN_BYTES);
let nextToken = tokens.length;

/** A random number that is never given twice, as good as: 0 to 2^48 - 1. Many are drawn at once, because one costs as much as a hundred. */
export function randomToken(): number {
  if (nextToken === tokens.length) {
    randomFillSync(tokens);
    nextToken = 0;
  }
  const token = tokens.readUIntBE(nextToken, TOKEN_BYTES);
  nextToken += TOKEN_BYTES;
  return token;
}

/** Resolves after `ms`, or as soon as `signal` aborts. Keeps the process alive until then, because the caller awaits it. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const wake = () => {
      timer.cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = clock.setTimeout(wake, ms);
    timer.keepAlive();
    signal?.addEventListener("abort", wake);
  });
}

/**
 * The smallest step that counts. A smaller one only delays work by its own length, and readings that were taken at the same time can
 * be reported in another order.
 */
const SMALLEST_STEP_MS = 1000;

/** Whether the wall clock was set back. @param latest - the latest time that is known to have been written */
export function wentBack(now: number, latest: number): boolean {
  return now < latest - SMALLEST_STEP_MS;
}
