/** The answers of the inspector: JSON, refusals, texts and streams. The headers that all of them carry are put on elsewhere. */
import type { ApiError, ApiErrorCode } from "./api.ts";
import type { InspectorAnswer, JsonReading } from "./http.ts";

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
