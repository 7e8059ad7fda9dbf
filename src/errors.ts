/** The errors oncehook throws: one base class with a stable `code`, a subclass for each thing a caller handles differently. */

/** oncehook's own codes, in lower case; a code never changes its meaning within a major version. */
export type OncehookErrorCode =
  | "invalid_option"
  | "invalid_secret"
  | "missing_peer"
  | "incompatible_peer"
  | "incomplete_package"
  | "already_started"
  | "no_handlers"
  | "wrong_receiver_name"
  | "wrong_source"
  | "old_version_running"
  | "no_inbox"
  | "inbox_too_new"
  | "migration_needed"
  | "copy_refused"
  | "copy_unfinished"
  | "copy_differs"
  | "not_durable"
  | "unsafe_location"
  | "store_unavailable"
  | "store_full"
  | "overloaded"
  | "closed"
  | "keyring_unavailable"
  | "effects_unsupported"
  | "async_effect"
  | "lease_lost"
  | "handler_timeout"
  | "retry_after"
  | "permanent_failure"
  | "target_refused"
  | "dead_lettered"
  | "wait_timeout"
  | "invalid_event"
  | "source_needed"
  | "source_failed"
  | "raw_body_unavailable"
  | "unknown_id"
  | "message_ended"
  | "cut_off"
  | "api_error"
  | "connection_failed"
  | "request_timeout"
  | "aborted"
  | "invalid_response"
  | "invalid_argument"
  | "secret_unreadable"
  | "rotation_refused"
  | "rotation_conflict"
  | "receivers_not_ready"
  | "not_rotated";

/** A code that the service wrote, in its own spelling, known or not: `CONFLICT`, `invalid_client`. */
export type ServiceErrorCode = string & Record<never, never>;

export interface OncehookErrorOptions extends ErrorOptions {
  /** Data for programs; never a secret, signature, phone number or body text. */
  readonly fields?: Readonly<Record<string, string | number | boolean | null>>;
}

/** Base class of every error that oncehook throws. The message says what happened and what to do about it. */
export class OncehookError extends Error {
  /** One of oncehook's own codes; with an error answer of the service (`ApiError`, `OAuthError`), the service's code. */
  readonly code: OncehookErrorCode | ServiceErrorCode;
  readonly fields: Readonly<Record<string, string | number | boolean | null>>;

  constructor(code: OncehookErrorCode, message: string, options: OncehookErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.fields = options.fields ?? {};
  }
}

/** A set-up mistake, found when an object is made or opened. Nothing was received or lost. */
export class SetupError extends OncehookError {
  declare readonly code: OncehookErrorCode;
}

/** The inbox cannot store or read events now. The service's retry or the worker's next batch tries again. */
export class StoreError extends OncehookError {
  declare readonly code: OncehookErrorCode;
}

/** An async keyring has no usable secrets now. Answered with 503, never 401: the service retries. */
export class KeyringError extends OncehookError {
  declare readonly code: OncehookErrorCode;

  constructor(message: string, options: OncehookErrorOptions = {}) {
    super("keyring_unavailable", message, options);
  }
}

/** The event is already completed, or another worker has its lease: an effect registered now could not commit. */
export class LeaseLost extends OncehookError {
  declare readonly code: OncehookErrorCode;

  constructor(
    message = "This event is already settled, or its lease was lost: register effects before the handler returns.",
  ) {
    super("lease_lost", message);
  }
}

/** Thrown by a handler to be retried after `ms` instead of the usual backoff. 0 to 86,400,000 (24 h). */
export class RetryAfter extends OncehookError {
  declare readonly code: OncehookErrorCode;
  readonly ms: number;

  constructor(ms: number, message = `The handler asked for a retry in ${ms} ms.`, options: OncehookErrorOptions = {}) {
    if (!(Number.isFinite(ms) && ms >= 0 && ms <= 86_400_000)) {
      const given = typeof ms === "number" ? ms : `a ${typeof ms}`;
      throw new SetupError("invalid_option", `RetryAfter takes 0 to 86,400,000 milliseconds (24 h), not ${given}.`);
    }
    super("retry_after", message, options);
    this.ms = ms;
  }
}

/** Thrown by a handler for an event that no retry can fix: it becomes a dead letter at once. */
export class PermanentError extends OncehookError {
  declare readonly code: OncehookErrorCode;

  constructor(message: string, options: OncehookErrorOptions = {}) {
    super("permanent_failure", message, options);
  }
}

/** `waitFor` saw its event end without having been handled: `fields.state` is `dead`, `discarded`, `late` or `unhandled`. */
export class DeadLettered extends OncehookError {
  declare readonly code: OncehookErrorCode;

  constructor(message: string, options: OncehookErrorOptions = {}) {
    super("dead_lettered", message, options);
  }
}
