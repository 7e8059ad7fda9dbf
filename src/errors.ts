/** The errors oncehook throws: one base class with a stable `code`, a subclass for each thing a caller handles differently. */

/** oncehook's own codes, in lower case; a code never changes its meaning within a major version. */
export type OncehookErrorCode =
  /** An option is missing, unknown, of the wrong type or out of bounds. Correct the one that the message and `fields.option` name. */
  | "invalid_option"
  /** A secret is empty, too short or not encoded as configured. Set its environment variable where the process runs; `""` is never taken for unsigned. */
  | "invalid_secret"
  /** A package that this entry needs is not installed. Run the `npm install` that the message shows. */
  | "missing_peer"
  /** A package or a server has a version that does not work here. Install the one that the message names. */
  | "incompatible_peer"
  /** Files of the inspector's page are missing. Keep oncehook out of the bundle, or install it where the bundle runs. */
  | "incomplete_package"
  /** The store is open already, or a handler was registered too late. Give each receiver its own store, and register handlers before `start()`. */
  | "already_started"
  /** `start()` or `drain()` came before the first `receiver.on`. Register handlers first. */
  | "no_handlers"
  /** The inbox belongs to a receiver of another `name`. Use one inbox for each application. */
  | "wrong_receiver_name"
  /** The inbox recorded another preset under this source's name. Give the new source a name of its own. */
  | "wrong_source"
  /** There is no inbox at this address. Correct the path or URL, or start the receiver once. */
  | "no_inbox"
  /** A newer version of oncehook wrote the inbox. Update this process. */
  | "inbox_too_new"
  /** The inbox has an older schema, and this process may not change it. Run `oncehook inbox migrate`, or open it once with `migrate: "auto"`. */
  | "migration_needed"
  /** The copy cannot begin: the source or the target is not in the state that it needs. The message names it. */
  | "copy_refused"
  /** A copy into this inbox was cut off. Run the same copy again: it goes on. */
  | "copy_unfinished"
  /** A receiver worked on one of the inboxes during the copy. Keep using the source, empty the target, and copy again. */
  | "copy_differs"
  /** The inbox was moved to another place, which the message names. Open that one; the message says how to go back. */
  | "inbox_moved"
  /** The database does not promise that a commit survives a power cut. Use the setting or the server that the message names. */
  | "not_durable"
  /** Others may change the file, its disk breaks SQLite's locks, its newest events would lie elsewhere, or it is not a file. The message names the fix. */
  | "unsafe_location"
  /** The inbox cannot be read or written now. Deliveries get 503 and are sent again; look at the disk or the server. */
  | "store_unavailable"
  /** The disk or the file has reached its limit. Make room, or prune; deliveries get 503 until then. */
  | "store_full"
  /** More deliveries wait for the inbox than it can store now. They get 503 and are sent again. */
  | "overloaded"
  /** The store, the receiver or the inbox was closed. Make a new one. */
  | "closed"
  /** The secrets cannot be read. Deliveries get 503 and are sent again; see the cause. */
  | "keyring_unavailable"
  /** The store has no transactions for `ctx.commit`. Use SQLite or Postgres. */
  | "effects_unsupported"
  /** An effect on SQLite was async, or left a query that did not run. Await before `ctx.commit`, and write synchronously in it. */
  | "async_effect"
  /** The event is completed, or another process has it. Register effects before the handler returns. */
  | "lease_lost"
  /** A handler or an effect took longer than `handlerTimeoutMs`. It is tried again; make it shorter, or raise the option. */
  | "handler_timeout"
  /** A handler threw `RetryAfter`: the event is tried again after its wait. */
  | "retry_after"
  /** A handler threw `PermanentError`: the event is a dead letter. Fix the cause, then replay it. */
  | "permanent_failure"
  /** The application behind `forward` answered with an error. The event is tried again. */
  | "target_refused"
  /** The event that `waitFor` awaits ended without being handled. `fields.state` says how. */
  | "dead_lettered"
  /** `waitFor` saw no end within its time. The message says what the inbox holds; the event goes on. */
  | "wait_timeout"
  /** A quarantined body is still not an event of its source. Correct the source, or discard the body. */
  | "invalid_event"
  /** The inbox does not have the source that this event needs. Open it with that source. */
  | "source_needed"
  /** A function of a source threw or returned a wrong answer. Fix the function; the log has its place. */
  | "source_failed"
  /** A body parser ran before the receiver. Mount the receiver first, or keep the bytes with `captureRawBody`. */
  | "raw_body_unavailable"
  /** The emulator has nothing of this id. */
  | "unknown_id"
  /** The emulator's message has ended already, so it cannot take this step. */
  | "message_ended"
  /** The emulator was reset or closed before the call was done. */
  | "cut_off"
  /** The service answered with an error that has no code of its own. See `status`. */
  | "api_error"
  /** No answer came from the service. The call may have reached it: repeat a send with its idempotency key only. */
  | "connection_failed"
  /** The service did not answer within `timeoutMs`. Treat it like `connection_failed`. */
  | "request_timeout"
  /** The caller's `signal` ended the call. */
  | "aborted"
  /** The service's answer is not what its specification says. Check `baseUrl`; a send may have happened. */
  | "invalid_response"
  /** An argument of a call is wrong, or an effect misused its connection. Nothing was sent or written; the message has the fix. */
  | "invalid_argument"
  /** The stored secrets were sealed with another key. Give the right key file or `sealing`. */
  | "secret_unreadable"
  /** A secret cannot be replaced now: an earlier one is still valid, or the store lacks the service's. Wait until `fields.until`, or adopt it. */
  | "rotation_refused"
  /** Another rotation replaced the secret meanwhile. Look at `rotationStatus()`, and rotate again only if you still need to. */
  | "rotation_conflict"
  /** A process with the inbox open does not have the new secret. Give all the same secret store, then call `rotateSecret` again. */
  | "receivers_not_ready"
  /** The service took the new secret but does not show it, so receivers accept both. Call `rotateSecret` again: it goes on with the same secret. */
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

/** `waitFor` saw its event end without having been handled: `fields.state` is `dead`, `discarded`, `late`, `unhandled` or `filtered`. */
export class DeadLettered extends OncehookError {
  declare readonly code: OncehookErrorCode;

  constructor(message: string, options: OncehookErrorOptions = {}) {
    super("dead_lettered", message, options);
  }
}
