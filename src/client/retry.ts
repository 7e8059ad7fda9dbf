/** Whether a failed request is made again, and when: no waiting here, only the rules (CLI-5, CLI-6, SND-22, SND-23). */
import type { Random } from "../internal/clock.ts";
import type { Refusal } from "./errors.ts";
import { isRateLimit } from "./meaning.ts";
import type { Backoff } from "./options.ts";
import type { NoAnswer } from "./transport.ts";

/** What a request ended in, if not in a success. */
export type Failure = Refused | NoAnswer;

interface Refused {
  readonly kind: "refused";
  readonly refusal: Refusal;
  /** It may pass by itself, as meaning.ts says. */
  readonly isTransient: boolean;
}

export interface RetryRules {
  readonly maxRetries: number;
  /** Also a refusal that asks to come back later. */
  readonly retryRateLimited: boolean;
  readonly backoff: Backoff;
  readonly random: Random;
}

/** A service that asks for a longer wait gets no retry: the caller decides what to do until then. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** Milliseconds to wait before the next attempt, or null: give up. */
export function retryDelay(failure: Failure, retriesMade: number, rules: RetryRules): number | null {
  if (retriesMade >= rules.maxRetries) return null;
  if (!isTransient(failure) && !(rules.retryRateLimited && isRefusedForNow(failure))) return null;
  const asked = failure.kind === "refused" ? failure.refusal.retryAfterMs : null;
  if (asked !== null && asked > LONGEST_RETRY_AFTER_MS) return null;
  return Math.max(asked ?? 0, jitter(retriesMade, rules));
}

/** Refused for its time only: certainly nothing was done. */
export function isRefusedForNow(failure: Failure): boolean {
  return failure.kind === "refused" && isRateLimit(failure.refusal);
}

export function isTransient(failure: Failure): boolean {
  if (failure.kind === "refused") return failure.isTransient;
  return failure.reason === "connection" || failure.reason === "timeout";
}

/** Full jitter: callers that failed together do not come back together. */
function jitter(retriesMade: number, { backoff, random }: RetryRules): number {
  return Math.round(random() * Math.min(backoff.maxMs, backoff.baseMs * 2 ** retriesMade));
}
