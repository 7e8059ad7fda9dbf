/** The requests of one call: made, told to the hooks, and made again as the rules of retry.ts say. */
import { type Clock, type Random, sleep } from "../../internal/clock.ts";
import { errorPlaceOf } from "../../internal/foreign-error.ts";
import type { Logger } from "../../internal/logger.ts";
import { BAD_PORT, isBadPort } from "../../internal/network.ts";
import { type ApiAnswer, exchange, isRateLimit, maskedReason, meaningOf, type NoAnswer, type Wire } from "./answers.ts";
import {
  AbortedError,
  type CallFacts,
  ConflictError,
  ConnectionError,
  NotFoundError,
  OAuthError,
  type Refusal,
  type ServiceError,
  TimeoutError,
} from "./errors.ts";
import type { Backoff, ClientOptions, RequestNotice, ResponseNotice, RetryNotice } from "./options.ts";

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
  refusal(answer: ApiAnswer): Refusal;
  isTransient(refusal: Refusal): boolean;
  /**
   * After each refusal: whether it was of the headers, which are not used again then. The next attempt is made at once, not
   * counted as a retry, and at most once.
   */
  renews?(refusal: Refusal): boolean;
}

/** Where a call ends. */
type Ending = (ApiAnswer | Failure) & {
  /** Requests that were made. */
  readonly attempts: number;
  /** Those of them that were made because an earlier one failed in a way that leaves open what was done. */
  readonly retries: number;
};

export interface CallSettings extends Wire {
  readonly clock: Clock;
  readonly hooks: Hooks;
  readonly rules: RetryRules;
}

