/** Makes the typed error of a failed call. */
import {
  AbortedError,
  type ApiError,
  type CallFacts,
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  OAuthError,
  type Refusal,
  ServerError,
  type ServiceError,
  TimeoutError,
  UnauthorizedError,
  UnknownApiError,
  UpstreamError,
} from "./errors.ts";
import { kindOf, type RefusalKind } from "./refusal.ts";
import type { Failure } from "./retry.ts";
import type { NoAnswer } from "./transport.ts";

const CLASSES = {
  invalid_request: InvalidRequestError,
  unauthorized: UnauthorizedError,
  forbidden: ForbiddenError,
  not_found: NotFoundError,
  conflict: ConflictError,
  server: ServerError,
  upstream: UpstreamError,
  unknown: UnknownApiError,
} as const satisfies Record<RefusalKind, typeof ApiError>;

const REDIRECTED = " The service does not redirect: check baseUrl, its scheme and its path.";
const NO_DEFAULTS =
  " This service does not expose the account-level defaults of webhooks; targets can be set per number, with numbers.update.";
const NEW_KEY = " Its idempotency key was used for another request; a changed request needs a new key.";
const BAD_CREDENTIALS = " The credentials are wrong, or the client or its account is inactive; it is not retried.";

/** The error of a call to a core route. */
export function coreError(failure: Failure, facts: CallFacts, timeoutMs: number): ServiceError {
  if (failure.kind === "none") return noAnswerError(failure, facts, timeoutMs);
  const { refusal } = failure;
  const kind = kindOf(refusal.code, refusal.status);
  return new CLASSES[kind](refusal, facts, coreAdvice(refusal, kind, facts.operation));
}

/** The error of a call that got no token. */
export function tokenError(failure: Failure, facts: CallFacts, timeoutMs: number): ServiceError {
  if (failure.kind === "none") return noAnswerError(failure, facts, timeoutMs);
  const { refusal } = failure;
  if (isRedirect(refusal)) return new OAuthError(refusal, facts, REDIRECTED);
  return new OAuthError(refusal, facts, refusal.code === "invalid_client" ? BAD_CREDENTIALS : "");
}

/** The error of a call that no complete answer came to. */
function noAnswerError({ reason, cause }: NoAnswer, facts: CallFacts, timeoutMs: number): ServiceError {
  const made = `${facts.attempts} ${facts.attempts === 1 ? "attempt" : "attempts"}`;
  switch (reason) {
    case "aborted":
      return new AbortedError(facts, cause);
    case "timeout":
      return new TimeoutError(`${facts.operation} got no answer within ${timeoutMs} ms, in ${made}.`, facts);
    case "connection":
      return new ConnectionError(`${facts.operation} got no complete answer, in ${made}.`, facts, { cause });
    default:
      return reason satisfies never;
  }
}

function coreAdvice(refusal: Refusal, kind: RefusalKind, operation: string): string {
  if (isRedirect(refusal)) return REDIRECTED;
  if (kind === "not_found" && operation.startsWith("webhooks.")) return NO_DEFAULTS;
  return kind === "conflict" && operation === "messages.send" ? NEW_KEY : "";
}

/** Status 0 is how the fetch of a browser shows a redirect that it did not follow. */
function isRedirect({ status }: Refusal): boolean {
  return status === 0 || (status >= 300 && status < 400);
}
