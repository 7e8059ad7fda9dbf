/** The client of the service's API: one method per route, and the call that each method makes. */
import { randomUUID } from "node:crypto";
import { recordOf } from "./answers.ts";
import { type CallSettings, guardedHooks } from "./attempts.ts";
import { type Call, type CoreCall, CoreCalls, callOf } from "./call.ts";
import {
  bodyIssues,
  jsonOf,
  keyIssues,
  kindIssues,
  methodIssues,
  numberIdIssues,
  numbersOf,
  numberUpdateIssues,
  type Operation,
  optionIssues,
  pathIssues,
  searchIssues,
  sendIssues,
  sendResultOf,
  updatedConfigOf,
  updatedNumberOf,
  webhookUpdateIssues,
} from "./checks.ts";
import {
  type CallOptions,
  type ClientOptions,
  type RequestMethod,
  type RequestOptions,
  resolveClientOptions,
  type SendOptions,
} from "./options.ts";
import { TokenSource, tokenRequest } from "./token.ts";
import type {
  ComputedSend,
  NumberSearch,
  NumberSearchResult,
  NumberUpdate,
  PhoneNumber,
  SendRequest,
  SendResult,
  UpdatedWebhookConfig,
  WebhookDefaults,
  WebhookKind,
  WebhookUpdate,
  Whoami,
} from "./types.ts";

// The client of the service's API: one method per route.

/**
 * A client of the service's API. Safe to share: it holds one token, which it refreshes by itself, and no other state.
 * Every method rejects with a `ServiceError`. `InvalidArgumentError` comes before any request. `ApiError` and its kinds mean that the service
 * refused, `OAuthError` that the token route did. `ConnectionError`, `TimeoutError` and `AbortedError` mean that no complete answer came,
 * `ResponseValidationError` that a success is not as specified.
 */
export interface Client {
  /** The caller: identity, capabilities, numbers in short (WHO-1). */
  whoami(options?: CallOptions): Call<Whoami>;
  readonly webhooks: {
    /** Both default configurations; never a secret (WHK-5). A service that does not expose them answers 404 (WHK-27). */
    get(options?: CallOptions): Call<WebhookDefaults>;
    /** Changes one kind's default. Retried only with a `secret` of yours, for a lost answer would lose a generated one. */
    update(kind: WebhookKind, update: WebhookUpdate, options?: CallOptions): Call<UpdatedWebhookConfig>;
  };
  readonly numbers: {
    /** All numbers of this client, in one answer (NUM-1, NUM-4). */
    list(options?: CallOptions): Call<readonly PhoneNumber[]>;
    /** Reads the list and picks one; null when this client has no such number. */
    get(numberId: string, options?: CallOptions): Call<PhoneNumber | null>;
    /** What could be had; assigns nothing (SEA-10). */
    search(search?: NumberSearch, options?: CallOptions): Call<NumberSearchResult>;
    /** Changes a number. Null when the service answers without one (UPD-11): read it again with `get`. */
    update(numberId: string, update: NumberUpdate, options?: CallOptions): Call<PhoneNumber | null>;
  };
  readonly messages: {
    /**
     * Queues one message per recipient. With one idempotency key for all attempts, so that no retry sends twice (SND-17); a
     * rejected recipient is data (CLI-9).
     */
    send<T extends "SMS" | "MMS">(request: ComputedSend<T>, options?: SendOptions): Call<SendResult>;
    send(request: SendRequest, options?: SendOptions): Call<SendResult>;
  };
  /**
   * Makes a call that has no method here, with the same token, retries, time-outs and errors. GET, PUT and DELETE are retried; POST
   * and PATCH only with an `idempotencyKey`.
   *
   * @param path - from `baseUrl` on, encoded, with its query: `/api/core/calls/call_1?page=2`
   * @returns the answer's JSON, unchecked; undefined for an answer without a body
   */
  request(method: RequestMethod, path: string, options?: RequestOptions): Call<unknown>;
}

/**
 * Makes a client. No request is made before the first call.
 *
 * @throws SetupError for every mistake in the options, naming the option and the fix
 * @example
 * const client = createClient({ baseUrl: "https://api.example.com", clientId: "cli_1", clientSecret: "from-the-environment" });
 * console.log(typeof client.messages.send); // "function"
 */
