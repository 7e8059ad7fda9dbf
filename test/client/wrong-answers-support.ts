/** A client whose service answers anything: the answers, and what a call may end in. */
import { inspect } from "node:util";
import fc from "fast-check";
import { expect } from "vitest";
import { maskedReason } from "../../src/client/answers.ts";
import {
  ApiError,
  type Client,
  type ClientOptions,
  createClient,
  OAuthError,
  ServiceError,
} from "../../src/client/index.ts";
import type { Clock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { leastAnswers } from "./least-answers.ts";

const TIMEOUT_MS = 300_000;
/** Stands in every answer; no name of anything, so that no error shows it. */
export const MARK = "marked 4711";

export interface Operation {
  readonly name: string;
  readonly call: (client: Client) => Promise<unknown>;
  /** The least that it answers with. */
  readonly least: object;
}

export { number } from "./least-answers.ts";

const LEAST = leastAnswers(MARK);
export const OPERATIONS: readonly Operation[] = [
  { name: "whoami", call: (client) => client.whoami(), least: LEAST.whoami },
  { name: "webhooks.get", call: (client) => client.webhooks.get(), least: LEAST["webhooks.get"] },
  {
    name: "webhooks.update",
    call: (client) => client.webhooks.update("inbound", { signingEnabled: true, secret: "s".repeat(32) }),
    least: { ...LEAST["webhooks.update"], generatedSecret: MARK },
  },
  { name: "numbers.list", call: (client) => client.numbers.list(), least: LEAST["numbers.list"] },
  { name: "numbers.get", call: (client) => client.numbers.get("num_1"), least: LEAST["numbers.list"] },
  { name: "numbers.search", call: (client) => client.numbers.search(), least: LEAST["numbers.search"] },
  { name: "numbers.update", call: (client) => client.numbers.update("num_1", {}), least: LEAST["numbers.update"] },
  {
    name: "messages.send",
    call: (client) =>
      client.messages
        .send({ sendFrom: "num_1", to: ["+14155550123"], messageType: "SMS", externalReference: "order-1" })
        .then((sent) => sent.throwIfRejected()),
    least: LEAST["messages.send"],
  },
];

/** Time-outs never come; every shorter wait is over at once. */
const hastyClock: Clock = {
  now: () => 1_760_000_000_000,
  monotonic: () => 0,
  setTimeout(callback, ms) {
    const immediate = ms >= TIMEOUT_MS ? undefined : setImmediate(callback);
    return { cancel: () => clearImmediate(immediate), keepAlive: () => {} };
  },
};

export const token = () => Response.json({ access_token: "token-1", token_type: "bearer", expires_in: 3600 });

/** A client whose token route works, and whose other calls are answered by `answer`. */
export function scripted(answer: () => Promise<Response> | Response, options: Partial<ClientOptions> = {}): Client {
  return createClient({
    baseUrl: "https://api.example.com",
    clientId: "client_1",
    clientSecret: "secret of the client",
    maxRetries: 1,
    timeoutMs: TIMEOUT_MS,
    clock: hastyClock,
    logger: silentLogger,
    fetch: async (input) => (String(input).endsWith("/api/auth/token") ? token() : answer()),
    ...options,
  });
}

/** The `ServiceError` of a call, or null when it succeeded. Anything else fails the test. */
export async function endOf(call: Promise<unknown>): Promise<ServiceError | null> {
  const outcome: unknown = await call.then(
    () => null,
    (error: unknown) => error,
  );
  if (outcome === null || outcome instanceof ServiceError) return outcome;
  throw new Error(`no ServiceError: ${inspect(outcome)}`);
}

export function expectDiscreet(error: ServiceError | null): void {
  if (error === null) return;
  const shown = [error.message, error.stack, JSON.stringify(error), inspect(error, { depth: 9 })].join("\n");
  // The service's reason was not sent by anybody, and is shown; nothing else of the answer is.
  expect(shown.replaceAll(reasonIn(error) || "\0", "")).not.toContain(MARK);
  expect(shown).not.toMatch(/\+1415|secret of the client|token-1/);
}

function reasonIn(error: ServiceError): string {
  if (error instanceof ApiError) return maskedReason(error.serviceMessage, []);
  return error instanceof OAuthError ? maskedReason(error.errorDescription, []) : "";
}

export const anyOperation = fc.constantFrom(...OPERATIONS);
export const anyMode = fc.constantFrom("warn", "throw", "off");
export const anyStatus = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(200, 202, 400, 401, 403, 404, 409, 429, 500, 502, 503) },
  fc.integer({ min: 200, max: 599 }),
);
export const anyHeaders = fc.record(
  {
    "content-type": fc.constantFrom(
      "application/json",
      "text/html; charset=utf-8",
      "application/xml",
      "image/png",
      "x",
    ),
    "retry-after": fc.constantFrom(
      "0",
      "1",
      "60",
      "61",
      "-5",
      "1e9",
      "99999999999999999999",
      "soon",
      "Fri, 31 Dec 9999 23:59:59 GMT",
    ),
    location: fc.constant("https://elsewhere.example/"),
  },
  { requiredKeys: [] },
);
const anyError = fc.record(
  {
    error: fc.oneof(
      fc.constantFrom("invalid_client", MARK),
      fc.jsonValue(),
      fc.record(
        {
          code: fc.oneof(fc.constantFrom("UNAUTHORIZED", "CONFLICT", "UPSTREAM_ERROR", MARK), fc.jsonValue()),
          message: fc.oneof(fc.constant(MARK), fc.jsonValue()),
          details: fc.oneof(fc.record({ providerStatus: fc.jsonValue(), mark: fc.constant(MARK) }), fc.jsonValue()),
        },
        { requiredKeys: [] },
      ),
    ),
    requestId: fc.oneof(fc.constantFrom("req_1", MARK), fc.jsonValue()),
  },
  { requiredKeys: [] },
);
export const anyBody = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  anyError.map((value) => JSON.stringify(value)),
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "",
    "null",
    "[]",
    "{",
    `<html>${MARK}</html>`,
    `"${MARK}"`,
    '{"__proto__":{"numbers":[]}}',
    "[".repeat(50_000),
  ),
  fc.uint8Array({ maxLength: 64 }),
);

/** An answer that may have a body, or must not. */
export function answerOf(status: number, body: string | Uint8Array, headers: Record<string, string>): Response {
  const empty = [204, 205, 304].includes(status);
  return new Response(empty ? null : (body as string), { status, headers });
}

/** All places of a JSON value, deepest last. */
export function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, field]) => placesIn(field, [...path, name]))];
}

/** A copy with another value at a place; undefined takes the field away. */
export function withValue(value: unknown, [name, ...rest]: readonly string[], other: unknown): unknown {
  if (name === undefined) return other;
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[name] = withValue(copy[name], rest, other);
  return copy;
}
