/** What a route says: a reply, or a refusal in the core error wrapper (GEN-2) or the OAuth shape (GEN-3). */
import type { ApiAction } from "../faults/rule.ts";

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

export type CoreErrorCode = keyof typeof CORE_ERRORS;

export interface Reply {
  readonly kind: "reply";
  readonly status: number;
  /** The exact JSON text. */
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Faults to play on this answer, as a magic recipient asks for them. */
  readonly play?: readonly ApiAction[];
}

export interface Refusal {
  readonly kind: "refusal";
  readonly status: number;
  /** One of `CoreErrorCode`, or what a fault rule says (GEN-11). */
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What stands between caller and service instead of an answer: a connection that breaks, or a proxy's error page. */
export interface Broken {
  readonly kind: "reset" | "badGateway";
}

export type Answer = Reply | Refusal | Broken;

/** The one OAuth error that fits; its usual status rather than the 404 of GEN-7, which is about core paths. */
export const WRONG_TOKEN_METHOD: Refusal = {
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
export function refuse(code: CoreErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}): Refusal {
  return { kind: "refusal", status: CORE_ERRORS[code], code, message, details };
}

/** The code that goes with an error status; one of its own for what the specification has none for (GEN-11). */
export function usualCode(status: number): CoreErrorCode | "RATE_LIMITED" {
  if (status === 429) return "RATE_LIMITED";
  const codes = Object.keys(CORE_ERRORS) as CoreErrorCode[];
  return codes.find((code) => CORE_ERRORS[code] === status) ?? (status < 500 ? "INVALID_REQUEST" : "SERVER_ERROR");
}
