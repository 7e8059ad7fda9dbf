/** Small parts of the group commit: what waits for a turn, what fits into one, and callbacks that cannot spoil it. */
import { StoreError } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { NewEvent, NewQuarantine } from "./record.ts";
import type { Acceptance, QuarantineAnswer, Repeat, Settle, SettleResult, TurnResult } from "./store.ts";

/** Called once: with the result, or with the reason why nothing was stored. */
export type Callback<T> = (error: Error | null, result: T | null) => void;

export interface QueuedAccept {
  readonly event: NewEvent;
  readonly parsed: WebhookEvent;
  readonly done: Callback<Acceptance>;
}

export interface QueuedQuarantine {
  readonly quarantine: NewQuarantine;
  readonly done: Callback<QuarantineAnswer>;
}

export interface QueuedSettle<Tx> {
  readonly settle: Settle<Tx>;
  readonly done: (result: SettleResult) => void;
}

/** What goes into one turn. */
export interface Taken<Tx> {
  readonly accepts: readonly QueuedAccept[];
  readonly quarantines: readonly QueuedQuarantine[];
  readonly settles: readonly QueuedSettle<Tx>[];
  readonly repeats: readonly Repeat[];
}

export function answer(accepts: readonly QueuedAccept[], { accepted }: TurnResult): void {
  for (const [index, { done }] of accepts.entries()) guard(() => done(null, accepted[index] ?? null));
}

/** Their claims count as lost, since nothing is written any more. */
export function lose<Tx>(settles: readonly QueuedSettle<Tx>[]): void {
  for (const { done } of settles) guard(() => done({ status: "lost" }));
}

export function overloaded(): StoreError {
  return new StoreError("overloaded", "More deliveries wait for the inbox than it can store now; the service retries.");
}

export function closed(): StoreError {
  return new StoreError("closed", "The inbox was closed before the delivery was stored; the service retries.");
}

/** Takes from the front of `queue` up to `most` items of `mostBytes` together, at least one. */
export function takeUpTo<T>(queue: T[], most: number, mostBytes: number, bytesOf: (item: T) => number): T[] {
  let count = 0;
  let bytes = 0;
  for (const item of queue) {
    bytes += bytesOf(item);
    if (count === most || (bytes > mostBytes && count > 0)) break;
    count++;
  }
  return queue.splice(0, count);
}

/** What a callback throws, such as a logger of the application's, is not the turn's failure: it is thrown where nobody waits. */
export function guard(callback: () => void): void {
  try {
    callback();
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}
