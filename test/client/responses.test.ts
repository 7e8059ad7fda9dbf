/** What an answer must have, and whatever else comes back: an answer, or a `ServiceError` that shows nothing of it; never no end. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Operation as Answers, issuesOf, RESPONSES } from "../../src/client/checks.ts";
import {
  type Client,
  type ClientOptions,
  ConnectionError,
  OAuthError,
  ResponseValidationError,
  type SendResult,
  TimeoutError,
} from "../../src/client/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { sized } from "../setup/form.ts";
import {
  answerOf,
  anyBody,
  anyHeaders,
  anyMode,
  anyStatus,
  endOf,
  expectDiscreet,
  MARK,
  scripted,
} from "./any-answer.ts";
import { config, leastAnswers, number, OPERATIONS, type Operation } from "./operations.ts";

const LISTS_CHILD = fileURLToPath(new URL("../../.build/test/client/wrong-lists-child.js", import.meta.url));
const LEAST = leastAnswers(MARK);
const issues = (answers: Answers, body: unknown) => issuesOf(RESPONSES[answers], body);

describe.each(Object.keys(RESPONSES) as Answers[])("the answer to %s", (answers) => {
  const least = LEAST[answers];

  it("may have the least, and fields that the specification does not show", () => {
    expect(issues(answers, least)).toEqual([]);
    expect(issues(answers, withExtra(least))).toEqual([]);
  });

  it("lacks no field, and is an object", () => {
    for (const name of Object.keys(least)) {
      const found = issues(answers, { ...least, [name]: undefined });
      expect(found).toEqual([expect.stringMatching(`^${name}: expected `)]);
    }
    for (const body of [null, undefined, "text", 7, []])
      expect(issues(answers, body)).toEqual(["body: expected object"]);
  });
});

describe("RESPONSES", () => {
  const { whoami, "webhooks.get": webhooks, "numbers.search": search, "messages.send": sent } = LEAST;
  const other = { ...config, eventClass: "MESSAGES_V2", scope: "ACCOUNT" };
  const nulls = { campaignRegId: null, webhookInboundOverride: null, webhookDeliveryOverride: null };
  const available = { e164: "+12065550110", nationalDisplay: null, city: null, state: null, rateCenter: null };
  const texts = ["", "<b>", "\u001b[2J", "+14155550123"].map((to) => ({ ...sent.errors[0], to }));

  it.each<[what: string, answers: Answers, body: object]>([
    ["statuses and capabilities", "whoami", { ...whoami, apiClientStatus: "PAUSED", capabilities: ["x:y"] }],
    ["a number's status", "numbers.list", { numbers: [{ ...number, status: "PORTING" }] }],
    ["any event class (WHK-15)", "webhooks.update", other],
    ["any event class (WHK-15)", "webhooks.get", { ...webhooks, defaults: { inbound: other, delivery: other } }],
    ...[undefined, null, 0, 1_767_225_600_000].map((time): [string, Answers, object] => {
      return ["times (WHK-16)", "webhooks.update", { ...config, previousSecretValidUntil: time, rotatedAt: time }];
    }),
    ...[undefined, null, "https://a.example"].map((endpointUrl): [string, Answers, object] => {
      return ["targets (WHK-14)", "webhooks.update", { ...config, endpointUrl }];
    }),
    ...[undefined, null, "a-secret-of-its-own"].map((generatedSecret): [string, Answers, object] => {
      return ["secrets (WHK-13)", "webhooks.update", { ...config, generatedSecret }];
    }),
    ["numbers with null (NUM-6)", "numbers.list", { numbers: [number, { ...number, ...nulls }] }],
    ["an update without a number (UPD-11)", "numbers.update", { number: null }],
    ["a count without a value (SEA-7)", "numbers.search", { ...search, providerResultCount: null }],
    ["a count (SEA-7)", "numbers.search", { ...search, providerResultCount: 7 }],
    [
      "a group's count that is not that of its numbers, and null in these (SEA-14)",
      "numbers.search",
      { ...search, groups: [{ rateCenter: "X", count: 99, numbers: [available] }] },
    ],
    [
      "any text as a rejected recipient, and none accepted (SND-8, SND-24)",
      "messages.send",
      { results: [], errors: texts },
    ],
    ["a state of today (SND-17)", "messages.send", { ...sent, results: [{ ...sent.results[0], status: "delivered" }] }],
  ])("take %s in %s: %j", (_, answers, body) => {
    expect(issues(answers, body)).toEqual([]);
  });
});

describe("issuesOf()", () => {
  it("tells path and type, and never a value", () => {
    const marked = "marked-4711";
    const results = [{ to: [marked], messageId: { marked }, status: 1, [marked]: marked }];
    expect(issues("messages.send", { results, errors: marked })).toEqual([
      ...["results.0.to: expected string", "results.0.messageId: expected string", "results.0.status: expected string"],
      "errors: expected array",
    ]);
  });

  it("tells integers from other numbers", () => {
    const found = (total: unknown) =>
      issues("whoami", { ...LEAST.whoami, assignedNumbers: { ...LEAST.whoami.assignedNumbers, total } });
    expect(found("7")).toEqual(["assignedNumbers.total: expected number"]);
    expect(found(1.5)).toEqual(["assignedNumbers.total: expected int"]);
    expect(found(1e300)).toHaveLength(1);
  });

  it("tells the first 20 of millions, in a process with a small heap", () => {
    const { stdout, status } = spawnSync(process.execPath, ["--max-old-space-size=128", LISTS_CHILD]);
    expect(status).toBe(0);
    const first = (list: string) => Array.from({ length: 20 }, (_, index) => `${list}.${index}: expected object`);
    expect(JSON.parse(stdout.toString())).toEqual([first("numbers"), first("groups.0.numbers")]);
  });
});

/** Each object in it with one more field. */
function withExtra(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withExtra);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, withExtra(field)]);
  return { ...Object.fromEntries(fields), notShown: { at: [1] } };
}

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

  it("that is right but for one place ends in an answer or a ServiceError (CLI-7)", async () => {
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

  it.each(OPERATIONS)("tells a field that $name lacks, when it is to throw", async ({ answers, call }) => {
    for (const name of Object.keys(LEAST[answers])) {
      const body = JSON.stringify({ ...LEAST[answers], [name]: undefined });
      const error = await endOf(call(scripted(() => new Response(body), { validateResponses: "throw" })));
      expect(error).toMatchObject({ issues: [expect.stringMatching(`^${name}: expected`)], attempts: 1 });
    }
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
