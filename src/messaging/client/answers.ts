/** One request and its whole answer, or why none came; and what an answer that is a refusal means. */
import type { Clock } from "../../internal/clock.ts";
import { maskNumbers } from "../../internal/logger.ts";
import { BAD_PORT_MESSAGE } from "../../internal/network.ts";
import { isRecord } from "../../internal/options.ts";
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

// One request and its whole answer, or the reason why none came.

interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** An answer of any status, read to its end. */
export interface ApiAnswer {
  readonly kind: "answer";
  readonly status: number;
  readonly headers: Headers;
  readonly response: Response;
  /** Undefined when the body is not JSON. */
  readonly json: unknown;
  readonly isEmpty: boolean;
}

/** No complete answer: the service may or may not have done what was asked. */
export interface NoAnswer {
  readonly kind: "none";
  readonly reason: "connection" | "timeout" | "aborted" | "too_large";
  /** What `fetch` failed with, without what it may hold of the request; of an abort, the signal's reason. */
  readonly cause: unknown;
}

export interface Wire {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Never shown in a cause. */
  readonly secrets: readonly string[];
}

/** Never rejects. Ends at the time-out or the signal even when `fetch` does not heed its own signal. */
export function exchange(
  wire: Wire,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): Promise<ApiAnswer | NoAnswer> {
  // A hook may have aborted it just now, and an aborted signal tells nobody any more.
  if (signal?.aborted) return Promise.resolve({ kind: "none", reason: "aborted", cause: signal.reason });
  return new Promise((resolve) => {
    const controller = new AbortController();
    const settle = (outcome: ApiAnswer | NoAnswer) => {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
      resolve(outcome);
    };
    const interrupt = (outcome: NoAnswer) => {
      settle(outcome);
      controller.abort();
    };
    const onAbort = () => interrupt({ kind: "none", reason: "aborted", cause: signal?.reason });
    const onTimeout = () => interrupt({ kind: "none", reason: "timeout", cause: undefined });
    const timer = wire.clock.setTimeout(onTimeout, wire.timeoutMs);
    timer.keepAlive();
    signal?.addEventListener("abort", onAbort, { once: true });
    ask(wire.fetch, request, controller.signal).then(settle, (error: unknown) => {
      const secrets = [...wire.secrets, ...bearerOf(request)];
      settle({ kind: "none", reason: "connection", cause: safeCause(error, secrets) });
    });
  });
}

