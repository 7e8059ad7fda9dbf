/** What a route answers, and the answers as `Response` objects: the two error contracts, and a broken connection. */
import type { LogFields } from "../../../internal/logger.ts";
import type { ApiAction } from "../faults.ts";
import type { Settings } from "../options.ts";

// What a route says: a reply, or a refusal in the core error wrapper (GEN-2) or the OAuth shape (GEN-3).

/** The codes of the core error wrapper and their usual statuses. */
export const CORE_ERRORS = {
  INVALID_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  SERVER_ERROR: 500,
  UPSTREAM_ERROR: 502,
} as const;

type CoreErrorCode = keyof typeof CORE_ERRORS;

export interface Reply {
  readonly kind: "reply";
  readonly status: number;
  /** The exact JSON text. */
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Faults to play on this answer, as a magic recipient asks for them. */
  readonly play?: readonly ApiAction[];
}

export interface EmulatorRefusal {
  readonly kind: "refusal";
  readonly status: number;
  /** One of `CoreErrorCode`, or what a fault rule says (GEN-11). */
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What stands between caller and service instead of an answer: a connection that breaks, or a proxy's error page. */
interface Broken {
  readonly kind: "reset" | "badGateway";
}

export type EmulatorAnswer = Reply | EmulatorRefusal | Broken;

/** The one OAuth error that fits; its usual status rather than the 404 of GEN-7, which is about core paths. */
export const WRONG_TOKEN_METHOD: EmulatorRefusal = {
  kind: "refusal",
  status: 400,
  code: "invalid_request",
  message: "The token route takes POST.",
  details: {},
};

/** A success. */
export function reply(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Reply {
  const text = JSON.stringify(body);
  return headers === undefined ? { kind: "reply", status, text } : { kind: "reply", status, text, headers };
}

/** A refusal with its code's usual status. The message holds nothing that the caller sent. */
export function refuse(
  code: CoreErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
): EmulatorRefusal {
  return { kind: "refusal", status: CORE_ERRORS[code], code, message, details };
}

/** The code that goes with an error status; one of its own for what the specification has none for (GEN-11). */
export function usualCode(status: number): CoreErrorCode | "RATE_LIMITED" {
  if (status === 429) return "RATE_LIMITED";
  const codes = Object.keys(CORE_ERRORS) as CoreErrorCode[];
  return codes.find((code) => CORE_ERRORS[code] === status) ?? (status < 500 ? "INVALID_REQUEST" : "SERVER_ERROR");
}

// Answers as `Response` objects: the two error contracts, and what a broken connection looks like.

/** Which error shape a route answers with: OAuth's for the token route (GEN-3), the wrapper for all others (GEN-2). */
export type Contract = "core" | "token";

export function responseFrom(answer: EmulatorAnswer, contract: Contract, requestId: string): Response {
  switch (answer.kind) {
    case "reply":
      return json(answer.status, answer.text, answer.headers);
    case "refusal": {
      const body = contract === "token" ? oauthError(answer) : coreError(answer, requestId);
      return json(answer.status, JSON.stringify(body), answer.headers);
    }
    case "reset":
      return Response.error();
    case "badGateway":
      return new Response("<html><body><h1>502 Bad Gateway</h1></body></html>\n", {
        status: 502,
        headers: { "content-type": "text/html" },
      });
    default:
      return answer satisfies never;
  }
}

/** A JSON answer; nothing of this service is for caches (TOK-21). */
export function json(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Response {
  const length = String(Buffer.byteLength(text));
  const own = { "content-type": "application/json", "content-length": length, "cache-control": "no-store" };
  const response = new Response(text, { status, headers: { ...own, ...headers } });
  texts.set(response, text);
  return response;
}

/** The answer to HEAD: that of GET without its body (RFC 9110, 9.3.2). */
export function withoutBody(response: Response): Response {
  if (response.type === "error") return response;
  // A stream of events ends here, before its first one.
  response.body?.cancel().catch(() => {});
  return new Response(null, { status: response.status, headers: response.headers });
}

const texts = new WeakMap<Response, string>();

/** The whole body of a JSON answer of this module, without the cost of reading its stream; undefined for others. */
export function textOf(response: Response): string | undefined {
  return texts.get(response);
}

/** The core error wrapper (GEN-2). */
function coreError(
  { code, message, details }: Pick<EmulatorRefusal, "code" | "message" | "details">,
  requestId: string,
): object {
  return { error: { code, message, details }, requestId };
}

const OAUTH_ERRORS = ["invalid_request", "invalid_client", "unsupported_grant_type"];
/** What a fault rule that says only a status means on the token route. */
const OAUTH_ERROR_OF: Readonly<Record<string, string>> = {
  INVALID_REQUEST: "invalid_request",
  UNAUTHORIZED: "invalid_client",
};

/** Any other core code on the token route is a fault or a failure of the emulator: `server_error` (TOK-12). */
function oauthError({ code, message }: EmulatorRefusal): object {
  const error = OAUTH_ERRORS.includes(code) ? code : (OAUTH_ERROR_OF[code] ?? "server_error");
  return { error, error_description: message };
}

/** The first half of an answer that promises all of it; its body then breaks. An answer without a body stays as it is. */
export function truncated(response: Response): Response {
  const { body, status, headers } = response;
  if (body === null) return response;
  const cut = new ReadableStream({
    async start(controller) {
      const bytes = new Uint8Array(await new Response(body).arrayBuffer());
      controller.enqueue(bytes.subarray(0, Math.floor(bytes.byteLength / 2)));
    },
    pull: (controller) => controller.error(new TypeError("the answer was cut short by a fault rule")),
  });
  return new Response(cut, { status, headers });
}

// A failure of the emulator's own: a line in its log, and to its caller nothing of the cause.

/** What a caller gets. */
export const OWN_FAILURE = "The emulator failed to answer; its log says why.";

/** Tells the log. */
export function logFailure(
  { logger }: Pick<Settings, "logger">,
  error: unknown,
  { message, ...fields }: LogFields & { readonly message: string },
): void {
  const reason = error instanceof Error ? error.message : String(error);
  logger.error({ ...fields, reason }, message);
}

// What the control API answers when it does not do what it was asked: `{ error: { code, message } }`.

/** The codes and their statuses. */
const STATUSES = {
  INVALID_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  SERVER_ERROR: 500,
} as const;

export interface ControlRefusal {
  readonly code: keyof typeof STATUSES;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function refusalResponse({ code, message, headers = {} }: ControlRefusal): Response {
  return json(STATUSES[code], controlError(code, message), headers);
}

/** Its text. */
export function controlError(code: ControlRefusal["code"], message: string): string {
  return JSON.stringify({ error: { code, message } });
}
