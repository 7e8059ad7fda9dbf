/** No secret, token, number or text in anything that the client tells: log lines, errors, hooks, `inspect`, JSON. */
import { describe, expect, it } from "vitest";
import { type RecipientsRejectedError, type SendResult, ServiceError } from "../../../src/messaging/client/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import {
  callsOf,
  ECHO,
  MARKS,
  marksIn,
  playAll,
  serviceThat,
  shown,
  success,
  Told,
  talkativeClient,
  tokenAnswer,
} from "./leaks-support.ts";
import { TOKEN_PATH } from "./support.ts";

const CALLS = 11;

/** A body that repeats all that it was sent, in every place where free text can stand. */
const echoed = (code: string | null) => ({
  error: { code, message: ECHO, details: { field: ECHO, [ECHO]: ECHO, providerStatus: ECHO } },
  requestId: "req_1",
});

/** Nothing is told, though every call ended so. */
function expectNoLeaks(told: Told, kind: string, count: number = CALLS): void {
  expect(told.counts.get(kind)).toBe(count);
  expect(told.leaks()).toEqual([]);
}

describe("marksIn()", () => {
  it.each(Object.entries(MARKS))("finds the %s in its spellings", (name, value) => {
    const deep = new Error("one", { cause: new Error("two", { cause: { value } }) });
    for (const text of [
      `before ${value} after`,
      JSON.stringify({ value }),
      JSON.stringify({ body: JSON.stringify({ value }) }),
      new URLSearchParams({ value }).toString(),
      Buffer.from(value).toString("base64"),
      shown(deep),
    ])
      expect(marksIn(text)).toContain(name);
  });

  it("finds nothing in what is told of a call", () => {
    expect(marksIn(shown({ operation: "messages.send", idempotencyKey: "key-1", requestId: "req_1" }))).toEqual([]);
  });
});

describe.each(["body", "basic"] as const)("a client that authenticates by %s", (authMethod) => {
  it("tells nobody in success, and shows a generated secret by its name alone (WHK-13)", async () => {
    const told = new Told();
    const client = talkativeClient(serviceThat(success), told, { authMethod });
    const results = await playAll(client, told);
    expect(results).toHaveLength(CALLS);
    // It has a token by now.
    told.add("client", client);
    expectNoLeaks(told, "notice", 2 * (CALLS + 1));
    const updated = results[3] as { generatedSecret: string };
    expect(updated.generatedSecret).toBe(MARKS.generatedSecret);
    expect(marksIn(shown(updated))).toEqual([]);
    expect(marksIn(shown({ ...updated }))).toEqual([]);
  });

  it.each<[status: number, named: string, error: string, code?: string | null]>([
    [400, "INVALID_REQUEST", "InvalidRequestError"],
    [401, "UNAUTHORIZED", "UnauthorizedError"],
    [403, "FORBIDDEN", "ForbiddenError"],
    [404, "NOT_FOUND", "NotFoundError"],
    [409, "CONFLICT", "ConflictError"],
    [418, "RATE_LIMITED", "UnknownApiError"],
    [502, "UPSTREAM_ERROR", "UpstreamError"],
    [500, "nothing", "ServerError", null],
    [500, "free text", "ServerError", ECHO],
  ])("tells nobody what a %i that names %s repeats", async (status, named, error, code = named) => {
    const told = new Told();
    const service = serviceThat(() => Response.json(echoed(code), { status }));
    await playAll(talkativeClient(service, told, { authMethod }), told);
    expectNoLeaks(told, error);
  });

  it.each([
    [502, "ServerError"],
    [401, "UnauthorizedError"],
    [302, "UnknownApiError"],
    [200, "ResponseValidationError"],
  ])("tells nobody what a page with status %i repeats", async (status, error) => {
    const told = new Told();
    const headers = { "content-type": "text/html", location: "https://example.com/", "x-echo": MARKS.token };
    const service = serviceThat(() => new Response(`<p>${ECHO}</p>`, { status, headers }));
    await playAll(talkativeClient(service, told, { authMethod }), told);
    expectNoLeaks(told, error);
  });

  it.each<[what: string, answer: () => Response]>([
    ["refuses", () => Response.json({ error: "invalid_client", error_description: ECHO }, { status: 401 })],
    ["names it as its code", () => Response.json({ error: ECHO, error_description: ECHO }, { status: 400 })],
    ["is down", () => new Response(`<p>${ECHO}</p>`, { status: 500 })],
    ["redirects", () => new Response(ECHO, { status: 307, headers: { location: "/" } })],
    ["issues no header's text", () => Response.json({ access_token: `${ECHO}\n` })],
    ["issues a page", () => new Response(ECHO)],
  ])("tells nobody what a token route repeats that %s", async (_, answer) => {
    const told = new Told();
    const client = talkativeClient(async () => answer(), told, { authMethod });
    await playAll(client, told);
    expectNoLeaks(told, "OAuthError");
  });
});

