/** The client's options: documented, validated, then defaulted. */
import { SetupError } from "../../errors.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../../internal/clock.ts";
import { type Logger, loggerOption } from "../../internal/logger.ts";
import { hasCredentials, isLoopback, isPrivateHost } from "../../internal/network.ts";
import {
  booleanOption,
  choiceOption,
  functionOption,
  invalidOption,
  numberOption,
  refuseUnknownOptions,
  textOption,
} from "../../internal/options.ts";
import { isUnsetInBuild } from "../../internal/process.ts";

/** How long to wait before a retry: a random part of `min(maxMs, baseMs * 2 ** (retry - 1))` (full jitter). */
export interface BackoffOptions {
  /** Milliseconds, 0 to 60,000. Default 250. */
  readonly baseMs?: number | undefined;
  /** Milliseconds, 0 to 60,000. Default 8,000. */
  readonly maxMs?: number | undefined;
}

/** The same, with its defaults. */
export interface Backoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

export interface ClientOptions {
  /**
   * The service's base address; a path in it is kept (GEN-13). Must be `https`; `http` is taken for this machine (`localhost`,
   * `*.localhost`, 127.0.0.0/8, `[::1]`), and for private hosts with `allowHttpToPrivateHosts`.
   */
  readonly baseUrl: string;
  /**
   * Take `http` in `baseUrl` for hosts of a private network too, such as `http://emulator:4010` under docker compose: a private
   * address, a name without a dot, or a name under `.internal`, `.local`, `.localdomain`, `.lan`, `.home.arpa`, `.svc` or `.test`. The
   * client's secret crosses that network unencrypted. `http` to a public host stays refused. Default false.
   */
  readonly allowHttpToPrivateHosts?: boolean | undefined;
  /** The id of the API client. */
  readonly clientId: string;
  /** Its secret. */
  readonly clientSecret: string;
  /** How the token request names the client: in its form body (default, recommended) or by HTTP Basic (CLI-1). */
  readonly authMethod?: "body" | "basic" | undefined;
  /**
   * How long one attempt may take, answer included. Milliseconds, 1 to 300,000: Node's `fetch` waits no longer for an answer.
   * Default 30,000.
   */
  readonly timeoutMs?: number | undefined;
  /** Retries of one call, the one after a 401 not counted. 0 to 10. Default 2. */
  readonly maxRetries?: number | undefined;
  /**
   * Retry a call that the service refused with 429 or `RATE_LIMITED`, after its `Retry-After` (60 s at most, as after a 5xx) or the
   * usual backoff. Counts against `maxRetries`. Default false: the error comes at once, with `retryAfterMs`.
   */
  readonly retryRateLimited?: boolean | undefined;
  /** How long to wait before a retry: a random time up to `baseMs`, doubled for each retry, at most `maxMs`. */
  readonly backoff?: BackoffOptions | undefined;
  /** What to do with an answer that differs from the specification where the client can go on: log it (default), throw, or nothing. */
  readonly validateResponses?: "warn" | "throw" | "off" | undefined;
  /** Refuse calls that the service would refuse for certain, before any request. Default true (SEA-15). */
  readonly validateRequests?: boolean | undefined;
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Default: warnings and errors to standard error, one JSON object per line. */
  readonly logger?: Logger | undefined;
  /** Called before each request. What a hook throws is logged and dropped. */
  readonly onRequest?: ((notice: RequestNotice) => void) | undefined;
  /** Called after each answer, read to its end. */
  readonly onResponse?: ((notice: ResponseNotice) => void) | undefined;
  /** Called before the wait that precedes a retry. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined;
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock | undefined;
  /** For tests. */
  readonly random?: Random | undefined;
}

/** One request; never its body, its token or its recipients. */
export interface RequestNotice {
  /** `messages.send`, or `token`. Of `client.request()`, the method and the route. */
  readonly operation: string;
  readonly method: string;
  /**
   * The route as the specification writes it, without its parameters: `/api/core/numbers/{numberId}`. Of `client.request()`, the
   * path with `{id}` for each part that is not a plain word, without the query.
   */
  readonly route: string;
  /** 1 for the first. */
  readonly attempt: number;
  readonly idempotencyKey: string | null;
}

export interface ResponseNotice extends RequestNotice {
  /** HTTP status. */
  readonly status: number;
  readonly durationMs: number;
  /** Of a failure; otherwise null (GEN-4). */
  readonly requestId: string | null;
}

export interface RetryNotice extends RequestNotice {
  /** The wait, milliseconds; 0 after a 401. */
  readonly delayMs: number;
  /** The failure's code: `SERVER_ERROR`, `connection_failed`, `UNAUTHORIZED`. */
  readonly reason: string;
}

export interface CallOptions {
  /** Ends the call with an `AbortedError`. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long one attempt of this call may take, answer included. Milliseconds, 1 to 300,000. Default: the client's. A token request
   * keeps the client's, because other calls wait for it too; `signal` ends the whole call.
   */
  readonly timeoutMs?: number | undefined;
  /** Retries of this call. 0 to 10. Default: the client's. */
  readonly maxRetries?: number | undefined;
  /**
   * More headers, such as `traceparent`; values are visible ASCII with spaces. `user-agent` can be replaced. Headers that the client
   * or HTTP sets are refused: `authorization`, `idempotency-key`, `accept`, `content-type`, `host` and the like.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface SendOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters. Default: a random UUID. Give the one of an error to go on with that send. */
  readonly idempotencyKey?: string | undefined;
}