export function createClient(options: ClientOptions): Client {
  const resolved = resolveClientOptions(options);
  const { fetch, clock, timeoutMs, logger, maxRetries, retryRateLimited, backoff, random, validateRequests } = resolved;
  const request = tokenRequest(resolved);
  const ground: CallSettings = {
    ...{ fetch, clock, timeoutMs, secrets: request.secrets },
    hooks: guardedHooks(resolved.hooks, logger),
    rules: { maxRetries, retryRateLimited, backoff, random },
  };
  const calls = new CoreCalls(resolved, ground, new TokenSource(request, ground, logger));
  const run = <T>(operation: string, make: () => CoreCall<T>): Call<T> => callOf(calls.run(operation, make));
  const checks = { validateRequests };
  return {
    whoami: (options) => run("whoami", () => whoamiCall(options)),
    webhooks: {
      get: (options) => run("webhooks.get", () => webhooksGetCall(options)),
      update: (kind, update, options) =>
        run("webhooks.update", () => webhooksUpdateCall(checks, kind, { update, options })),
    },
    numbers: {
      list: (options) => run("numbers.list", () => numbersListCall(options)),
      get: (numberId, options) => run("numbers.get", () => numbersGetCall(numberId, options)),
      search: (search, options) => run("numbers.search", () => numbersSearchCall(checks, search, options)),
      update: (numberId, update, options) =>
        run("numbers.update", () => numbersUpdateCall(checks, numberId, { update, options })),
    },
    messages: {
      send: (request: SendRequest, options?: SendOptions) =>
        run("messages.send", () => messagesSendCall(checks, request, options)),
    },
    request: (method, path, options) => run("request", () => requestCall(method, path, options)),
  };
}

// What each method asks of which route, and how its arguments are checked.

/** Whether requests are held to the service's rules before they are made. */
interface Checks {
  readonly validateRequests: boolean;
}

/** The one place where the service's JSON becomes a type: its schema was looked at as `validateResponses` says. */
function asShown<T>(body: unknown): T {
  return body as T;
}

const CALL_OPTIONS = ["signal", "timeoutMs", "maxRetries", "headers"] as const satisfies (keyof CallOptions)[];
const SEND_OPTIONS = [...CALL_OPTIONS, "idempotencyKey"] as const satisfies (keyof SendOptions)[];
const REQUEST_OPTIONS = [...SEND_OPTIONS, "body"] as const satisfies (keyof RequestOptions)[];
/** A repetition of these does no more than the first (RFC 9110, 9.2.2). */
const REPEATABLE: ReadonlySet<unknown> = new Set<RequestMethod>(["GET", "PUT", "DELETE"]);
/** A part of a path that identifies nothing. */
const PLAIN_PART = /^(?:[A-Za-z][A-Za-z_-]{0,39}|v\d{1,3})?$/;

function whoamiCall(options?: CallOptions): CoreCall<Whoami> {
  return readCall<Whoami>("whoami", "/api/core/whoami", { operation: "whoami", options, read: asShown });
}

function webhooksGetCall(options?: CallOptions): CoreCall<WebhookDefaults> {
  return readCall<WebhookDefaults>("webhooks.get", "/api/core/webhooks", {
    operation: "webhooks.get",
    options,
    read: asShown,
  });
}

function webhooksUpdateCall(
  checks: Checks,
  kind: WebhookKind,
  change: { readonly update: WebhookUpdate; readonly options: CallOptions | undefined },
): CoreCall<UpdatedWebhookConfig> {
  const { update, options } = change;
  const route = `/api/core/webhooks/${kind}`;
  const body = jsonOf(update);
  // What is sent decides: a getter or a toJSON may write another update than the one that is read here.
  const sent: unknown = body === undefined ? undefined : JSON.parse(body);
  const always = [...kindIssues(kind), ...bodyIssues("update", update, body), ...optionIssues(options, CALL_OPTIONS)];
  const issues = checks.validateRequests && always.length === 0 ? webhookUpdateIssues(sent) : always;
  // A lost answer may have held a generated secret, which the service shows only once (WHK-13).
  const isRepeatable = typeof recordOf(sent).secret === "string";
  return {
    operation: "webhooks.update",
    answers: "webhooks.update",
    method: "PATCH",
    route,
    path: route,
    body,
    idempotencyKey: null,
    isRepeatable,
    options,
    issues,
    read: updatedConfigOf,
  };
}

function numbersListCall(options?: CallOptions): CoreCall<readonly PhoneNumber[]> {
  return readCall("numbers.list", "/api/core/numbers", { operation: "numbers.list", options, read: numbersOf });
}

function numbersGetCall(numberId: string, options?: CallOptions): CoreCall<PhoneNumber | null> {
  const call = readCall<PhoneNumber | null>("numbers.list", "/api/core/numbers", {
    operation: "numbers.get",
    options,
    read: (body, facts) => numbersOf(body, facts).find((number) => number?.numberId === numberId) ?? null,
  });
  return { ...call, issues: [...numberIdIssues(numberId), ...call.issues] };
}

