/** What a refusal means: by the code in its body, and by its status only where that says nothing (CLI-7, GEN-12). */
import { maskNumbers } from "../internal/logger.ts";
import { isRecord } from "../internal/type-guards.ts";
import {
  type ApiError,
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NAME,
  NotFoundError,
  type Refusal,
  ServerError,
  UnauthorizedError,
  UnknownApiError,
  UpstreamError,
} from "./errors.ts";
import type { Answer } from "./transport.ts";

interface Meaning {
  readonly error: typeof ApiError;
  /** It may pass by itself, so the call is made again (CLI-5). */
  readonly isTransient: boolean;
}

type Named = Pick<Refusal, "code" | "status">;

const lasting = (error: typeof ApiError): Meaning => ({ error, isTransient: false });
const passing = (error: typeof ApiError): Meaning => ({ error, isTransient: true });

const BY_CODE: ReadonlyMap<string, Meaning> = new Map([
  ["INVALID_REQUEST", lasting(InvalidRequestError)],
  ["INVALID_RECIPIENT", lasting(InvalidRequestError)],
  ["UNAUTHORIZED", lasting(UnauthorizedError)],
  ["FORBIDDEN", lasting(ForbiddenError)],
  ["NOT_FOUND", lasting(NotFoundError)],
  ["CONFLICT", lasting(ConflictError)],
  ["SERVER_ERROR", passing(ServerError)],
  ["UPSTREAM_ERROR", passing(UpstreamError)],
]);

const BY_STATUS: ReadonlyMap<number, Meaning> = new Map([
  [400, lasting(InvalidRequestError)],
  [401, lasting(UnauthorizedError)],
  [403, lasting(ForbiddenError)],
  [404, lasting(NotFoundError)],
  [409, lasting(ConflictError)],
]);

const UNKNOWN = lasting(UnknownApiError);
const FAILED = passing(ServerError);

/** A code that is not known yet changes nothing: the status decides then (GEN-11). */
export function meaningOf({ code, status }: Named): Meaning {
  const byCode = code === null ? undefined : BY_CODE.get(code);
  return byCode ?? BY_STATUS.get(status) ?? (status >= 500 ? FAILED : UNKNOWN);
}

/**
 * Whether the service asks to come back later: nothing was done. A known code says what it says, whatever the status (GEN-11); so do
 * the codes of OAuth.
 */
export function isRateLimit({ code, status }: Named): boolean {
  if (code !== null && (BY_CODE.has(code) || OAUTH_REFUSALS.has(code))) return false;
  return status === 429 || code === "RATE_LIMITED";
}

/** Said of the credentials or of the request, which a repetition does not change (RFC 6749, 4.1.2.1 and 5.2; CLI-4). */
const OAUTH_REFUSALS: ReadonlySet<string> = new Set([
  "access_denied",
  "invalid_client",
  "invalid_grant",
  "invalid_request",
  "invalid_scope",
  "unauthorized_client",
  "unsupported_grant_type",
]);

/** Whether the token route's refusal may pass: never one of credentials or request, whatever its status. */
export function isTransientOAuth({ code, status }: Named): boolean {
  return (code === null || !OAUTH_REFUSALS.has(code)) && status >= 500;
}

// The service's own reason for a refusal, as far as it can be shown in an error's message and so in logs: up to the first thing that
// the caller may have sent, or that is not a plain sentence. `serviceMessage` has the whole.

const LONGEST = 300;
const REDACTED = "[redacted]";
/** A quoted word, such as a field's name, is shown unless it was sent. */
const QUOTED_NAME = /(["'`])[A-Za-z][\w.[\]]{0,39}\1/g;
/** Quotations, JSON, pages, addresses, percent-encoded texts and credentials. */
const NOT_A_SENTENCE =
  /["`“”‘«<{[]|(?<![\p{L}\p{N}])'|\w+:\/\/|\S*%[\da-f]{2}|(?<![\p{L}\p{N}])(?:Bearer|Basic)\s+\S|=\S/iu;
/** Longer than words are: a token, a digest, a text in base64. */
const OPAQUE = /\S{20,}/g;
/** A field's name, which may be long. */
const SHORT_NAME = /^[("'`]?[A-Za-z][A-Za-z_.]{0,49}[)"'`]?[.,:;]?$/;
const WORD = /[\p{L}\p{N}]+/gu;
/** So many words of a text in a row are that text: a service may cut what it repeats, or write it in another way. */
const TELLING_WORDS = 3;
/** Fields with words of the specification, which no caller wrote. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set(["messageType", "mimeType", "sendFrom"]);

/** `: the reason`, to stand after the status; empty when nothing of it can be shown. `sent` is what must not be repeated. */
export function maskedReason(message: string, sent: readonly string[]): string {
  // One line, whatever the service writes: a message must not make a second line of a log.
  const line = message
    .slice(0, 4 * LONGEST)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim();
  const end = Math.min(firstSent(line, sent), firstUnplain(line));
  const shown = maskNumbers(line.slice(0, end)).trim();
  if (shown === "" || !/\p{L}/u.test(shown)) return "";
  const whole = end < line.length ? `${shown} ${REDACTED}` : shown.replace(/[.\s]+$/, "");
  return `: ${whole.length > LONGEST ? `${whole.slice(0, LONGEST - 1)}…` : whole}`.toWellFormed();
}

/** All texts in what was sent, as JSON or as they are. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number") return [String(value)];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return Object.entries(value).flatMap(([name, field]) => (PLAIN_FIELDS.has(name) ? [] : textsIn(field)));
}

function firstUnplain(line: string): number {
  const unquoted = line.replace(QUOTED_NAME, (quoted) => "x".repeat(quoted.length));
  const found = NOT_A_SENTENCE.exec(unquoted)?.index ?? line.length;
  for (const { 0: run, index } of line.matchAll(OPAQUE)) if (!SHORT_NAME.test(run)) return Math.min(found, index);
  return found;
}

/** Where the first of these texts begins, compared word by word: its punctuation, case and end may differ. */
function firstSent(line: string, sent: readonly string[]): number {
  const words = [...line.matchAll(WORD)].map(({ 0: word, index }) => ({ word: word.toLowerCase(), index }));
  // A send may have thousands of recipients; most are nowhere in the line.
  const known = new Set(words.map(({ word }) => word));
  let first = line.length;
  for (const text of sent) {
    const wanted = (text.slice(0, 2 * LONGEST).match(WORD) ?? []).slice(0, TELLING_WORDS).map((w) => w.toLowerCase());
    const [head] = wanted;
    if (head === undefined) {
      const index = text.trim() === "" ? -1 : line.indexOf(text.trim());
      if (index >= 0) first = Math.min(first, index);
      continue;
    }
    if (!known.has(head)) continue;
    const at = words.findIndex((_, i) => wanted.every((word, offset) => words[i + offset]?.word === word));
    first = Math.min(first, words[at]?.index ?? first);
  }
  return first;
}

// Reads what an answer that says no holds; what it means is in meaning.ts.

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
