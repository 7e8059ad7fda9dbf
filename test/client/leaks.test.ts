/** No secret, token, number or text in anything that the client tells: log lines, errors, hooks, `inspect`, JSON. */
import { describe, expect, it } from "vitest";
import { type RecipientsRejectedError, type SendResult, ServiceError } from "../../src/client/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
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

const CALLS = 11;

/** A page or a body that repeats all that it was sent, in every place where free text can stand. */
const echoed = (code: string | null) => ({
  error: { code, message: ECHO, details: { field: ECHO, [ECHO]: ECHO, providerStatus: ECHO } },
  requestId: "req_1",
});

describe("marksIn()", () => {
  it.each(Object.entries(MARKS))("finds the %s in its spellings", (name, value) => {
    expect(marksIn(`before ${value} after`)).toContain(name);
    expect(marksIn(JSON.stringify({ value }))).toContain(name);
    expect(marksIn(JSON.stringify({ body: JSON.stringify({ value }) }))).toContain(name);
    expect(marksIn(new URLSearchParams({ value }).toString())).toContain(name);
    expect(marksIn(Buffer.from(value).toString("base64"))).toContain(name);
    expect(
      marksIn(shown(Object.assign(new Error("one"), { cause: new Error("two", { cause: { value } }) }))),
    ).toContain(name);
  });

  it("finds nothing in what is told of a call", () => {
    expect(marksIn(shown({ operation: "messages.send", idempotencyKey: "key-1", requestId: "req_1" }))).toEqual([]);
  });
});

describe.each(["body", "basic"] as const)("a client that authenticates by %s", (authMethod) => {
  it("tells nobody in success, and shows a generated secret by its name alone (WHK-13)", async () => {
    const told = new Told();
    const results = await playAll(talkativeClient(serviceThat(success), told, { authMethod }), told);
    expect(results).toHaveLength(CALLS);
    expect(told.counts.get("notice")).toBe(2 * (CALLS + 1));
    expect(told.leaks()).toEqual([]);
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
    [500, "SERVER_ERROR", "ServerError"],
    [502, "UPSTREAM_ERROR", "UpstreamError"],
    [500, "nothing", "ServerError", null],
    [500, "free text", "ServerError", ECHO],
  ])("tells nobody what a %i that names %s repeats", async (status, named, error, code = named) => {
    const told = new Told();
    const service = serviceThat(() => Response.json(echoed(code), { status }));
    await playAll(talkativeClient(service, told, { authMethod }), told);
    expect(told.counts.get(error)).toBe(CALLS);
    expect(told.leaks()).toEqual([]);
  });

  it.each([
    [500, "ServerError"],
    [502, "ServerError"],
    [401, "UnauthorizedError"],
    [302, "UnknownApiError"],
    [200, "ResponseValidationError"],
  ])("tells nobody what a page with status %i repeats", async (status, error) => {
    const told = new Told();
    const headers = { "content-type": "text/html", location: "https://example.com/", "x-echo": MARKS.token };
    const service = serviceThat(() => new Response(`<p>${ECHO}</p>`, { status, headers }));
    await playAll(talkativeClient(service, told, { authMethod }), told);
    expect(told.counts.get(error)).toBe(CALLS);
    expect(told.leaks()).toEqual([]);
  });

  it.each<[what: string, answer: () => Response, error: string]>([
    [
      "refuses",
      () => Response.json({ error: "invalid_client", error_description: ECHO }, { status: 401 }),
      "OAuthError",
    ],
    [
      "names it as its code",
      () => Response.json({ error: ECHO, error_description: ECHO }, { status: 400 }),
      "OAuthError",
    ],
    ["is down", () => new Response(`<p>${ECHO}</p>`, { status: 500 }), "OAuthError"],
    ["redirects", () => new Response(ECHO, { status: 307, headers: { location: "/" } }), "OAuthError"],
    ["issues no header's text", () => Response.json({ access_token: `${ECHO}\n` }), "OAuthError"],
    ["issues a page", () => new Response(ECHO), "OAuthError"],
  ])("tells nobody what a token route repeats that %s", async (_, answer, error) => {
    const told = new Told();
    await playAll(
      talkativeClient(async () => answer(), told, { authMethod }),
      told,
    );
    expect(told.counts.get(error)).toBe(CALLS);
    expect(told.leaks()).toEqual([]);
  });
});