async function ask(fetch: Wire["fetch"], request: HttpRequest, signal: AbortSignal): Promise<ApiAnswer | NoAnswer> {
  const { url, method, headers, body } = request;
  // A redirect followed would take the token to another host, or make a GET of a POST.
  const init = { method, headers, redirect: "manual", signal } as const;
  const response = await fetch(url, body === undefined ? init : { ...init, body });
  if (response.type === "error") throw new Error("The connection broke.");
  const text = await bodyText(response);
  if (text === null) return { kind: "none", reason: "too_large", cause: undefined };
  const json = parsed(text);
  return { kind: "answer", status: response.status, headers: response.headers, response, json, isEmpty: text === "" };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bearerOf({ headers }: HttpRequest): string[] {
  const [, credentials] = headers.authorization?.split(" ") ?? [];
  return credentials === undefined ? [] : [credentials];
}

// The text of an answer, up to a bound: a service gone wrong must not fill the memory.

/** Far more than any answer of the service, in bytes: some 100,000 numbers. */
const LONGEST_BODY = 32 * 1024 * 1024;

/** The whole text, or null when it is longer than 32 MiB; no more is read of it then. */
function bodyText(response: Response): Promise<string | null> {
  const { headers } = response;
  const length = Number(headers.get("content-length") ?? Number.NaN);
  // HTTP holds the body to its length, so it need not be counted; of a compressed one the length says nothing.
  if (length <= LONGEST_BODY && !headers.has("content-encoding")) return response.text();
  const { body } = response;
  if (length > LONGEST_BODY) {
    dropped(body);
    return Promise.resolve(null);
  }
  // A stand-in for fetch may give a body of another kind, or none.
  return typeof body?.getReader === "function" ? counted(body.getReader()) : response.text();
}

async function counted(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > LONGEST_BODY) {
      dropped(reader);
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Ends the connection of a body that is not wanted; how that goes does not matter. */
function dropped(body: Pick<ReadableStream, "cancel"> | null): void {
  body?.cancel().catch(() => {});
}

// Copies of foreign errors that can be shown: the errors of `fetch` may hold the request with its token and its body.

const COPIED = ["code", "errno", "syscall"] as const;
/** What codes and names of errors look like. */
const ERROR_NAME = /^[A-Za-z]\w{0,59}$/;
/**
 * Codes of the operating system, of TLS and of undici: their messages are fixed texts with a host, a port or a certificate's
 * names. Every other message may quote what was sent, in words that nobody can foresee.
 */
const KNOWN_CODE =
  /^(?:E(?:AI_[A-Z]+|CONN[A-Z]+|TIMEDOUT|NOTFOUND|PIPE|PROTO|MFILE|NFILE|ADDR[A-Z]+|(?:HOST|NET)(?:UNREACH|DOWN)|NETRESET)|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+|ERR_(?:TLS|SSL)_\w+|UND_ERR_\w+|HPE_\w+)$/;
const UNKNOWN_MESSAGE = "fetch failed";
const LONGEST_MESSAGE = 300;
const HIDDEN = "[redacted]";
/** Anything that looks like a phone number in E.164 form. */
const E164 = /\+[1-9]\d{6,14}/g;
/** An address may hold a number in its path; what is quoted, or looks like JSON or a page, may be the request's body. */
const QUOTED = /\w+:\/\/\S+|(?:["`{<]|\[(?!redacted\]))[\s\S]*/g;

/** A copy of an error and of its own cause: name, the facts of the operating system, and a known message, without `secrets`. */
function safeCause(error: unknown, secrets: readonly string[]): Error {
  try {
    const cause = error instanceof Error && error.cause !== undefined ? copyOf(error.cause, secrets) : undefined;
    return copyOf(error, secrets, cause);
  } catch {
    // A getter of it threw.
    return new Error("The error can not be read.");
  }
}

function copyOf(error: unknown, secrets: readonly string[], cause?: Error): Error {
  const source = typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {};
  const isKnown = typeof source.code === "string" && KNOWN_CODE.test(source.code);
  const isTold = isKnown || source.message === BAD_PORT_MESSAGE;
  const message = isTold && typeof source.message === "string" ? source.message : UNKNOWN_MESSAGE;
  const copy = new Error(redacted(message, secrets), cause === undefined ? undefined : { cause });
  if (typeof source.name === "string" && ERROR_NAME.test(source.name)) copy.name = redacted(source.name, secrets);
  for (const key of COPIED) {
    const fact = source[key];
    if (typeof fact === "number") Object.assign(copy, { [key]: fact });
    if (typeof fact === "string" && ERROR_NAME.test(fact)) Object.assign(copy, { [key]: redacted(fact, secrets) });
  }
  return copy;
}

function redacted(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) if (secret !== "") shown = shown.replaceAll(secret, HIDDEN);
  return shown.replace(QUOTED, HIDDEN).replace(E164, HIDDEN).slice(0, LONGEST_MESSAGE);
}

// What a refusal means: by the code in its body, and by its status only where that says nothing (CLI-7, GEN-12).

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

// Reads the fields of an answer that refuses the call. What they mean is decided above.

/** Reads the core error wrapper (GEN-2), or as much of it as there is. */
export function coreRefusal(answer: ApiAnswer, now: number): Refusal {
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
export function oauthRefusal(answer: ApiAnswer, now: number): Refusal {
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
  // Date.parse alone accepts much that is not an HTTP date, such as "-5".
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
