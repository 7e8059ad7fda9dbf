/** Realistic patterns of deliveries: whole lifecycles, out of order, repeated, and retried on the service's schedule. */

import type { Random } from "../../internal/clock.ts";
import type { Answer } from "../../receiver/incoming.ts";
import type { Receiver } from "../../receiver/receiver.ts";
import type { KnownEvent } from "../../sources/messaging/types.ts";
import { incomingOf, type SignedRequestOptions, signedRequest } from "./deliver.ts";
import type { FakeClock } from "./fake-clock.ts";
import { type FixtureOptions, fixtures } from "./fixtures.ts";

/** Minutes between the service's attempts; after the fifth it gives up (DLV-6). */
export const RETRY_MINUTES = [1, 5, 15, 60] as const;

/** The events of one message in their order: queued, sent, and delivery or failed. */
export function lifecycle(options: FixtureOptions & { readonly ending?: "delivery" | "failed" } = {}): KnownEvent[] {
  const { ending = "delivery", ...rest } = options;
  return [
    fixtures.queued(rest),
    fixtures.sent(rest),
    ending === "failed" ? fixtures.failed({ ...rest, sequence: 3 }) : fixtures.delivery(rest),
  ];
}

/** The same items in an order that `random` decides. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}

/** Every item twice, each copy somewhere after its original. */
export function duplicated<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (const item of items) {
    const first = result.indexOf(item);
    result.splice(first + 1 + Math.floor(random() * (result.length - first)), 0, item);
  }
  return result;
}

/** A repeatable source of numbers in [0, 1): the same seed gives the same run (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** One of the attempts at a delivery. */
export interface RetriedAttempt {
  /** Minutes since the first attempt. */
  readonly minute: number;
  readonly answer: Answer;
}

export interface RetryOptions extends Omit<SignedRequestOptions, "timestamp"> {
  /** `"fresh"` (default): each attempt is signed again. `"frozen"`: all carry the first attempt's timestamp (DLV-17). */
  readonly signature?: "fresh" | "frozen";
}

/**
 * Delivers as the service does, on a fake clock that the receiver shares: at once, and after 1, 5, 15 and 60 minutes, until
 * the answer is 2xx (DLV-6, DLV-7).
 */
export async function deliverWithRetries<Tx>(
  receiver: Receiver<Tx>,
  content: object,
  clock: FakeClock,
  options: RetryOptions = {},
): Promise<RetriedAttempt[]> {
  const { signature = "fresh", ...signing } = options;
  const firstAt = clock.now();
  const attempts: RetriedAttempt[] = [];
  for (const waitMinutes of [0, ...RETRY_MINUTES]) {
    await clock.advance(waitMinutes * 60_000);
    const timestamp = signature === "frozen" ? firstAt : clock.now();
    const answer = await receiver.handle(incomingOf(signedRequest(content, { ...signing, timestamp })));
    attempts.push({ minute: (clock.now() - firstAt) / 60_000, answer });
    if (answer.status < 300) break;
  }
  return attempts;
}
