/** Whatever comes back: an answer, or a `ServiceError` that shows nothing of it; never anything else, and never no end. */
import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/internal/clock.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { maskedReason } from "../../../src/messaging/client/answers.ts";
import {
  ApiError,
  type Client,
  type ClientOptions,
  ConnectionError,
  createClient,
  OAuthError,
  ResponseValidationError,
  type SendResult,
  ServiceError,
  TimeoutError,
} from "../../../src/messaging/client/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { sized } from "../../setup/form.ts";
import { leastAnswers, OPERATIONS, type Operation } from "./operations.ts";
import { tokenBody } from "./support.ts";

const TIMEOUT_MS = 300_000;
/** Stands in every answer; no name of anything, so that no error shows it. */
const MARK = "marked 4711";

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
function scripted(answer: () => Promise<Response> | Response, options: Partial<ClientOptions> = {}): Client {
  const token = () => Response.json(tokenBody("token-1"));
  return createClient({
    ...{ baseUrl: "https://api.example.com", clientId: "client_1", clientSecret: "secret of the client" },
    ...{ maxRetries: 1, timeoutMs: TIMEOUT_MS, clock: hastyClock, logger: silentLogger },
    fetch: async (input) => (String(input).endsWith("/api/auth/token") ? token() : answer()),
    ...options,
  });
}

/** The `ServiceError` of a call, or null when it succeeded. Anything else fails the test. */
async function endOf(call: Promise<unknown>): Promise<ServiceError | null> {
  const outcome: unknown = await call.then(
    () => null,
    (error: unknown) => error,
  );
  if (outcome === null || outcome instanceof ServiceError) return outcome;
  throw new Error(`no ServiceError: ${inspect(outcome)}`);
}

function expectDiscreet(error: ServiceError | null): void {
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

const anyMode = fc.constantFrom("warn", "throw", "off");
const anyStatus = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(200, 202, 400, 401, 403, 404, 409, 429, 500, 502, 503) },
  fc.integer({ min: 200, max: 599 }),
);

const partOf = <T extends object>(fields: { [Name in keyof T]: fc.Arbitrary<T[Name]> }) =>
  fc.record(fields, { requiredKeys: [] });
const jsonOr = (...values: readonly string[]) => fc.oneof(fc.constantFrom(...values), fc.jsonValue());

const anyHeaders = partOf({
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
const anyBody = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  anyError.map((value) => JSON.stringify(value)),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "null", "[]", "{", `<html>${MARK}</html>`, `"${MARK}"`, '{"__proto__":{"numbers":[]}}'),
  fc.constant("[".repeat(50_000)),
  fc.uint8Array({ maxLength: 64 }),
);

/** An answer that may have a body, or must not. */
function answerOf(status: number, body: string | Uint8Array, headers: Record<string, string>): Response {
  const empty = [204, 205, 304].includes(status);
  return new Response(empty ? null : (body as string), { status, headers });
}

const LEAST = leastAnswers(MARK);
/** With a secret that the service made. */
const leastOf = ({ name, answers }: Operation): object =>
  name === "webhooks.update" ? { ...LEAST[answers], generatedSecret: MARK } : LEAST[answers];

/** A call, with the error that its result makes on request. */
async function play({ call }: Operation, client: Client): Promise<unknown> {
  const result = (await call(client)) as SendResult | null;
  return result?.throwIfRejected?.() ?? result;
}

const anyOperation = fc.constantFrom(...OPERATIONS);

