/** What a call of the client can end in, a class for each thing a caller handles differently. */
import { OncehookError, type OncehookErrorCode, type ServiceErrorCode } from "../../errors.ts";
import { maskNumbers } from "../../internal/logger.ts";

/** Which call an error belongs to, and how far it got. */
export interface CallFacts {
  /**
   * As in `client.messages.send`: `messages.send`, also when it was the token route that failed. Of `client.request()`, the method
   * and the path without what identifies anything: `GET /api/core/calls/{id}`.
   */
  readonly operation: string;
  /** Requests that were made for the call itself, those for a token not counted; 0: certainly nothing was asked. */
  readonly attempts: number;
  /** Of a send: with the same key, the same request can be repeated without sending twice (SND-17). Otherwise null. */
  readonly idempotencyKey: string | null;
}

/**
 * Base class of every error of the client. Messages, `inspect` and JSON never show secrets, tokens, numbers or texts. The
 * service's own reason is in the message up to the first thing that may be one of these.
 */
export class ServiceError extends OncehookError implements CallFacts {
  readonly operation: string;
  readonly attempts: number;
  readonly idempotencyKey: string | null;

  constructor(code: OncehookErrorCode, message: string, facts: CallFacts, options: ErrorOptions = {}) {
    super(code, message, options);
    this.operation = facts.operation;
    this.attempts = facts.attempts;
    this.idempotencyKey = facts.idempotencyKey;
  }
}

/** An answer of the service that says no, as far as it could be read. */
export interface Refusal {
  /** HTTP status. */
  readonly status: number;
  /** The body's `error.code`; null when the body has none. */
  readonly code: string | null;
  /** The body's `error.message`: free text of the service. */
  readonly message: string;
  /** The body's `error.details`; `{}` when it has none (GEN-2). */
  readonly details: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;
  /** The `Retry-After` header in milliseconds, or null. */
  readonly retryAfterMs: number | null;
}

/** What the service answered with other than success. `code` is the service's; `api_error` when the answer holds none (CLI-7). */
export class ApiError extends ServiceError {
  override readonly code: OncehookErrorCode | ServiceErrorCode;
  /** HTTP status. */
  readonly status: number;
  /** For the service's support; null when the answer names none. */
  readonly requestId: string | null;
  /** How long the service asks to wait, milliseconds; null when it does not say. */
  readonly retryAfterMs: number | null;
  readonly #refusal: Refusal;

  /** @param rest - what the message says after the status: `: the masked reason. What to do.` */
  constructor(refusal: Refusal, facts: CallFacts, rest = ".") {
    super("api_error", `${facts.operation} was answered with ${shown(refusal)}${rest}`, facts);
    this.code = refusal.code ?? "api_error";
    this.status = refusal.status;
    this.requestId = refusal.requestId;
    this.retryAfterMs = refusal.retryAfterMs;
    this.#refusal = refusal;
  }

  /**
   * The service's own words in full, which may repeat what was sent: for people, not for logs. Not shown by `inspect` or JSON; the
   * error's message has the part that logs may show.
   */
  get serviceMessage(): string {
    return this.#refusal.message;
  }

  /** What the service adds, of unknown shape (GEN-2). Not shown by `inspect` or JSON. */
  get details(): Readonly<Record<string, unknown>> {
    return this.#refusal.details;
  }
}

/** 400 `INVALID_REQUEST`, or `INVALID_RECIPIENT`. A retry changes nothing. */
export class InvalidRequestError extends ApiError {}

/** 401 `UNAUTHORIZED`, also with a token that was just issued: the client or its account is inactive (AUT-5, AUT-6). */
export class UnauthorizedError extends ApiError {}

/** 403 `FORBIDDEN`: the number belongs to another client. */
export class ForbiddenError extends ApiError {}

/** 404 `NOT_FOUND`. */
export class NotFoundError extends ApiError {}

/**
 * 409 `CONFLICT`: the idempotency key was used for another request, and a changed request needs a new key (CLI-6). Or the same
 * request is running still (SND-31), above all after an attempt without an answer: repeat it with the same key later.
 */
export class ConflictError extends ApiError {}

/** 5xx, after all retries. */
export class ServerError extends ApiError {}

/** `UPSTREAM_ERROR`: the search of the inventory behind the service failed, after all retries. */
export class UpstreamError extends ApiError {
  /** The `details.providerStatus`; null when it is not an integer. */
  get providerStatus(): number | null {
    const { providerStatus } = this.details;
    return Number.isInteger(providerStatus) ? (providerStatus as number) : null;
  }
}

/** A code or a status that this version of oncehook does not know, such as a rate limit or a redirect (GEN-11). */
export class UnknownApiError extends ApiError {}

/**
 * What the token route says no with, or a success without a usable token; `code` is its `error` (TOK-12). `attempts` tells how
 * far the call itself had got: a token can end between two of its requests.
 */
