/** Makes the typed error of a failed call. */
import { BAD_PORT, isBadPort } from "../internal/network.ts";
import type { Ending } from "./attempts.ts";
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
import { meaningOf } from "./meaning.ts";
import { maskedReason } from "./reason.ts";
import type { NoAnswer } from "./transport.ts";

/** Where a call ends that does not succeed. */
export type FailedEnding = Exclude<Ending, { readonly kind: "answer" }>;

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
export interface Asked {
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
