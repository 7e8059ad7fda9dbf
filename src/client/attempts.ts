/** The requests of one call: made, told to the hooks, and made again as the rules of retry.ts say. */
import { type Clock, sleep } from "../internal/clock.ts";
import type { Refusal } from "./errors.ts";
import type { Hooks } from "./hooks.ts";
import type { RequestNotice } from "./options.ts";
import { type Failure, isRefusedForNow, type RetryRules, retryDelay } from "./retry.ts";
import { type Answer, exchange, type NoAnswer, type Wire } from "./transport.ts";

/** One call, whichever route it is for. */
export interface Plan {
  readonly operation: string;
  readonly method: string;
  /** The route as the specification writes it. */
  readonly route: string;
  readonly url: string;
  /** Written once: each attempt sends the same bytes (SND-22). */
  readonly body: string | undefined;
  readonly idempotencyKey: string | null;
  /** A repetition does no more than the first request did. */
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal | undefined;
  /** The next attempt's headers, given how many attempts were made. What it throws ends the call. */
  headers(made: number): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  refusal(answer: Answer): Refusal;
  isTransient(refusal: Refusal): boolean;
  /**
   * After each refusal: whether it was of the headers, which are not used again then. The next attempt is made at once, not
   * counted as a retry, and at most once.
   */
  renews?(refusal: Refusal): boolean;
}

/** Where a call ends. */
export type Ending = (Answer | Failure) & {
  /** Requests that were made. */
  readonly attempts: number;
  /** Those of them that were made because an earlier one failed in a way that leaves open what was done. */
  readonly retries: number;
};

export interface Ground extends Wire {
  readonly clock: Clock;
  readonly hooks: Hooks;
  readonly rules: RetryRules;
}

/** Makes a call's requests until one succeeds or the rules say to give up. */
export async function attempt(plan: Plan, ground: Ground): Promise<Ending> {
  const { signal } = plan;
  let waits = 0;
  let retries = 0;
  let isRenewed = false;
  for (let attempts = 0; ; ) {
    if (signal?.aborted) return { ...aborted(signal), attempts, retries };
    const next = plan.headers(attempts);
    const headers = next instanceof Promise ? await next : next;
    // A signal may abort while the token was waited for.
    if (signal?.aborted) return { ...aborted(signal), attempts, retries };
    attempts += 1;
    const outcome = await request(plan, ground, { headers, attempts });
    if (outcome.kind === "answer") return { ...outcome, attempts, retries };
    const isOfHeaders = outcome.kind === "refused" && plan.renews?.(outcome.refusal) === true;
    if (isOfHeaders && !isRenewed) {
      isRenewed = true;
      ground.hooks.onRetry?.({ ...noticeOf(plan, attempts), delayMs: 0, reason: reasonOf(outcome) });
      continue;
    }
    const delayMs = plan.isRepeatable ? retryDelay(outcome, waits, ground.rules) : null;
    if (delayMs === null) return { ...outcome, attempts, retries };
    waits += 1;
    if (!isRefusedForNow(outcome)) retries += 1;
    ground.hooks.onRetry?.({ ...noticeOf(plan, attempts), delayMs, reason: reasonOf(outcome) });
    await sleep(ground.clock, delayMs, signal);
  }
}

interface Turn {
  readonly headers: Readonly<Record<string, string>>;
  readonly attempts: number;
}

async function request(plan: Plan, ground: Ground, { headers, attempts }: Turn): Promise<Answer | Failure> {
  const { onRequest, onResponse } = ground.hooks;
  const { url, method, body } = plan;
  onRequest?.(noticeOf(plan, attempts));
  const startedAt = onResponse === undefined ? 0 : ground.clock.monotonic();
  const outcome = await exchange(ground, { url, method, headers, body }, plan.signal);
  if (outcome.kind === "none") return outcome;
  const { status } = outcome;
  const refusal = status >= 200 && status < 300 ? null : plan.refusal(outcome);
  onResponse?.({
    ...noticeOf(plan, attempts),
    status,
    durationMs: ground.clock.monotonic() - startedAt,
    requestId: refusal?.requestId ?? null,
  });
  return refusal === null ? outcome : { kind: "refused", refusal, isTransient: plan.isTransient(refusal) };
}

function aborted(signal: AbortSignal): NoAnswer {
  return { kind: "none", reason: "aborted", cause: signal.reason };
}

function noticeOf({ operation, method, route, idempotencyKey }: Plan, attempt: number): RequestNotice {
  return { operation, method, route, attempt, idempotencyKey };
}

function reasonOf(failure: Failure): string {
  if (failure.kind === "refused") return failure.refusal.code ?? "api_error";
  return failure.reason === "timeout" ? "request_timeout" : "connection_failed";
}