/** What libraries that stand in for `fetch` throw: errors that hold the request, or quote it. */
const THROWN: Readonly<Record<string, (input: string, init: RequestInit) => unknown>> = {
  "holds the request": (input, init) => Object.assign(new TypeError("fetch failed"), { input, init, config: init }),
  "has a cause that holds it": (input, init) =>
    new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET", input, init }) }),
  "quotes the headers": (_, { headers }) => new Error(`cannot send ${JSON.stringify(headers)}`),
  "quotes the body": (_, { body }) => new Error(`cannot send ${body}`),
  "quotes the address": (input) => new Error(`request to ${input} failed, reason: reset`),
  "quotes all in its cause": (input, init) =>
    new Error("failed", { cause: new Error(`${input} ${JSON.stringify(init)} ${init.body}`) }),
  "is several": (input, init) =>
    new AggregateError([Object.assign(new Error(JSON.stringify(init.headers)), { input })], "fetch failed"),
  "has them in its name and code": (_, { headers }) =>
    Object.assign(new Error("failed"), { name: JSON.stringify(headers), code: JSON.stringify(headers), errno: ECHO }),
  "shows itself as it likes": (_, init) =>
    Object.assign(new Error("failed"), {
      ...{ toJSON: () => init, toString: () => JSON.stringify(init) },
      [Symbol.for("nodejs.util.inspect.custom")]: () => JSON.stringify(init),
    }),
  "is the request itself": (input, init) => ({ input, ...init }),
  "is a text": (_, init) => JSON.stringify(init),
};

describe("a fetch that fails", () => {
  it.each(Object.entries(THROWN))("tells nobody what it knows when its error %s", async (_, thrown) => {
    const told = new Told();
    const failing = (input: unknown, init: RequestInit = {}) => Promise.reject(thrown(String(input), init));
    await playAll(talkativeClient(serviceThat(failing), told), told);
    await playAll(talkativeClient(failing, told), told);
    await playAll(talkativeClient(failing, told, { authMethod: "basic" }), told);
    expectNoLeaks(told, "ConnectionError", 3 * CALLS);
  });

  it("tells nobody when it is the body that fails", async () => {
    const told = new Told();
    const service = serviceThat((path, init) => {
      const start = (controller: ReadableStreamDefaultController) =>
        controller.error(Object.assign(new Error(JSON.stringify(init.headers)), { path, init }));
      return new Response(new ReadableStream({ start }));
    });
    await playAll(talkativeClient(service, told), told);
    expectNoLeaks(told, "ConnectionError");
  });

  it("tells nobody when it never answers", async () => {
    const told = new Told();
    await playAll(
      talkativeClient(
        serviceThat(() => new Promise(() => {})),
        told,
        { timeoutMs: 1 },
      ),
      told,
    );
    expectNoLeaks(told, "TimeoutError");
  });
});

describe("an answer that is not as specified", () => {
  const wrong = [
    { results: ECHO, errors: { [ECHO]: ECHO } },
    { results: [{ to: 1, messageId: { [ECHO]: ECHO }, status: [ECHO] }], errors: [{ [ECHO]: ECHO }] },
    { numbers: [{ numberId: 1, e164: [ECHO], status: null }], number: { [ECHO]: ECHO }, groups: [[ECHO]] },
    { apiClientId: [ECHO], capabilities: [1, { [ECHO]: 1 }], [ECHO]: ECHO },
    { defaults: { inbound: ECHO }, secret: ECHO, generatedSecret: { [ECHO]: ECHO } },
    [ECHO],
    ECHO,
  ];

  it.each(["warn", "throw"] as const)("is told without its content: %s", async (validateResponses) => {
    const told = new Told();
    for (const body of wrong) {
      const service = serviceThat(() => Response.json(body));
      await playAll(talkativeClient(service, told, { validateResponses }), told);
    }
    expect(told.counts.get(validateResponses === "warn" ? "line" : "error")).toBeGreaterThan(20);
    expect(told.leaks()).toEqual([]);
  });
});

describe("a call that its caller aborts", () => {
  it("tells nobody, before its request and during it", async () => {
    const told = new Told();
    let leaving = new AbortController();
    const service = serviceThat((_, { signal }) => {
      leaving.abort();
      return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(new Error(ECHO))));
    });
    const client = talkativeClient(service, told);
    for (let call = 0; call < CALLS; call++) {
      leaving = new AbortController();
      const aborted = callsOf(client, leaving.signal)[call]?.();
      await aborted?.catch((error: Error) => told.add(error.name, error));
    }
    await playAll(client, told, AbortSignal.abort());
    expectNoLeaks(told, "AbortedError", 2 * CALLS);
  });
});

