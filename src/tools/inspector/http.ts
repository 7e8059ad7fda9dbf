/** What an adapter passes to the inspector, and the answers that it sends. Independent of any framework. */
import { StoreError } from "../../errors.ts";
import { explained, placeFields } from "../../inbox/masking.ts";
import type { Clock } from "../../internal/clock.ts";
import type { LogFields, Logger } from "../../internal/logger.ts";
import type { HeaderSource } from "../../sources/headers.ts";
import type { ApiError, ApiErrorCode } from "./api.ts";

/**
 * One HTTP request. An adapter only converts; every decision is the inspector's.
 *
 * @typeParam Native - the framework's own request, which `authorize` gets
 */
export interface InspectorRequest<Native = unknown> {
  /** Upper case, as on the wire. */
  readonly method: string;
  /** Path and query as the client sent them, with the part that a router removed: `/inspector/api/lanes/7`. */
  readonly url: string;
  readonly headers: HeaderSource;
  readonly native: Native;
  /** Reads the body as JSON. Called at most once, and only after the sender's right was checked. Never rejects. */
  readJson(maxBytes: number): Promise<JsonReading>;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

/** The JSON of a request, or why it could not be read. */
export type JsonReading =
  | { readonly ok: true; readonly value: unknown }
  /** `empty`: no body, or a body of zero bytes. */
  | { readonly ok: false; readonly reason: "too_large" | "invalid" | "empty" };

/** What to send. */
export interface InspectorAnswer {
  readonly status: number;
  /** Lower-case names. With `content-length`, unless the body is a stream or the status is 304. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is sent chunk by chunk, and ended with `return()` when the client disconnects. */
  readonly body: string | Uint8Array | AsyncIterable<string>;
}

/** What an adapter mounts. */
export interface Mountable<Native = unknown> {
  /** Where it is mounted, such as `/inspector`; empty for the root. No slash at its end. */
  readonly path: string;
  /** Logs answers that could not be sent. */
  readonly logger: Logger;
  /** Answers any request at or below `path`. Neither throws nor rejects. */
  handle(request: InspectorRequest<Native>): Promise<InspectorAnswer>;
}

const STATUSES: Readonly<Record<ApiErrorCode, number>> = {
  host_not_allowed: 403,
  origin_not_allowed: 403,
  csrf_header_missing: 403,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  invalid_request: 400,
  too_large: 413,
  busy: 409,
  unavailable: 503,
  internal_error: 500,
};

export const TEXT = "text/plain; charset=utf-8";

export function jsonAnswer(value: unknown, status = 200): InspectorAnswer {
  return textReply("application/json; charset=utf-8", JSON.stringify(value), { status });
}

/** An error as JSON. The code decides the status. */
export function refused(
  error: ApiErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): InspectorAnswer {
  const answer = jsonAnswer({ error, message } satisfies ApiError, STATUSES[error]);
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** The answer if `readJson` could not read the body. */
export function unreadableBody({ reason }: Extract<JsonReading, { ok: false }>): InspectorAnswer {
  if (reason === "too_large") return refused("too_large", "The body is longer than 64 KiB.");
  return refused("invalid_request", "The body must be JSON.");
}

/** A complete text of any type. */
export function textReply(
  type: string,
  body: string,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): InspectorAnswer {
  return {
    status,
    headers: { ...headers, "content-type": type, "content-length": `${Buffer.byteLength(body)}` },
    body,
  };
}

/** Without these headers, a proxy or a compressing middleware may buffer the answer: progress would arrive at the end. */
const AS_IT_COMES = { "cache-control": "no-store, no-transform", "x-accel-buffering": "no" };

/** A text that is sent as it is produced. */
export function streamed(
  type: string,
  body: AsyncIterable<string>,
  headers: Readonly<Record<string, string>> = {},
): InspectorAnswer {
  return { status: 200, headers: { ...headers, ...AS_IT_COMES, "content-type": type }, body };
}

/** Scripts and styles only from the page's own files, no markup made from texts, and connections only to the page's own origin. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const FOR_ALL: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
  "content-security-policy": CONTENT_SECURITY_POLICY,
};

/** Adds the headers that every answer has: nothing of the page may run as code, be framed, be cached, or be sent to another site. */
export function secured(answer: InspectorAnswer): InspectorAnswer {
  return { ...answer, headers: { "cache-control": "no-store", ...answer.headers, ...FOR_ALL } };
}

const TELL_EVERY_MS = 60_000;

/** Logs each code once a minute: an open page asks every 2 s, and an attacker as often as they like. */
export class CodeLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #toldAt = new Map<unknown, number>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  tell(level: "warn" | "error", fields: LogFields, message: string): void {
    const now = this.#clock.monotonic();
    if (now - (this.#toldAt.get(fields.code) ?? Number.NEGATIVE_INFINITY) < TELL_EVERY_MS) return;
    this.#toldAt.set(fields.code, now);
    this.#logger[level](fields, message);
  }
}

/** The answer when something throws. Answer and log have only our own codes and texts: an error may quote a number or a text. */
export function failureAnswer(error: unknown, log: CodeLog): InspectorAnswer {
  const fields = placeFields(error);
  if (error instanceof StoreError) {
    log.tell("warn", fields, explained("The inspector could not read or write the inbox.", error));
    return refused("unavailable", "The inbox does not answer now. Try again in a moment.");
  }
  log.tell("error", fields, explained("The inspector failed to answer a request.", error));
  return refused("internal_error", "The inspector failed. The application's log says more.");
}