describe("a call with any answer", () => {
  it("ends in an answer or a ServiceError that shows nothing of it (CLI-7, GEN-12)", async () => {
    const example = fc.asyncProperty(anyOperation, anyMode, anyStatus, anyBody, anyHeaders, async (...given) => {
      const [operation, validateResponses, status, body, headers] = given;
      let requests = 0;
      const answer = () => {
        requests += 1;
        return answerOf(status, body, headers as Record<string, string>);
      };
      expectDiscreet(await endOf(play(operation, scripted(answer, { validateResponses }))));
      // The first, one after a 401, and one retry.
      expect(requests).toBeLessThanOrEqual(3);
    });
    await fc.assert(example, { numRuns: sized({ quick: 60, full: 300 }) });
  });

  it("that is right except in one place ends in an answer or a ServiceError (CLI-7)", async () => {
    const other = fc.oneof(fc.constant(undefined), fc.constant(MARK), fc.jsonValue());
    const example = fc.asyncProperty(anyOperation, anyMode, fc.nat(), other, async (operation, mode, pick, value) => {
      const least = leastOf(operation);
      const places = placesIn(least);
      const body = JSON.stringify(withValue(least, places[pick % places.length] ?? [], value)) ?? "";
      const client = scripted(() => new Response(body), { validateResponses: mode });
      expectDiscreet(await endOf(play(operation, client)));
    });
    await fc.assert(example, { numRuns: sized({ quick: 60, full: 300 }) });
  });

  it.each(OPERATIONS)("ends $name without an object in a ResponseValidationError, in every mode", async ({ call }) => {
    for (const validateResponses of ["warn", "throw", "off"] as const) {
      for (const body of ["", "<html></html>", "null", "[]", "7", '"text"', "{"]) {
        const error = await endOf(call(scripted(() => new Response(body), { validateResponses })));
        expect(error).toBeInstanceOf(ResponseValidationError);
        expect(error?.attempts).toBe(1);
      }
    }
  });
});

describe("a call without a whole answer", () => {
  it("ends in a ConnectionError whatever fetch fails with", async () => {
    const anything = fc.anything({ withNullPrototype: true });
    const example = fc.asyncProperty(anything, fc.boolean(), async (thrown, isError) => {
      const error = isError ? Object.assign(new TypeError(MARK), { cause: thrown }) : thrown;
      const end = await endOf(scripted(() => Promise.reject(error)).whoami());
      expect(end).toBeInstanceOf(ConnectionError);
      expect(end).toMatchObject({ attempts: 2, code: "connection_failed" });
    });
    await fc.assert(example, { numRuns: sized({ quick: 50, full: 200 }) });
  });

  it("ends in a ConnectionError when fetch throws at once, or its error can not be read", async () => {
    const thrower = () => {
      throw new Error("at once");
    };
    const unreadable = Object.defineProperty(new Error("x"), "message", { get: thrower });
    expect(await endOf(scripted(thrower).whoami())).toBeInstanceOf(ConnectionError);
    expect(await endOf(scripted(() => Promise.reject(unreadable)).whoami())).toBeInstanceOf(ConnectionError);
  });

  it.each<[string, () => Promise<Response> | Response]>([
    ["fetch never answers", () => new Promise(() => {})],
    ["the body never ends", () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }))],
  ])("ends in a TimeoutError when %s", async (_, answer) => {
    const clock = createFakeClock();
    const end = endOf(scripted(answer, { clock, timeoutMs: 1_000, maxRetries: 0 }).whoami());
    await clock.advance(1_000);
    expect(await end).toBeInstanceOf(TimeoutError);
  });
});

describe("a token route with any answer", () => {
  it("ends a call in a ServiceError, or in a token that a header can carry (CLI-4, GEN-3)", async () => {
    const access_token = fc.oneof(fc.constantFrom("a\nb", "", "é", "token-2"), fc.jsonValue());
    const anyToken = fc.record({ access_token, expires_in: fc.jsonValue() }, { requiredKeys: [] });
    const body = fc.oneof(
      anyBody,
      anyToken.map((value) => JSON.stringify(value)),
    );
    const example = fc.asyncProperty(anyStatus, body, anyHeaders, async (status, text, headers) => {
      // Looked at afterwards: what fetch throws is a failed connection to the client.
      const authorizations: unknown[] = [];
      const fetch: ClientOptions["fetch"] = async (input, init) => {
        if (String(input).endsWith("/token")) return answerOf(status, text, headers as Record<string, string>);
        authorizations.push((init?.headers as Record<string, string> | undefined)?.authorization);
        return Response.json(LEAST.whoami);
      };
      const error = await endOf(scripted(() => Response.json({}), { fetch }).whoami());
      expectDiscreet(error);
      for (const one of authorizations) expect(one).toMatch(/^Bearer [!-~]+$/);
      if (error !== null && authorizations.length === 0) expect(error).toBeInstanceOf(OAuthError);
    });
    await fc.assert(example, { numRuns: sized({ quick: 60, full: 300 }) });
  });
});

/** All places of a JSON value, deepest last. */
function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, field]) => placesIn(field, [...path, name]))];
}

/** A copy with another value at a place; undefined takes the field away. */
function withValue(value: unknown, [name, ...rest]: readonly string[], other: unknown): unknown {
  if (name === undefined) return other;
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[name] = withValue(copy[name], rest, other);
  return copy;
}