describe("a token that cannot be renewed ahead", () => {
  it.each<[string, () => Response | Promise<Response>]>([
    ["is refused", () => Response.json({ error: ECHO, error_description: ECHO }, { status: 400 })],
    ["gets a page", () => new Response(ECHO, { status: 500 })],
    ["is not issued", () => Response.json({ access_token: `${ECHO}\n` })],
    ["gets no answer", () => Promise.reject(Object.assign(new Error(ECHO), { ECHO }))],
  ])("is logged without what it holds when it %s", async (_, answer) => {
    const told = new Told();
    const clock = createFakeClock();
    let issued = 0;
    const service: typeof fetch = async (input, init = {}) => {
      const { pathname } = new URL(String(input));
      if (pathname !== TOKEN_PATH) return success(pathname, init);
      issued += 1;
      return issued === 1 ? tokenAnswer() : answer();
    };
    const client = talkativeClient(service, told, { clock, maxRetries: 0 });
    await client.whoami();
    await clock.advance(58 * 60_000);
    await client.whoami();
    await clock.advance(0);
    expect(issued).toBe(2);
    expectNoLeaks(told, "line", 1);
  });
});

describe("what is refused before a request", () => {
  it("is told without its values", async () => {
    const told = new Told();
    const client = talkativeClient(serviceThat(success), told);
    const { number, text, webhookSecret, invalidNumber, token } = MARKS;
    const right = { sendFrom: "num_1", to: [number], messageType: "SMS", text, externalReference: "order-1" };
    const send = (fields: object, options?: object) => {
      return client.messages.send({ ...right, ...fields } as never, options as never);
    };
    const wrong: readonly (() => Promise<unknown>)[] = [
      () => send({ sendFrom: number }),
      () => send({ to: [invalidNumber] }),
      () => send({ to: number }),
      () => send({ to: [{ [number]: text }] }),
      () => send({ messageType: text }),
      () => send({ [number]: text, [text]: number }),
      () => send({ media: [{ storageKey: text }] }),
      () => send({ messageType: "MMS", media: [{ [text]: number, byteLength: text }] }),
      () => send({ text: 5n }),
      () => send({}, { idempotencyKey: text }),
      () => send({}, { [token]: 1, signal: text }),
      () => client.webhooks.update("delivery", { secret: webhookSecret } as never),
      () => client.webhooks.update(webhookSecret as never, { signingEnabled: true }),
      () => client.webhooks.update("delivery", { signingEnabled: webhookSecret, endpointUrl: webhookSecret } as never),
      () => client.numbers.update("num_1", { webhookInboundOverride: webhookSecret, [number]: 1 } as never),
      () => client.numbers.search({ nxx: number, city: text, rateCenter: text, [number]: 1 } as never),
      () => client.numbers.get([number] as never),
    ];
    for (const call of wrong) await call().catch((error: Error) => told.add(error.name, error));
    expectNoLeaks(told, "InvalidArgumentError", wrong.length);
  });

  it("is told without its values when it is an option of the client", () => {
    const told = new Told();
    const { clientSecret } = MARKS;
    const wrong: readonly object[] = [
      { baseUrl: `https://user:${encodeURIComponent(clientSecret)}@example.com` },
      { baseUrl: `https://example.com/?secret=${encodeURIComponent(clientSecret)}` },
      { baseUrl: `http://example.com/${encodeURIComponent(clientSecret)}` },
      ...[{ baseUrl: clientSecret }, { clientSecret: [clientSecret] }],
      ...[{ authMethod: clientSecret }, { timeoutMs: clientSecret }],
    ];
    for (const options of wrong) {
      try {
        talkativeClient(fetch, told, options);
      } catch (error) {
        told.add("SetupError", error);
      }
    }
    expectNoLeaks(told, "SetupError", wrong.length);
  });
});

describe("what the service said", () => {
  it("is in the result of rejected recipients, and not in the error that is made of it (CLI-9, SND-8)", async () => {
    const told = new Told();
    const client = talkativeClient(serviceThat(success), told);
    const result = (await callsOf(client)[8]?.()) as SendResult;
    expect(result.errors[0]?.to).toBe(MARKS.invalidNumber);
    try {
      result.throwIfRejected();
    } catch (error) {
      told.add((error as RecipientsRejectedError).name, error);
    }
    expectNoLeaks(told, "RecipientsRejectedError", 1);
  });

  it("can be asked for by its name, where people read it", async () => {
    const service = serviceThat(() => Response.json(echoed("CONFLICT"), { status: 409 }));
    const error = await talkativeClient(service, new Told())
      .whoami()
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ serviceMessage: ECHO, requestId: "req_1" });
  });
});