/** Options of `client.request()`. */
export interface RequestOptions extends CallOptions {
  /** Sent as JSON. Not for GET. */
  readonly body?: unknown;
  /** 1 to 255 visible ASCII characters. Default: none. A POST or PATCH is retried only with one. */
  readonly idempotencyKey?: string | undefined;
}

/** What `client.request()` can do. */
export type RequestMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface ResolvedClientOptions {
  /** What each call is refused with: `next build` does not have the credentials yet. Otherwise null. */
  readonly missing: SetupError | null;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly authMethod: "body" | "basic";
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly retryRateLimited: boolean;
  readonly backoff: Backoff;
  readonly validateResponses: "warn" | "throw" | "off";
  readonly validateRequests: boolean;
  readonly fetch: typeof globalThis.fetch;
  readonly logger: Logger;
  readonly hooks: Pick<ClientOptions, "onRequest" | "onResponse" | "onRetry">;
  readonly clock: Clock;
  readonly random: Random;
}

/** Bounds of what a call may change for itself too. */
export const TIMEOUT_BOUNDS = { min: 1, max: 300_000, unit: "ms" } as const;
export const RETRY_BOUNDS = { min: 0, max: 10, unit: "retries" } as const;

const KNOWN = [
  "baseUrl",
  "allowHttpToPrivateHosts",
  "clientId",
  "clientSecret",
  "authMethod",
  "timeoutMs",
  "maxRetries",
  "retryRateLimited",
  "backoff",
  "validateResponses",
  "validateRequests",
  "fetch",
  "logger",
  "onRequest",
  "onResponse",
  "onRetry",
  "clock",
  "random",
] as const satisfies readonly (keyof ClientOptions)[];

/** @throws SetupError naming the option and the fix */
export function resolveClientOptions(options: ClientOptions): ResolvedClientOptions {
  refuseUnknownOptions("createClient", options, KNOWN);
  const { backoff, validateRequests, fetch } = options;
  const unset = (["baseUrl", "clientId", "clientSecret"] as const).find((name) => isUnsetInBuild(options[name]));
  if (backoff !== undefined) refuseUnknownOptions("backoff", backoff, ["baseMs", "maxMs"]);
  const wait = { min: 0, max: 60_000, unit: "ms" };
  return {
    missing: unset === undefined ? null : missing(unset),
    baseUrl: isUnsetInBuild(options.baseUrl) ? "" : baseUrlOption(options.baseUrl, options.allowHttpToPrivateHosts),
    clientId: isUnsetInBuild(options.clientId) ? "" : requiredText("clientId", options.clientId),
    clientSecret: isUnsetInBuild(options.clientSecret) ? "" : requiredText("clientSecret", options.clientSecret),
    authMethod: choiceOption("authMethod", options.authMethod, "body", ["body", "basic"]),
    timeoutMs: numberOption("timeoutMs", options.timeoutMs, 30_000, TIMEOUT_BOUNDS),
    maxRetries: numberOption("maxRetries", options.maxRetries, 2, RETRY_BOUNDS),
    retryRateLimited: booleanOption("retryRateLimited", options.retryRateLimited, false),
    backoff: {
      baseMs: numberOption("backoff.baseMs", backoff?.baseMs, 250, wait),
      maxMs: numberOption("backoff.maxMs", backoff?.maxMs, 8_000, wait),
    },
    validateResponses: choiceOption("validateResponses", options.validateResponses, "warn", ["warn", "throw", "off"]),
    validateRequests: booleanOption("validateRequests", validateRequests, true),
    fetch: functionOption("fetch", fetch) ?? ((...args) => globalThis.fetch(...args)),
    logger: loggerOption(options.logger),
    hooks: {
      ...hookOption("onRequest", options.onRequest),
      ...hookOption("onResponse", options.onResponse),
      ...hookOption("onRetry", options.onRetry),
    },
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

function baseUrlOption(value: unknown, allowHttpToPrivateHosts: unknown): string {
  const isPrivateAllowed = booleanOption("allowHttpToPrivateHosts", allowHttpToPrivateHosts, false);
  if (isMissing(value)) throw missing("baseUrl");
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw invalidOption("baseUrl", 'must be the service\'s address, such as "https://api.example.com"', value);
  }
  if (hasCredentials(url) || url.search !== "" || url.hash !== "") {
    throw refused("baseUrl", "must have no credentials, query or fragment.");
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname.replace(/^\[|\]$/g, ""))) {
    const isPrivate = isPrivateHost(url.hostname);
    if (!isPrivate || !isPrivateAllowed) throw refused("baseUrl", isPrivate ? `${NOT_HTTP} ${ALLOW}` : NOT_HTTP);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

const NOT_HTTP =
  "must be https, because the client's secret is sent there; http is for this machine, such as localhost or *.localhost.";
const ALLOW =
  "This host is in a private network: allowHttpToPrivateHosts: true takes it, if everybody in that network may read the secret.";

function requiredText(name: string, value: unknown): string {
  const text = isMissing(value) ? undefined : textOption(name, value);
  if (text === undefined) throw missing(name);
  return text;
}

/** A variable without a value gives an empty text. */
function isMissing(value: unknown): boolean {
  return value === undefined || value === "";
}

function missing(option: string): SetupError {
  return refused(option, "is missing; is the environment variable set?");
}

function refused(option: string, rule: string): SetupError {
  return new SetupError("invalid_option", `Option "${option}" ${rule}`, { fields: { option } });
}

function hookOption<Name extends string, F>(name: Name, value: F): { [K in Name]?: Exclude<F, undefined> } {
  const hook = functionOption(name, value);
  return (hook === undefined ? {} : { [name]: hook }) as { [K in Name]?: Exclude<F, undefined> };
}
