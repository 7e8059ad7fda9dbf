/** Between adapters and the receiver: the request that an adapter passes in, and every answer that it can send. No framework is known here. */
import type { RequestParts } from "../sources/headers.ts";
import type { SourceAnswer } from "../sources/source.ts";

/** One HTTP request, before its body is read. An adapter only converts; the receiver makes every decision. */
export interface IncomingWebhook extends RequestParts {
  /** Upper case, as on the wire. */
  readonly method: string;
  /** Reads the body to its end. Called at most once, and only after the headers were checked. */
  readBody(reading: BodyReading): Promise<BodyResult> | BodyResult;
  /** Passed to a keyring provider. Nothing else about the request is passed: nothing is verified yet. */
  readonly tenant?: string | undefined;
  /** Passed to a keyring provider: the route of this receiver, as the application named it. */
  readonly route?: string | undefined;
}

/** The rules for reading one body. */
export interface BodyReading {
  /** Stop reading beyond it, with `too_large`. Bytes. */
  readonly maxBytes: number;
  /** From `Content-Length`, or null. A body that ends before this length is `truncated`. */
  readonly declaredBytes: number | null;
  /**
   * Call this for every chunk when it arrives, so that the bytes held by all requests stay within their budget. If it returns a promise, read
   * nothing more until it resolves: other bodies need the room. It also resolves when the read is cut.
   */
  received(bytes: number): Promise<void> | undefined;
  /** `cut` is called when the read must stop: it is too slow, past its deadline, or holds too much. Resolve with `cut` then. */
  onCut(cut: () => void): void;
}

/** The bytes of a request, or why they could not be read. */
export type BodyResult =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | {
      readonly ok: false;
      /** `already_parsed`: the application read the body before the adapter, and kept no bytes. */
      readonly reason: "too_large" | "truncated" | "cut" | "already_parsed";
      /** With `already_parsed`: how this host keeps the bytes, for the log. */
      readonly fix?: string;
    };

/** The log message for a body that was `already_parsed`. */
export function bodyParsedMessage({ fix = RAW_BODY_FIX }: { readonly fix?: string }): string {
  return `The body was read before the receiver saw it, so its exact bytes are gone. ${fix}`;
}

const RAW_BODY_FIX =
  "Mount the receiver before everything that reads bodies, or keep the bytes as a Buffer in request.rawBody.";

/** The response to send. Never a redirect or which check failed. Of the payload only what the handshake of a source returns. */
export interface Answer {
  readonly status: number;
  /** Lower-case names; with `content-type` and `content-length`, unless there is no body. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, unless the source has an answer of its own. */
  readonly body: string;
  /** The body was not read to its end: answer, drain at most 64 KiB, close the connection. */
  readonly close: boolean;
}

/** Seconds. The service keeps its own schedule, but a proxy in between may respect it. */
const RETRY_AFTER_SECONDS = "30";

export type AcceptedOutcome = "accepted" | "duplicate" | "late" | "filtered" | "quarantined" | "handled" | "dead";

const ACCEPTED: Readonly<Record<AcceptedOutcome, Answer>> = {
  accepted: answer(200, { outcome: "accepted" }),
  duplicate: answer(200, { outcome: "duplicate" }),
  late: answer(200, { outcome: "late" }),
  filtered: answer(200, { outcome: "filtered" }),
  quarantined: answer(200, { outcome: "quarantined" }),
  handled: answer(200, { outcome: "handled" }),
  dead: answer(200, { outcome: "dead" }),
};

/** 200: the service does not send this delivery again, whatever happens to the event. */
export function accepted(outcome: AcceptedOutcome): Answer {
  return ACCEPTED[outcome];
}

/** An answer in a provider's own form. */
export function ofSource({ status = 200, body = "", contentType }: SourceAnswer): Answer {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const type = contentType ?? (typeof body === "string" ? "text/plain; charset=utf-8" : "application/json");
  const headers = {
    ...(text !== "" && { "content-type": type, "x-content-type-options": "nosniff" }),
    // RFC 9110, section 8.6: not with 204.
    ...(status !== 204 && { "content-length": `${Buffer.byteLength(text)}` }),
    "cache-control": "no-store",
  };
  return { status, headers, body: status === 204 ? "" : text, close: false };
}

/** 401: one answer for every failed check. The reason is in the log only. */
export const UNAUTHORIZED: Answer = answer(401, { error: "unauthorized" });
/** The same, for a request whose body was not read. */
export const UNAUTHORIZED_UNREAD: Answer = unread(UNAUTHORIZED);
/** 400: fewer bytes than declared, or the sender disconnected. */
export const BODY_TRUNCATED: Answer = answer(400, { error: "body_truncated" }, {}, "close");
/** 400, only with `quarantine: "reject"`. */
export const UNPROCESSABLE: Answer = answer(400, { error: "invalid_event" });
export const METHOD_NOT_ALLOWED: Answer = notAllowed("POST, PUT");
/** The same, for a source that answers a GET. */
export const METHOD_NOT_ALLOWED_WITH_CHALLENGE: Answer = notAllowed("GET, POST, PUT");
export const TOO_LARGE: Answer = answer(413, { error: "body_too_large" }, {}, "close");
export const UNSUPPORTED_ENCODING: Answer = answer(415, { error: "unsupported_content_encoding" }, {}, "close");
/** 500: the application parsed the body first. */
export const RAW_BODY_UNAVAILABLE: Answer = answer(500, { error: "raw_body_unavailable" });
export const MISCONFIGURED: Answer = answer(500, { error: "misconfigured" });
/** 503: the service retries, so nothing is lost. */
export const UNAVAILABLE: Answer = answer(503, { error: "unavailable" }, { "retry-after": RETRY_AFTER_SECONDS });
/** The same, for a request whose body was not read. */
export const UNAVAILABLE_UNREAD: Answer = unread(UNAVAILABLE);

/** `answer`, for a request whose body was not read to its end. */
export function unread(answer: Answer): Answer {
  return { ...answer, close: true };
}

function notAllowed(allow: string): Answer {
  return answer(405, { error: "method_not_allowed" }, { allow }, "close");
}

function answer(
  status: Answer["status"],
  content: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
  connection: "keep" | "close" = "keep",
): Answer {
  const body = JSON.stringify(content);
  return {
    status,
    headers: {
      "content-type": "application/json",
      "content-length": `${body.length}`,
      "cache-control": "no-store",
      ...headers,
    },
    body,
    close: connection === "close",
  };
}
