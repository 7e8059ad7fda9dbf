/** The error answers of both contracts: the core error wrapper (GEN-2) and OAuth's shape on the token route (GEN-3). */
import { CORE_ERRORS } from "../http/answers.ts";
import { coreErrorSchema, oauthErrorSchema } from "../routes/schemas.ts";
import type { Json } from "./json.ts";
import type { ErrorWords } from "./notes.ts";
import { refTo, upstreamErrorSchema } from "./schemas.ts";

interface ErrorAnswer {
  readonly code: string;
  readonly message: string;
  readonly description: string;
  readonly details?: Json;
}

/** By status; the names of the components are those of the codes. */
const CORE: Readonly<Record<number, ErrorAnswer>> = {
  [CORE_ERRORS.INVALID_REQUEST]: {
    code: "INVALID_REQUEST",
    message: "The body must be a JSON object.",
    description: "The request breaks a rule of its route; nothing was done. Do not repeat it unchanged.",
  },
  [CORE_ERRORS.UNAUTHORIZED]: {
    code: "UNAUTHORIZED",
    message: "A valid bearer token is required.",
    description:
      "The bearer token is missing, malformed, unknown or expired, or its client or the parent account is inactive. " +
      "Get a new token and repeat the call once.",
  },
  [CORE_ERRORS.FORBIDDEN]: {
    code: "FORBIDDEN",
    message: "The number belongs to another client.",
    description: "The number belongs to another client.",
  },
  [CORE_ERRORS.NOT_FOUND]: {
    code: "NOT_FOUND",
    message: "There is no such number.",
    description: "There is no such number.",
  },
  [CORE_ERRORS.CONFLICT]: {
    code: "CONFLICT",
    message: "The idempotency key was used with another payload.",
    description: "The idempotency key was used with another payload. A changed payload needs a new key.",
  },
  [CORE_ERRORS.SERVER_ERROR]: {
    code: "SERVER_ERROR",
    message: "The service failed.",
    description: "An unexpected failure. It may be temporary.",
  },
  [CORE_ERRORS.UPSTREAM_ERROR]: {
    code: "UPSTREAM_ERROR",
    message: "The inventory search failed.",
    description: "The upstream inventory search failed; `details.providerStatus` has its status. It may be temporary.",
    details: { providerStatus: 503 },
  },
};

const OAUTH: Readonly<Record<number, ErrorAnswer>> = {
  400: {
    code: "invalid_request",
    message: "Client credentials are missing.",
    description:
      "`invalid_request`: credentials are missing. `unsupported_grant_type`: another grant than client_credentials.",
  },
  401: {
    code: "invalid_client",
    message: "The client is unknown, inactive, or its secret is wrong.",
    description:
      "`invalid_client`: wrong credentials, or the client or its parent account is inactive. Do not repeat it.",
  },
  500: {
    code: "server_error",
    message: "No token could be issued.",
    description: "`server_error`: no token could be issued. Repeat it after a while.",
  },
};

/** All of them, for `components.responses`. */
export function sharedResponses(): Json {
  const core = Object.values(CORE).map((answer) => [componentName(answer), coreResponse(answer)]);
  const oauth = Object.values(OAUTH).map((answer) => [componentName(answer), oauthResponse(answer)]);
  return Object.fromEntries([...core, ...oauth]);
}

/** The answer with a status on a route of that contract; its own words where the route has some, else the shared one. */
export function errorResponse(contract: "core" | "token", status: number, words?: ErrorWords): Json {
  const answer = (contract === "core" ? CORE : OAUTH)[status];
  if (answer === undefined) throw new Error(`no ${contract} error has the status ${status}`);
  if (words === undefined) return { $ref: `#/components/responses/${componentName(answer)}` };
  const own = { ...answer, ...words };
  return contract === "core" ? coreResponse(own) : oauthResponse(own);
}

/** `NOT_FOUND` gives `NotFound`, `invalid_client` gives `OAuthInvalidClient`. */
function componentName({ code }: ErrorAnswer): string {
  const words = code.split("_").map((word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase());
  return (code === code.toLowerCase() ? "OAuth" : "") + words.join("");
}

function coreResponse({ code, message, description, details = {} }: ErrorAnswer): Json {
  const schema = refTo(code === "UPSTREAM_ERROR" ? upstreamErrorSchema : coreErrorSchema);
  const example = { error: { code, message, details }, requestId: "req_a8244c_000001" };
  return { description, content: { "application/json": { schema, example } } };
}

function oauthResponse({ code, message, description }: ErrorAnswer): Json {
  const example = { error: code, error_description: message };
  return { description, content: { "application/json": { schema: refTo(oauthErrorSchema), example } } };
}
