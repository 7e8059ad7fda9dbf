/** The client of the service's API: one method per route. */
import { type Ground, guardedHooks } from "./attempts.ts";
import {
  type Call,
  type CallOptions,
  type CoreCall,
  CoreCalls,
  callOf,
  type RequestMethod,
  type RequestOptions,
  type SendOptions,
} from "./call.ts";
import {
  messagesSendCall,
  numbersGetCall,
  numbersListCall,
  numbersSearchCall,
  numbersUpdateCall,
  requestCall,
  webhooksGetCall,
  webhooksUpdateCall,
  whoamiCall,
} from "./operations.ts";
import { type ClientOptions, resolveOptions } from "./options.ts";
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

/**
 * A client of the service's API. Safe to share: it holds one token, which it refreshes by itself, and no other state.
 * Every method rejects with a `ServiceError`: `InvalidArgumentError` before any request; `ApiError` and its kinds for what the
 * service refuses; `OAuthError` for the token route; `ConnectionError`, `TimeoutError`, `AbortedError` when no complete answer
 * came; `ResponseValidationError` for a success that is not as specified.
 */
export interface Client {
  /** Who is calling: identity, capabilities, numbers in short (WHO-1). */
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
  const resolved = resolveOptions(options);
  const { fetch, clock, timeoutMs, logger, maxRetries, retryRateLimited, backoff, random, validateRequests } = resolved;
  const request = tokenRequest(resolved);
  const ground: Ground = {
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
