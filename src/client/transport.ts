/** One request and its whole answer, or the reason why none came. */
import type { Clock } from "../internal/clock.ts";
import { BAD_PORT_MESSAGE } from "../internal/network.ts";

interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** An answer of any status, read to its end. */
export interface Answer {
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
): Promise<Answer | NoAnswer> {
  // A hook may have aborted it just now, and an aborted signal tells nobody any more.
  if (signal?.aborted) return Promise.resolve({ kind: "none", reason: "aborted", cause: signal.reason });
  return new Promise((resolve) => {
    const controller = new AbortController();
    const settle = (outcome: Answer | NoAnswer) => {
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

async function ask(fetch: Wire["fetch"], request: HttpRequest, signal: AbortSignal): Promise<Answer | NoAnswer> {
  const { url, method, headers, body } = request;
  // A redirect followed would take the token to another host, or make a GET of a POST.
  const init = { method, headers, redirect: "manual", signal } as const;
  const response = await fetch(url, body === undefined ? init : { ...init, body });
  if (response.type === "error") throw new Error("The connection broke.");
  const text = await textOf(response);
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
function textOf(response: Response): Promise<string | null> {
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
const NAME = /^[A-Za-z]\w{0,59}$/;
/**
 * Codes of the operating system, of TLS and of undici: their messages are fixed texts with a host, a port or a certificate's
 * names. Every other message may quote what was sent, in words that nobody can foresee.
 */
const KNOWN_CODE =
  /^(?:E(?:AI_[A-Z]+|CONN[A-Z]+|TIMEDOUT|NOTFOUND|PIPE|PROTO|MFILE|NFILE|ADDR[A-Z]+|(?:HOST|NET)(?:UNREACH|DOWN)|NETRESET)|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+|ERR_(?:TLS|SSL)_\w+|UND_ERR_\w+|HPE_\w+)$/;
const UNKNOWN_MESSAGE = "fetch failed";
const LONGEST_MESSAGE = 300;
const REDACTED = "[redacted]";
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
  if (typeof source.name === "string" && NAME.test(source.name)) copy.name = redacted(source.name, secrets);
  for (const key of COPIED) {
    const fact = source[key];
    if (typeof fact === "number") Object.assign(copy, { [key]: fact });
    if (typeof fact === "string" && NAME.test(fact)) Object.assign(copy, { [key]: redacted(fact, secrets) });
  }
  return copy;
}

function redacted(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) if (secret !== "") shown = shown.replaceAll(secret, REDACTED);
  return shown.replace(QUOTED, REDACTED).replace(E164, REDACTED).slice(0, LONGEST_MESSAGE);
}
