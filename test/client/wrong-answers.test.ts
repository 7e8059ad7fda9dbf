/** Whatever comes back: an answer, or a `ServiceError` that shows nothing of it; never anything else, and never no end. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConnectionError, OAuthError, ResponseValidationError, TimeoutError } from "../../src/client/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { sized } from "../setup/form.ts";
import {
  answerOf,
  anyBody,
  anyHeaders,
  anyMode,
  anyOperation,
  anyStatus,
  endOf,
  expectDiscreet,
  MARK,
  number,
  OPERATIONS,
  placesIn,
  scripted,
  token,
  withValue,
} from "./wrong-answers-support.ts";

describe("a call with any answer", () => {
  it("ends in an answer or a ServiceError that shows nothing of it (CLI-7, GEN-12)", async () => {
    const example = fc.asyncProperty(anyOperation, anyMode, anyStatus, anyBody, anyHeaders, async (...given) => {
      const [{ call }, validateResponses, status, body, headers] = given;
      let requests = 0;
      const client = scripted(
        () => {
          requests += 1;
          return answerOf(status, body, headers as Record<string, string>);
        },
        { validateResponses },
      );
      expectDiscreet(await endOf(call(client)));
      // The first, one after a 401, and one retry.
      expect(requests).toBeLessThanOrEqual(3);
    });
    await fc.assert(example, { numRuns: sized({ quick: 60, full: 300 }) });
  });

  it("that is right but for one place ends in an answer or a ServiceError (CLI-7)", async () => {
    const other = fc.oneof(fc.constant(undefined), fc.constant(MARK), fc.jsonValue());
    const example = fc.asyncProperty(
      anyOperation,
      anyMode,
      fc.nat(),
      other,
      async ({ call, least }, validateResponses, pick, value) => {
        const places = placesIn(least);
        const body = JSON.stringify(withValue(least, places[pick % places.length] ?? [], value)) ?? "";
        const client = scripted(() => new Response(body), { validateResponses });
        expectDiscreet(await endOf(call(client)));
      },
    );
    await fc.assert(example, { numRuns: sized({ quick: 60, full: 300 }) });
  });

  it.each(OPERATIONS)("tells a field that $name lacks, when it is to throw", async ({ call, least }) => {
    for (const name of Object.keys(least).filter((field) => field !== "generatedSecret")) {
      const body = JSON.stringify({ ...least, [name]: undefined });
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

  it("takes a list of 20,000 numbers, and tells few of as many problems", async () => {
    const numbers = Array.from({ length: 20_000 }, () => number);
    expect(
      await scripted(() => Response.json({ numbers }), { validateResponses: "throw" }).numbers.list(),
    ).toHaveLength(20_000);
    const wrong = Response.json({ numbers: numbers.map(() => MARK) });
    const error = await endOf(scripted(() => wrong, { validateResponses: "throw" }).numbers.list());
    expect(error).toMatchObject({ issues: expect.toSatisfy((issues: string[]) => issues.length <= 20) });
    expectDiscreet(error);
  });
});

describe("a call without a whole answer", () => {
  it("ends in a ConnectionError whatever fetch fails with", async () => {
    const example = fc.asyncProperty(
      fc.anything({ withNullPrototype: true }),
      fc.boolean(),
      async (thrown, isError) => {
        const error = isError ? Object.assign(new TypeError(MARK), { cause: thrown }) : thrown;
        const client = scripted(() => Promise.reject(error));
        const end = await endOf(client.whoami());
        expect(end).toBeInstanceOf(ConnectionError);
        expect(end).toMatchObject({ attempts: 2, code: "connection_failed" });
      },
    );
    await fc.assert(example, { numRuns: sized({ quick: 50, full: 200 }) });
  });

  it("ends in a ConnectionError when fetch throws at once, or its error can not be read", async () => {
    const unreadable = Object.defineProperty(new Error("x"), "message", {
      get() {
        throw new Error("unreadable");
      },
    });
    const atOnce = scripted(() => {
      throw new Error("at once");
    });
    expect(await endOf(atOnce.whoami())).toBeInstanceOf(ConnectionError);
    expect(await endOf(scripted(() => Promise.reject(unreadable)).whoami())).toBeInstanceOf(ConnectionError);
  });

  it("ends in a ConnectionError when the body breaks off", async () => {
    const broken = () =>
      new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode('{"numbers":['));
            controller.error(new Error(MARK));
          },
        }),
      );
    const error = await endOf(scripted(broken).numbers.list());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error?.attempts).toBe(2);
  });

  it.each([
    ["fetch never answers", () => new Promise<Response>(() => {})],
    ["the body never ends", () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }))],
  ])("ends in a TimeoutError when %s", async (_, answer) => {
    const clock = createFakeClock();
    const client = scripted(answer, { clock, timeoutMs: 1_000, maxRetries: 0 });
    const end = endOf(client.whoami());
    await clock.advance(1_000);
    expect(await end).toBeInstanceOf(TimeoutError);
  });
});

describe("a token route with any answer", () => {
  it("ends a call in a ServiceError, or in a token that a header can carry (CLI-4, GEN-3)", async () => {
    const anyToken = fc.record(
      {
        access_token: fc.oneof(fc.constantFrom("a\nb", "", "é", "token-2"), fc.jsonValue()),
        expires_in: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    const body = fc.oneof(
      anyBody,
      anyToken.map((value) => JSON.stringify(value)),
    );
    const example = fc.asyncProperty(anyStatus, body, anyHeaders, async (status, text, headers) => {
      // Looked at afterwards: what fetch throws is a failed connection to the client.
      const authorizations: unknown[] = [];
      const client = scripted(token, {
        fetch: async (input, init) => {
          if (String(input).endsWith("/token")) return answerOf(status, text, headers as Record<string, string>);
          authorizations.push((init?.headers as Record<string, string> | undefined)?.authorization);
          return Response.json(OPERATIONS[0]?.least);
        },
      });
      const error = await endOf(client.whoami());
      expectDiscreet(error);
      for (const one of authorizations) expect(one).toMatch(/^Bearer [!-~]+$/);
      if (error !== null && authorizations.length === 0) expect(error).toBeInstanceOf(OAuthError);
    });
    await fc.assert(example, { numRuns: sized({ quick: 60, full: 300 }) });
  });
});