describe("an answer that is not as specified", () => {
  const wrong = [
    { results: ECHO, errors: { [ECHO]: ECHO } },
    { results: [{ to: 1, messageId: { [ECHO]: ECHO }, status: [ECHO] }], errors: [{ [ECHO]: ECHO }] },
    { numbers: [{ numberId: 1, e164: [ECHO], status: null }], number: { [ECHO]: ECHO }, groups: [[ECHO]] },
    { ...{ apiClientId: [ECHO], capabilities: [1, { [ECHO]: 1 }], [ECHO]: ECHO } },
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
      const { signal } = leaving;
      await callsOf(client, signal)
        [call]?.()
        .catch((error: Error) => told.add(error.name, error));
    }
    await playAll(client, told, AbortSignal.abort());
    expect(told.counts.get("AbortedError")).toBe(2 * CALLS);
    expect(told.leaks()).toEqual([]);
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
      if (pathname !== "/api/auth/token") return success(pathname, init);
      issued += 1;
      return issued === 1 ? tokenAnswer() : answer();
    };
    const client = talkativeClient(service, told, { clock, maxRetries: 0 });
    await client.whoami();
    await clock.advance(58 * 60_000);
    await client.whoami();
    await clock.advance(0);
    expect(issued).toBe(2);
    expect(told.counts.get("line")).toBe(1);
    expect(told.leaks()).toEqual([]);
  });
});

describe("what is refused before a request", () => {
  it("is told without its values", async () => {
    const told = new Told();
    const client = talkativeClient(serviceThat(success), told);
    const { number, text, webhookSecret, invalidNumber, token } = MARKS;
    const send = (fields: object, options?: object) => client.messages.send(fields as never, options as never);
    const right = { sendFrom: "num_1", to: [number], messageType: "SMS", text, externalReference: "order-1" };
    const wrong: readonly (() => Promise<unknown>)[] = [
      () => send({ ...right, sendFrom: number }),
      () => send({ ...right, to: [invalidNumber] }),
      () => send({ ...right, to: number }),
      () => send({ ...right, to: [{ [number]: text }] }),
      () => send({ ...right, messageType: text }),
      () => send({ ...right, [number]: text, [text]: number }),
      () => send({ ...right, media: [{ storageKey: text }] }),
      () => send({ ...right, messageType: "MMS", media: [{ [text]: number, byteLength: text }] }),
      () => send({ ...right, text: 5n }),
      () => send(right, { idempotencyKey: text }),
      () => send(right, { [token]: 1, signal: text }),
      () => client.webhooks.update("delivery", { secret: webhookSecret } as never),
      () => client.webhooks.update(webhookSecret as never, { signingEnabled: true }),
      () => client.webhooks.update("delivery", { signingEnabled: webhookSecret, endpointUrl: webhookSecret } as never),
      () => client.numbers.update("num_1", { webhookInboundOverride: webhookSecret, [number]: 1 } as never),
      () => client.numbers.search({ nxx: number, city: text, rateCenter: text, [number]: 1 } as never),
      () => client.numbers.get([number] as never),
    ];
    for (const call of wrong) await call().catch((error: Error) => told.add(error.name, error));
    expect(told.counts.get("InvalidArgumentError")).toBe(wrong.length);
    expect(told.leaks()).toEqual([]);
  });

  it("is told without its values when it is an option of the client", () => {
    const told = new Told();
    const { clientSecret } = MARKS;
    const wrong: readonly object[] = [
      { baseUrl: `https://user:${encodeURIComponent(clientSecret)}@example.com` },
      { baseUrl: `https://example.com/?secret=${encodeURIComponent(clientSecret)}` },
      { baseUrl: `http://example.com/${encodeURIComponent(clientSecret)}` },
      { baseUrl: clientSecret },
      { clientSecret: [clientSecret] },
      { authMethod: clientSecret },
      { timeoutMs: clientSecret },
    ];
    for (const options of wrong) {
      try {
        talkativeClient(fetch, told, options);
      } catch (error) {
        told.add("SetupError", error);
      }
    }
    expect(told.counts.get("SetupError")).toBe(wrong.length);
    expect(told.leaks()).toEqual([]);
  });
});

describe("rejected recipients", () => {
  it("are in the result, and not in the error that is made of it (CLI-9, SND-8)", async () => {
    const told = new Told();
    const client = talkativeClient(serviceThat(success), told);
    const [send] = callsOf(client).slice(8, 9);
    const result = (await send?.()) as SendResult;
    expect(result.errors[0]?.to).toBe(MARKS.invalidNumber);
    try {
      result.throwIfRejected();
    } catch (error) {
      told.add((error as RecipientsRejectedError).name, error);
    }
    expect(told.counts.get("RecipientsRejectedError")).toBe(1);
    expect(told.leaks()).toEqual([]);
  });
});

describe("what the service said", () => {
  it("can be asked for by its name, where people read it", async () => {
    const service = serviceThat(() => Response.json(echoed("CONFLICT"), { status: 409 }));
    const client = talkativeClient(service, new Told());
    const error = await client.whoami().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ serviceMessage: ECHO, requestId: "req_1" });
  });
});