function numbersSearchCall(
  checks: Checks,
  search: NumberSearch | undefined,
  options: CallOptions | undefined,
): CoreCall<NumberSearchResult> {
  const body = jsonOf(search ?? {});
  const always = [...bodyIssues("search", search, body), ...optionIssues(options, CALL_OPTIONS)];
  const issues = checks.validateRequests && always.length === 0 ? searchIssues(search) : always;
  const route = "/api/core/numbers/search";
  return {
    operation: "numbers.search",
    answers: "numbers.search",
    method: "POST",
    route,
    path: route,
    body,
    idempotencyKey: null,
    isRepeatable: true,
    options,
    issues,
    read: asShown,
  };
}

function numbersUpdateCall(
  checks: Checks,
  numberId: string,
  change: { readonly update: NumberUpdate; readonly options: CallOptions | undefined },
): CoreCall<PhoneNumber | null> {
  const { update, options } = change;
  const body = jsonOf(update);
  const always = [
    ...numberIdIssues(numberId),
    ...bodyIssues("update", update, body),
    ...optionIssues(options, CALL_OPTIONS),
  ];
  const issues = checks.validateRequests && always.length === 0 ? numberUpdateIssues(update) : always;
  return {
    operation: "numbers.update",
    answers: "numbers.update",
    method: "PATCH",
    route: "/api/core/numbers/{numberId}",
    path: always.length === 0 ? `/api/core/numbers/${encodeURIComponent(numberId)}` : "",
    body,
    idempotencyKey: null,
    isRepeatable: true,
    options,
    issues,
    read: updatedNumberOf,
  };
}

function messagesSendCall(
  checks: Checks,
  request: SendRequest,
  options: SendOptions | undefined,
): CoreCall<SendResult> {
  const body = jsonOf(request);
  const wrongOptions = optionIssues(options, SEND_OPTIONS);
  const key: unknown = wrongOptions.length > 0 ? undefined : options?.idempotencyKey;
  const wrongKey = key === undefined ? [] : keyIssues(key);
  const always = [...bodyIssues("request", request, body), ...wrongOptions, ...wrongKey];
  const issues = checks.validateRequests && always.length === 0 ? sendIssues(request) : always;
  // Made once for all attempts, and told with every error, so that the send can be taken up again (SND-17).
  const idempotencyKey = typeof key === "string" ? key : randomUUID();
  const route = "/api/core/messages/send";
  return {
    operation: "messages.send",
    answers: "messages.send",
    method: "POST",
    route,
    path: route,
    body,
    idempotencyKey: wrongKey.length > 0 ? null : idempotencyKey,
    isRepeatable: true,
    options,
    issues,
    read: (answer, facts) => sendResultOf(answer, { ...facts, idempotencyKey }),
  };
}

/** A call that this client has no method for. */
function requestCall(method: RequestMethod, path: string, options?: RequestOptions): CoreCall<unknown> {
  const issues = [...methodIssues(method), ...pathIssues(path), ...optionIssues(options, REQUEST_OPTIONS)];
  const route = issues.length === 0 ? routeOf(path) : "";
  const value = issues.length === 0 ? options?.body : undefined;
  const key = issues.length === 0 ? options?.idempotencyKey : undefined;
  const body = value === undefined ? undefined : jsonOf(value);
  if (value !== undefined) issues.push(...bodyIssues("options.body", value, body));
  if (value !== undefined && method === "GET") issues.push("options.body: a GET has none");
  if (key !== undefined) issues.push(...keyIssues(key));
  return {
    operation: issues.length === 0 ? `${method} ${route}` : "request",
    answers: null,
    method,
    route,
    path,
    body,
    idempotencyKey: issues.length === 0 ? (key ?? null) : null,
    isRepeatable: REPEATABLE.has(method) || key !== undefined,
    options,
    issues,
    read: ({ json }) => json,
  };
}

/** What logs and metrics may be told of a path: no ids, no query. */
function routeOf(path: string): string {
  const [plain = ""] = path.split("?");
  return plain
    .split("/")
    .map((part) => (PLAIN_PART.test(part) ? part : "{id}"))
    .join("/");
}

/** A call that only reads. Written out, because spreading objects together costs more than all else here. */
function readCall<T>(
  answers: Operation,
  route: string,
  { operation, options, read }: Pick<CoreCall<T>, "operation" | "options" | "read">,
): CoreCall<T> {
  return {
    operation,
    answers,
    method: "GET",
    route,
    path: route,
    body: undefined,
    idempotencyKey: null,
    isRepeatable: true,
    options,
    issues: optionIssues(options, CALL_OPTIONS),
    read,
  };
}
