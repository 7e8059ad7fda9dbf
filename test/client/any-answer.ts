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
import { tokenBody } from "./support.ts";

const TIMEOUT_MS = 300_000;
/** Stands in every answer; no name of anything, so that no error shows it. */
export const MARK = "marked 4711";

/** Time-outs never come; every shorter wait is over at once. */
const hastyClock: Clock = {
  now: () => 1_760_000_000_000,
  monotonic: () => 0,
  setTimeout(callback, ms) {
    const immediate = ms >= TIMEOUT_MS ? undefined : setImmediate(callback);
    return { cancel: () => clearImmediate(immediate), keepAlive: () => {} };
  },
};

/** A client whose token route works, and whose other calls are answered by `answer`. */
export function scripted(answer: () => Promise<Response> | Response, options: Partial<ClientOptions> = {}): Client {
  const token = () => Response.json(tokenBody("token-1"));
  return createClient({
    ...{ baseUrl: "https://api.example.com", clientId: "client_1", clientSecret: "secret of the client" },
    ...{ maxRetries: 1, timeoutMs: TIMEOUT_MS, clock: hastyClock, logger: silentLogger },
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

export const anyMode = fc.constantFrom("warn", "throw", "off");
export const anyStatus = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(200, 202, 400, 401, 403, 404, 409, 429, 500, 502, 503) },
  fc.integer({ min: 200, max: 599 }),
);

const partOf = <T extends object>(fields: { [Name in keyof T]: fc.Arbitrary<T[Name]> }) =>
  fc.record(fields, { requiredKeys: [] });
const jsonOr = (...values: readonly string[]) => fc.oneof(fc.constantFrom(...values), fc.jsonValue());

export const anyHeaders = partOf({
  "content-type": fc.constantFrom("application/json", "text/html; charset=utf-8", "application/xml", "image/png", "x"),
  "retry-after": fc.constantFrom(
    ...["0", "1", "60", "61", "-5", "1e9", "99999999999999999999", "soon", "Fri, 31 Dec 9999 23:59:59 GMT"],
  ),
  location: fc.constant("https://elsewhere.example/"),
});
const anyError = partOf({
  error: fc.oneof(
    jsonOr("invalid_client", MARK),
    partOf({
      code: jsonOr("UNAUTHORIZED", "CONFLICT", "UPSTREAM_ERROR", MARK),
      message: jsonOr(MARK),
      details: fc.oneof(fc.record({ providerStatus: fc.jsonValue(), mark: fc.constant(MARK) }), fc.jsonValue()),
    }),
  ),
  requestId: jsonOr("req_1", MARK),
});
export const anyBody = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  anyError.map((value) => JSON.stringify(value)),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "null", "[]", "{", `<html>${MARK}</html>`, `"${MARK}"`, '{"__proto__":{"numbers":[]}}'),
  fc.constant("[".repeat(50_000)),
  fc.uint8Array({ maxLength: 64 }),
);

/** An answer that may have a body, or must not. */
export function answerOf(status: number, body: string | Uint8Array, headers: Record<string, string>): Response {
  const empty = [204, 205, 304].includes(status);
  return new Response(empty ? null : (body as string), { status, headers });
}
