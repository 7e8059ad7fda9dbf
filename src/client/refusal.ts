/** Reads what an answer that says no holds; what it means is in meaning.ts. */
import { isRecord } from "../internal/type-guards.ts";
import { NAME, type Refusal } from "./errors.ts";
import type { Answer } from "./transport.ts";

/** Reads the core error wrapper (GEN-2), or as much of it as there is. */
export function coreRefusal(answer: Answer, now: number): Refusal {
  const body = recordOf(answer.json);
  const error = recordOf(body.error);
  return {
    status: answer.status,
    code: nameOf(error.code),
    message: textOf(error.message),
    details: recordOf(error.details),
    requestId: requestIdOf(body.requestId),
    retryAfterMs: retryAfterMs(answer.headers.get("retry-after"), now),
  };
}

/** Reads the OAuth error of the token route (GEN-3), or as much of it as there is. */
export function oauthRefusal(answer: Answer, now: number): Refusal {
  const body = recordOf(answer.json);
  return {
    status: answer.status,
    code: nameOf(body.error),
    message: textOf(body.error_description),
    details: {},
    requestId: null,
    retryAfterMs: retryAfterMs(answer.headers.get("retry-after"), now),
  };
}

/** An object of JSON; `{}` for everything else. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** `Retry-After` in seconds or as an HTTP date; null for anything else. */
function retryAfterMs(header: string | null, now: number): number | null {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER);
  // Date.parse alone takes much that is no HTTP date, such as "-5".
  if (!/^[A-Z][a-z]+,? .*\d\d:\d\d:\d\d/.test(text)) return null;
  // The form of asctime names no zone, and Date.parse would take it for local time.
  const date = Date.parse(/\d\d:\d\d:\d\d \d{4}$/.test(text) ? `${text} GMT` : text);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

/** What does not look like a name is free text, and could repeat what was sent. */
function nameOf(value: unknown): string | null {
  return typeof value === "string" && NAME.test(value) ? value : null;
}

function requestIdOf(value: unknown): string | null {
  return typeof value === "string" && /^[\x21-\x7e]{1,200}$/.test(value) ? value : null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
