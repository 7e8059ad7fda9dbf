/** The seam between adapters and the inspector: what an adapter hands in, and the answer it sends. No framework is known here. */
import { StoreError } from "../errors.ts";
import { explained, placeFields } from "../inbox/masking.ts";
import type { Logger, SampledLog } from "../internal/logger.ts";
import type { HeaderSource } from "../signature/verify.ts";
import type { ApiError, ApiErrorCode } from "./api.ts";

/**
 * One HTTP request. An adapter only converts; every decision is the inspector's.
 *
 * @typeParam Native - the framework's own request, which `authorize` gets
 */
export interface InspectorRequest<Native = unknown> {
  /** Upper case, as on the wire. */
  readonly method: string;
  /** Path and query as they were asked for, with what a router has taken off: `/inspector/api/messages/7`. */
  readonly url: string;
  readonly headers: HeaderSource;
  readonly native: Native;
  /** Reads the body as JSON. Called at most once, and only for somebody who may do what is asked. Never rejects. */
  readJson(maxBytes: number): Promise<JsonReading>;
  /** Aborts when whoever asked is gone. */
  readonly signal: AbortSignal;
}

export type JsonReading =
  | { readonly ok: true; readonly value: unknown }
  /** `empty`: there is no body, or one without a byte. */
  | { readonly ok: false; readonly reason: "too_large" | "invalid" | "empty" };

/** What to send. */
export interface InspectorAnswer {
  readonly status: number;
  /** Lower-case names. `content-length` is there unless the body is a stream or the status 304. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is sent chunk by chunk as it comes, and ended (`return()`) when whoever asked is gone. */
  readonly body: string | Uint8Array | AsyncIterable<string>;
}

/** What an adapter mounts. */
export interface Mountable<Native = unknown> {
  /** Where it is mounted, such as `/inspector`; empty for the root. No slash at its end. */
  readonly path: string;
  /** Told of answers that could not be sent. */
  readonly logger: Logger;
  /** Answers any request at or below `path`. Neither throws nor rejects. */
  handle(request: InspectorRequest<Native>): Promise<InspectorAnswer>;
}

// The answers of the inspector: JSON, refusals, texts and streams. The headers that all of them carry are put on elsewhere.

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
  busy: 503,
  unavailable: 503,
  internal_error: 500,
};

export const TEXT = "text/plain; charset=utf-8";

export function json(value: unknown, status = 200): InspectorAnswer {
  return text("application/json; charset=utf-8", JSON.stringify(value), { status });
}

/** What is not done, in the shape of every error; the status follows from the code. */
export function refused(
  error: ApiErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): InspectorAnswer {
  const answer = json({ error, message } satisfies ApiError, STATUSES[error]);
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** The answer to a body that `readJson` could not read. */
export function unreadable({ reason }: Extract<JsonReading, { ok: false }>): InspectorAnswer {
  if (reason === "too_large") return refused("too_large", "The body is longer than 64 KiB.");
  return refused("invalid_request", "The body must be JSON.");
}

/** A whole text of any type. */
export function text(
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

/** A proxy, or a middleware that compresses, would gather an answer before it sends it: a live one for ever. */
const AS_IT_COMES = { "cache-control": "no-store, no-transform", "x-accel-buffering": "no" };

/** A text that is sent as it comes. */
export function streamed(
  type: string,
  body: AsyncIterable<string>,
  headers: Readonly<Record<string, string>> = {},
): InspectorAnswer {
  return { status: 200, headers: { ...headers, ...AS_IT_COMES, "content-type": type }, body };
}

// The headers of every answer. Nothing the page shows may run, be framed, be kept, or be told to another site.

/** No script or style but the page's own files, no markup made from texts, no connection but to where it came from. */
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

/** `answer` with them; it is kept nowhere unless it says otherwise itself. */
export function secured(answer: InspectorAnswer): InspectorAnswer {
  return { ...answer, headers: { "cache-control": "no-store", ...answer.headers, ...FOR_ALL } };
}

// What is answered when something throws, and what is told of it: codes and texts of ours, for anything else may hold a number or a text.

export function failureAnswer(error: unknown, log: SampledLog): InspectorAnswer {
  const fields = placeFields(error);
  if (error instanceof StoreError) {
    log.warn(fields, explained("The inspector could not read the inbox, or write to it.", error));
    return refused("unavailable", "The inbox does not answer now. Try again in a moment.");
  }
  log.error(fields, explained("The inspector failed to answer a request.", error));
  return refused("internal_error", "The inspector failed. The application's log says more.");
}
