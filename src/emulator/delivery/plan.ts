/** What an attempt makes of its delivery: delivered, due again, or failed for good (DLV-6, DLV-7). */
import type { Attempt, Delivery } from "../state/records.ts";
import type { Readings } from "../unspecified.ts";
import { withAttempt } from "./attempt-history.ts";

/** From a failed attempt to the retry after it. */
const RETRY_DELAYS_MS = [60_000, 300_000, 900_000, 3_600_000] as const;

/** The least time from an attempt to anything it brings about. */
export const SOONEST_RETRY_MS = Math.min(...RETRY_DELAYS_MS);

/** What an attempt's `error` says when there was no target (DLV-2). */
export const NO_TARGET = "NO_TARGET";
const ENDED_WITHOUT_TARGET = { state: "no_target", nextAttemptAt: null } as const;

/**
 * The delivery after an attempt. Only scheduled attempts move its plan; any successful one ends it, and one that found no target
 * does so without having been made (DLV-2).
 */
export function afterAttempt(
  delivery: Delivery,
  attempt: Attempt,
  { retryFrom }: Pick<Readings, "retryFrom">,
): Delivery {
  if (attempt.error === NO_TARGET) {
    return {
      ...delivery,
      ...withAttempt(delivery, attempt),
      ...(attempt.trigger === "schedule" ? ENDED_WITHOUT_TARGET : {}),
    };
  }
  const scheduledAttempts = delivery.scheduledAttempts + (attempt.trigger === "schedule" ? 1 : 0);
  const counted = { ...delivery, ...withAttempt(delivery, attempt), scheduledAttempts };
  if (succeeded(attempt)) return { ...counted, state: "delivered", nextAttemptAt: null };
  if (attempt.trigger !== "schedule") return counted;
  const nextAttemptAt = retryAt(counted, retryFrom);
  return { ...counted, state: nextAttemptAt === null ? "failed" : "pending", nextAttemptAt };
}

/** A 2xx answer; anything else, a redirect, a time-out or a reset too, is a failure (DLV-7, DLV-19). */
function succeeded({ status }: Pick<Attempt, "status">): boolean {
  return status !== null && status >= 200 && status <= 299;
}

/** After a failed scheduled attempt, the newest one; null after the last retry. */
function retryAt({ attempts, scheduledAttempts }: Delivery, retryFrom: Readings["retryFrom"]): number | null {
  const origin = retryFrom === "first" ? attempts.find(({ trigger }) => trigger === "schedule") : attempts.at(-1);
  const delayMs = RETRY_DELAYS_MS[scheduledAttempts - 1];
  return origin === undefined || delayMs === undefined ? null : origin.at + origin.durationMs + delayMs;
}