export class OAuthError extends ServiceError {
  override readonly code: OncehookErrorCode | ServiceErrorCode;
  /** HTTP status. */
  readonly status: number;
  /** `invalid_client` is never retried: credentials are wrong, or client or account are inactive (CLI-4). Null when the answer holds none. */
  readonly error: string | null;
  /** How long the service asks to wait, milliseconds; null when it does not say. */
  readonly retryAfterMs: number | null;
  readonly #description: string;

  /** @param rest - what the message says after the status: `: the masked reason. What to do.` */
  constructor(refusal: Refusal, facts: CallFacts, rest = ".") {
    super("api_error", `The token route answered with ${shown(refusal)}${rest}`, facts);
    this.code = refusal.code ?? "api_error";
    this.status = refusal.status;
    this.error = refusal.code;
    this.retryAfterMs = refusal.retryAfterMs;
    this.#description = refusal.message;
  }

  /** The service's own words in full: for people, not for logs. Not shown by `inspect` or JSON. */
  get errorDescription(): string {
    return this.#description;
  }
}

/** No complete answer came, after all retries: the service may or may not have done what was asked. */
export class ConnectionError extends ServiceError {
  declare readonly code: OncehookErrorCode;

  constructor(
    message: string,
    facts: CallFacts,
    options: ErrorOptions = {},
    code: OncehookErrorCode = "connection_failed",
  ) {
    super(code, message, facts, options);
  }
}

/** No complete answer came within `timeoutMs`, after all retries. */
export class TimeoutError extends ConnectionError {
  constructor(message: string, facts: CallFacts, options: ErrorOptions = {}) {
    super(message, facts, options, "request_timeout");
  }
}

/** The caller's signal ended the call; `cause` is the signal's reason. */
export class AbortedError extends ConnectionError {
  constructor(facts: CallFacts, reason: unknown) {
    super(`${facts.operation} was aborted by its caller.`, facts, { cause: reason }, "aborted");
  }
}

/** A success whose body is not what the specification shows. The service did what was asked. */
export class ResponseValidationError extends ServiceError {
  declare readonly code: OncehookErrorCode;
  /** Where and how the answer differs: `results.0.messageId: expected string`. Never a value. */
  readonly issues: readonly string[];
  readonly #data: unknown;

  constructor(issues: readonly string[], facts: CallFacts, data?: unknown) {
    super("invalid_response", `The answer to ${facts.operation} is not as specified: ${issues.join("; ")}.`, facts);
    this.issues = issues;
    this.#data = data;
  }

  /**
   * The answer's JSON as it came. It may hold values that are shown only once: a generated secret, the results of a send. Undefined
   * when it is not JSON. Not shown by `inspect` or JSON.
   */
  get data(): unknown {
    return this.#data;
  }
}

/** The arguments of a call are wrong for certain; no request was made. */
export class InvalidArgumentError extends ServiceError {
  declare readonly code: OncehookErrorCode;
  /** Where and why: `to.0: must be …`. Never a value. */
  readonly issues: readonly string[];

  constructor(operation: string, issues: readonly string[], idempotencyKey: string | null = null) {
    const facts = { operation, attempts: 0, idempotencyKey };
    super("invalid_argument", `${operation} was not made: ${listed(issues)}`, facts);
    this.issues = issues;
  }
}

/** Recipients of a send were rejected, and the caller asked for an error: `throwIfRejected()`. */
export class RecipientsRejectedError extends ServiceError {
  declare readonly code: OncehookErrorCode;
  readonly accepted: number;
  readonly rejected: number;

  /** @param counts - `codes` are the codes of the rejections, in any number */
  constructor(
    counts: { readonly accepted: number; readonly rejected: number; readonly codes?: readonly string[] },
    facts: CallFacts,
  ) {
    const { accepted, rejected, codes = [] } = counts;
    const named = [...new Set(codes)].filter((code) => NAME.test(code) && maskNumbers(code) === code).slice(0, 5);
    const why = named.length > 0 ? ` (${named.join(", ")})` : "";
    const message = `${rejected} of ${accepted + rejected} recipients were rejected${why}; see errors of the result.`;
    super("api_error", message, facts);
    this.accepted = accepted;
    this.rejected = rejected;
  }
}

/** Some issues are sentences already. */
function listed(issues: readonly string[]): string {
  const text = issues.map((issue) => issue.replace(/\.$/, "")).join("; ");
  return text.endsWith("?") ? text : `${text}.`;
}

/** Only what looks like a name is shown: all else may be a page, or hold what was sent. */
export const NAME = /^[\w.:-]{1,100}$/;

function shown({ status, code, requestId }: Refusal): string {
  const named = code !== null && NAME.test(code) ? ` ${code}` : "";
  const request = requestId !== null && NAME.test(requestId) ? ` (request ${requestId})` : "";
  return `${status}${named}${request}`;
}