/** Makes a call's requests until one succeeds or the rules say to give up. */
export async function attempt(plan: Plan, ground: CallSettings): Promise<Ending> {
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

async function request(plan: Plan, ground: CallSettings, { headers, attempts }: Turn): Promise<ApiAnswer | Failure> {
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

// Whether a failed request is made again, and when: no waiting here, only the rules (CLI-5, CLI-6, SND-22, SND-23).

/** What a request ended in, if not in a success. */
type Failure = Refused | NoAnswer;

interface Refused {
  readonly kind: "refused";
  readonly refusal: Refusal;
  /** It may pass by itself, as answers.ts decides. */
  readonly isTransient: boolean;
}

interface RetryRules {
  readonly maxRetries: number;
  /** Also a refusal that asks to come back later. */
  readonly retryRateLimited: boolean;
  readonly backoff: Backoff;
  readonly random: Random;
}

/** A service that asks for a longer wait gets no retry: the caller decides what to do until then. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** Milliseconds to wait before the next attempt, or null: give up. */
function retryDelay(failure: Failure, retriesMade: number, rules: RetryRules): number | null {
  if (retriesMade >= rules.maxRetries) return null;
  if (!isTransient(failure) && !(rules.retryRateLimited && isRefusedForNow(failure))) return null;
  const asked = failure.kind === "refused" ? failure.refusal.retryAfterMs : null;
  if (asked !== null && asked > LONGEST_RETRY_AFTER_MS) return null;
  return Math.max(asked ?? 0, jitter(retriesMade, rules));
}

/** Refused for its time only: certainly nothing was done. */
function isRefusedForNow(failure: Failure): boolean {
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

// Calls the user's hooks, and keeps what goes wrong in them away from the call.

interface Hooks {
  readonly onRequest: ((notice: RequestNotice) => void) | undefined;
  readonly onResponse: ((notice: ResponseNotice) => void) | undefined;
  readonly onRetry: ((notice: RetryNotice) => void) | undefined;
}

/** The hooks, guarded; one that was not given stays undefined, so that no notice is made for it. */
export function guardedHooks(
  hooks: Pick<ClientOptions, "onRequest" | "onResponse" | "onRetry">,
  logger: Logger,
): Hooks {
  return {
    onRequest: guarded("onRequest", hooks.onRequest, logger),
    onResponse: guarded("onResponse", hooks.onResponse, logger),
    onRetry: guarded("onRetry", hooks.onRetry, logger),
  };
}

function guarded<Notice extends RequestNotice>(
  name: string,
  hook: ((notice: Notice) => unknown) | undefined,
  logger: Logger,
): ((notice: Notice) => void) | undefined {
  if (hook === undefined) return undefined;
  return (notice) => {
    const dropped = (error: unknown) => {
      const kind = error instanceof Error ? error.name : typeof error;
      const fields = { hook: name, operation: notice.operation, error: kind, ...errorPlaceOf(error) };
      logger.error(fields, "A hook of the client threw.");
    };
    try {
      // A hook may be async though its type says nothing of it.
      const result = hook(notice);
      if (result instanceof Promise) result.catch(dropped);
    } catch (error) {
      dropped(error);
    }
  };
}

// Makes the typed error of a failed call.

/** Where a call ends that does not succeed. */
type FailedEnding = Exclude<Ending, { readonly kind: "answer" }>;

const REDIRECTED = " The service does not redirect: check baseUrl, its scheme and its path.";
const NO_TOKEN_ROUTE = " The service has no such route: check baseUrl, its host and its path.";
const NO_DEFAULTS =
  " This service does not expose the account-level defaults of webhooks; targets can be set per number, with numbers.update.";
const NEW_KEY =
  " Its idempotency key was used for another request, or for this one, which is running still: a changed request needs a new key," +
  " the same request its own.";
/** The attempt before may be running still (SND-31), or its answer was lost; a new key would send twice then. */
const SAME_KEY =
  " An earlier attempt may have been accepted or be running still: repeat the same request with the same key later.";
const BAD_CREDENTIALS = " The credentials are wrong, or the client or its account is inactive; it is not retried.";

/** What an error needs to know of its call. */
interface Asked {
  readonly timeoutMs: number;
  /** Texts of the request, which no message may repeat. */
  sent(): readonly string[];
}

/** The error of a call to a core route. */
export function coreError(ending: FailedEnding, facts: CallFacts, { timeoutMs, sent }: Asked): ServiceError {
  if (ending.kind === "none") {
    return noAnswerError(ending, facts, { subject: facts.operation, verb: "got", attempts: facts.attempts, timeoutMs });
  }
  const { refusal, retries } = ending;
  const { error: Kind } = meaningOf(refusal);
  const advice = isRedirect(refusal) ? REDIRECTED : coreAdvice(Kind, facts.operation, retries);
  return new Kind(refusal, facts, `${maskedReason(refusal.message, sent())}.${advice}`);
}

/** The error of a call that got no token; the facts are the call's own. */
export function tokenError(ending: FailedEnding, facts: CallFacts, { timeoutMs, sent }: Asked): ServiceError {
  if (ending.kind === "none") {
    const { attempts } = ending;
    return noAnswerError(ending, facts, { subject: "The token route", verb: "gave", attempts, timeoutMs });
  }
  const { refusal } = ending;
  return new OAuthError(refusal, facts, `${maskedReason(refusal.message, sent())}.${tokenAdvice(refusal)}`);
}

interface Telling {
  readonly subject: string;
  readonly verb: string;
  /** Of the route that did not answer. */
  readonly attempts: number;
  readonly timeoutMs: number;
}

/** The error of a call that no complete answer came to. */
function noAnswerError({ reason, cause }: NoAnswer, facts: CallFacts, telling: Telling): ServiceError {
  const { subject, verb, attempts, timeoutMs } = telling;
  const made = `in ${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
  switch (reason) {
    case "aborted":
      return new AbortedError(facts, cause);
    case "timeout":
      return new TimeoutError(`${subject} ${verb} no answer within ${timeoutMs} ms, ${made}.`, facts);
    case "connection": {
      const why = isBadPort(cause) ? `: ${BAD_PORT}` : "";
      return new ConnectionError(`${subject} ${verb} no complete answer, ${made}${why}.`, facts, { cause });
    }
    case "too_large":
      return new ConnectionError(`${subject} was answered with more than 32 MiB, which is not read.`, facts);
    default:
      return reason satisfies never;
  }
}

function coreAdvice(error: unknown, operation: string, retries: number): string {
  if (error === NotFoundError && operation.startsWith("webhooks.")) return NO_DEFAULTS;
  if (error !== ConflictError || operation !== "messages.send") return "";
  return retries > 0 ? SAME_KEY : NEW_KEY;
}

function tokenAdvice(refusal: Refusal): string {
  if (isRedirect(refusal)) return REDIRECTED;
  if (refusal.code === "invalid_client") return BAD_CREDENTIALS;
  return refusal.status === 404 ? NO_TOKEN_ROUTE : "";
}

/** Status 0 is how the fetch of a browser shows a redirect that it did not follow. */
function isRedirect({ status }: Refusal): boolean {
  return status === 0 || (status >= 300 && status < 400);
}
