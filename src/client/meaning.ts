/** What a refusal means: by the code in its body, and by its status only where that says nothing (CLI-7, GEN-12). */
import {
  type ApiError,
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  type Refusal,
  ServerError,
  UnauthorizedError,
  UnknownApiError,
  UpstreamError,
} from "./errors.ts";

export interface Meaning {
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
