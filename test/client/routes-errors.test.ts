import { describe, expect, it } from "vitest";
import {
  type ApiError,
  type Client,
  ConflictError,
  ForbiddenError,
  InvalidArgumentError,
  InvalidRequestError,
  NotFoundError,
  OAuthError,
  ServerError,
  UnauthorizedError,
  UnknownApiError,
  UpstreamError,
} from "../../src/client/index.ts";
import type { Emulator, FaultRule } from "../../src/emulator/index.ts";
import { PROFILE_NAMES } from "../../src/emulator/options.ts";
import { clientOf, failureOf, RECIPIENT, smsOf, startPair } from "./routes-support.ts";

type Make = (client: Client, emulator: Emulator) => Promise<unknown>;

/** What the types refuse: a caller in JavaScript can write it all the same. */
const untyped = (value: unknown) => value as never;

const update = (
  fields: object,
  pick: (numbers: Emulator["fixtures"]["numbers"]) => string = ({ full }) => full,
): Make => {
  return (client, { fixtures }) => client.numbers.update(pick(fixtures.numbers), untyped(fields));
};
const send = (fields: object): Make => {
  return (client, emulator) => client.messages.send(untyped({ ...smsOf(emulator), ...fields }));
};
const sendFrom = (pick: (numbers: Emulator["fixtures"]["numbers"]) => string, fields: object = {}): Make => {
  return (client, emulator) => send({ sendFrom: pick(emulator.fixtures.numbers), ...fields })(client, emulator);
};

/** Every operation, by the route that a fault rule names. */
const OPERATIONS: readonly (readonly [operation: string, route: string, make: Make])[] = [
  ["whoami", "GET /api/core/whoami", (client) => client.whoami()],
  ["webhooks.get", "GET /api/core/webhooks", (client) => client.webhooks.get()],
  [
    "webhooks.update",
    "PATCH /api/core/webhooks/inbound",
    (client) => client.webhooks.update("inbound", { signingEnabled: true, secret: "s".repeat(32) }),
  ],
  ["numbers.list", "GET /api/core/numbers", (client) => client.numbers.list()],
  ["numbers.search", "POST /api/core/numbers/search", (client) => client.numbers.search({ npa: "206" })],
  ["numbers.update", "PATCH /api/core/numbers/{numberId}", update({ smsEnabled: true })],
  ["messages.send", "POST /api/core/messages/send", send({})],
];

/** What the service refuses for good: one request, one typed error. */
const REFUSALS: readonly (readonly [name: string, make: Make, type: typeof ApiError, code: string])[] = [
  ["an update of an unknown number (UPD-2)", update({}, () => "num_none"), NotFoundError, "NOT_FOUND"],
  ["an update of another client's number (UPD-3)", update({}, ({ foreign }) => foreign), ForbiddenError, "FORBIDDEN"],
  [
    "an update of an inactive number (UPD-6)",
    update({}, ({ inactive }) => inactive),
    InvalidRequestError,
    "INVALID_REQUEST",
  ],
  ["a send from an unknown number (SND-4)", sendFrom(() => "num_none"), NotFoundError, "NOT_FOUND"],
  ["a send from another client's number (SND-5)", sendFrom(({ foreign }) => foreign), ForbiddenError, "FORBIDDEN"],
  [
    "a send without a campaign (SND-15)",
    sendFrom(({ noCampaign }) => noCampaign),
    InvalidRequestError,
    "INVALID_REQUEST",
  ],
  [
    "a send from a number without SMS (SND-16)",
    sendFrom(({ smsOff }) => smsOff),
    InvalidRequestError,
    "INVALID_REQUEST",
  ],
  [
    "a send from an inactive number (SND-16)",
    sendFrom(({ inactive }) => inactive),
    InvalidRequestError,
    "INVALID_REQUEST",
  ],
];

/** What the client refuses by itself, and the service as well. */
const MISTAKES: readonly (readonly [name: string, make: Make, issue: RegExp])[] = [
  ["an E.164 number in sendFrom", sendFrom(() => RECIPIENT), /^sendFrom: must be a numberId/],
  ["an SMS with media (SND-11)", send({ media: [] }), /^media: /],
  ["an MMS without media (SND-12)", send({ messageType: "MMS" }), /^media: /],
  ["a messageType of its own (SND-10)", send({ messageType: "sms" }), /^messageType: /],
  ["no recipients (SND-6)", send({ to: [] }), /^to: /],
  ["an empty externalReference (SND-14)", send({ externalReference: "" }), /^externalReference: /],
  ["an override that is no URL (UPD-5, UPD-15)", update({ webhookInboundOverride: "a" }), /^webhookInboundOverride: /],
  ["smsEnabled of null (UPD-9)", update({ smsEnabled: null }), /^smsEnabled: /],
  ["nxx without npa (SEA-2)", (client) => client.numbers.search({ nxx: "555" }), /^nxx: needs npa/],
  ["city without state (SEA-3)", (client) => client.numbers.search({ city: "Fresno" }), /^city: needs state/],
  [
    "rateCenter, with state too (SEA-4, SEA-5)",
    (client) => client.numbers.search({ rateCenter: "FRESNO", state: "CA" }),
    /^rateCenter: /,
  ],
  [
    "a webhook update without signingEnabled (WHK-8)",
    (client) => client.webhooks.update("inbound", untyped({ enabled: true })),
    /^signingEnabled: /,
  ],
  [
    "an empty secret (WHK-24)",
    (client) => client.webhooks.update("delivery", { signingEnabled: true, secret: "" }),
    /^secret: /,
  ],
  [
    "an endpointUrl that is no URL (WHK-25)",
    (client) => client.webhooks.update("delivery", { signingEnabled: true, endpointUrl: "a" }),
    /^endpointUrl: /,
  ],
];

const fault = (route: string, action: Extract<FaultRule, { match: { route: string } }>["action"]): FaultRule => ({
  match: { route },
  action,
});

describe.each(PROFILE_NAMES)("with the profile %s, the client", (profile) => {
  it.each(REFUSALS)("makes a typed error of %s, after one request (CLI-6, SND-23)", async (_, make, type, code) => {
    const { client, emulator, sent } = await startPair({ profile });
    const error = await failureOf(make(client, emulator));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, attempts: 1, requestId: expect.stringMatching(/^req_/) });
    expect(sent).toHaveLength(1);
  });

  it.each(MISTAKES)(
    "refuses %s before any request, as the service would (SND-3, SEA-15, CLI-6)",
    async (_, make, issue) => {
      const { client, emulator } = await startPair({ profile });
      const error = await failureOf(make(client, emulator));
      expect(error).toBeInstanceOf(InvalidArgumentError);
      expect(error).toMatchObject({ code: "invalid_argument", attempts: 0, issues: [expect.stringMatching(issue)] });
      expect(emulator.control.requests()).toEqual([]);
      const unchecked = clientOf(emulator, { validateRequests: false });
      const refusal = await failureOf(make(unchecked.client, emulator));
      expect(refusal).toMatchObject({ attempts: 1, status: expect.toBeOneOf([400, 404]) });
    },
  );

  it("refuses campaignRegId in an update, which the service would ignore (UPD-7, CLI-8)", async () => {
    const { client, emulator } = await startPair({ profile });
    const error = await failureOf(update({ campaignRegId: "C9" })(client, emulator));
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect(error.message).toContain('"campaignregId"');
    expect(emulator.control.requests()).toEqual([]);
  });

  it("ends a key used for another send in a ConflictError, never retried (SND-18, SND-23, CLI-6)", async () => {
    const { client, emulator, sent } = await startPair({ profile });
    const options = { idempotencyKey: "key-1" };
    await client.messages.send(smsOf(emulator), options);
    const error = await failureOf(client.messages.send({ ...smsOf(emulator), text: "other" }, options));
    expect(error).toBeInstanceOf(ConflictError);
    expect(error).toMatchObject({ code: "CONFLICT", status: 409, attempts: 1, idempotencyKey: "key-1" });
    expect(error.message).toContain("new key");
    expect(sent).toHaveLength(2);
  });

  it.each(OPERATIONS)(
    "ends %s with a refused token in an UnauthorizedError, after one new token (AUT-3, CLI-3)",
    async (operation, route, make) => {
      const { client, emulator, sent } = await startPair({ profile });
      emulator.control.faults.add(fault(route, { type: "revokeToken" }));
      const error = await failureOf(make(client, emulator));
      expect(error).toBeInstanceOf(UnauthorizedError);
      expect(error).toMatchObject({ operation, code: "UNAUTHORIZED", status: 401, attempts: 2 });
      expect(sent).toHaveLength(2);
    },
  );

  it.each(OPERATIONS)(
    "ends %s in a ServerError after all retries of a 500 (SND-21, SND-22, CLI-5)",
    async (operation, route, make) => {
      const { client, emulator, sent } = await startPair({ profile });
      emulator.control.faults.add(fault(route, { type: "status", status: 500 }));
      const error = await failureOf(make(client, emulator));
      expect(error).toBeInstanceOf(ServerError);
      expect(error).toMatchObject({ operation, code: "SERVER_ERROR", status: 500, attempts: 3 });
      expect(new Set(sent.map(({ body }) => body)).size).toBe(1);
      expect(new Set(sent.map(({ headers }) => headers.get("idempotency-key"))).size).toBe(1);
    },
  );

  it.each(OPERATIONS)("gets an answer to %s after a 500 (SND-22, CLI-5)", async (_, route, make) => {
    const { client, emulator, sent } = await startPair({ profile });
    emulator.control.faults.add({ ...fault(route, { type: "status", status: 500 }), times: 1 });
    await make(client, emulator);
    expect(sent).toHaveLength(2);
  });

  it.each(OPERATIONS)(
    "ends %s at a page of a proxy in a ServerError without a code of the service (GEN-12)",
    async (operation, route, make) => {
      const { client, emulator } = await startPair({ profile });
      emulator.control.faults.add(fault(route, { type: "badGateway" }));
      const error = await failureOf(make(client, emulator));
      expect(error).toBeInstanceOf(ServerError);
      expect(error).toMatchObject({ operation, code: "api_error", status: 502, requestId: null, details: {} });
    },
  );

  it("ends a search whose inventory fails in an UpstreamError (SEA-8, CLI-5)", async () => {
    const { client, sent } = await startPair({ profile });
    const error = await failureOf(client.numbers.search({ zipCode: "00502" }));
    expect(error).toBeInstanceOf(UpstreamError);
    expect(error).toMatchObject({ code: "UPSTREAM_ERROR", status: 502, providerStatus: 503, attempts: 3 });
    expect(sent).toHaveLength(3);
  });

  it("ends a code that it does not know in an UnknownApiError that keeps it (GEN-11, CLI-7)", async () => {
    const { client, emulator } = await startPair({ profile });
    const [, route] = OPERATIONS[0] as (typeof OPERATIONS)[number];
    emulator.control.faults.add(fault(route, { type: "status", status: 429, retryAfterSeconds: 7 }));
    const error = await failureOf(client.whoami());
    expect(error).toBeInstanceOf(UnknownApiError);
    expect(error).toMatchObject({ code: "RATE_LIMITED", status: 429, retryAfterMs: 7_000, attempts: 1 });
  });

  it("goes by the body's code, then by the status (GEN-12, CLI-7)", async () => {
    const { client, emulator } = await startPair({ profile });
    const [, route] = OPERATIONS[0] as (typeof OPERATIONS)[number];
    const answered = async (status: number, code: string) => {
      emulator.control.faults.clear();
      emulator.control.faults.add(fault(route, { type: "status", status, code }));
      return failureOf(client.whoami());
    };
    expect(await answered(400, "NOT_FOUND")).toBeInstanceOf(NotFoundError);
    expect(await answered(500, "CONFLICT")).toBeInstanceOf(ConflictError);
    expect(await answered(403, "SUSPENDED")).toBeInstanceOf(ForbiddenError);
    expect(await answered(403, "SUSPENDED")).toMatchObject({ code: "SUSPENDED" });
  });

  it.each(["inactive", "inactiveAccount"] as const)(
    "ends at once where the client is %s (TOK-9, TOK-10, CLI-4)",
    async (name) => {
      const { emulator } = await startPair({ profile });
      const { clientId, clientSecret } = emulator.fixtures.clients[name];
      const { client } = clientOf(emulator, { clientId, clientSecret });
      const error = await failureOf(client.whoami());
      expect(error).toBeInstanceOf(OAuthError);
      expect(error).toMatchObject({ operation: "whoami", error: "invalid_client", status: 401, attempts: 0 });
      expect(emulator.control.requests()).toHaveLength(1);
    },
  );
});

describe("a service that rejects unknown fields", () => {
  it("is never met with one by the client's checks, and says no without them (GEN-9)", async () => {
    const { client, emulator } = await startPair({ profile: "strict" });
    const make = send({ extra: 1 });
    expect(await failureOf(make(client, emulator))).toBeInstanceOf(InvalidArgumentError);
    const unchecked = clientOf(emulator, { validateRequests: false });
    expect(await failureOf(make(unchecked.client, emulator))).toBeInstanceOf(InvalidRequestError);
  });

  it("is sent JSON with its content type, and a key only with a send (GEN-1, GEN-8)", async () => {
    const { client, emulator, sent } = await startPair({ profile: "strict" });
    for (const [, , make] of OPERATIONS) await make(client, emulator);
    expect(sent.map(({ method, headers }) => (method === "GET" ? null : headers.get("content-type")))).toEqual(
      sent.map(({ method }) => (method === "GET" ? null : "application/json")),
    );
    expect(sent.map(({ headers }) => headers.has("idempotency-key"))).toEqual(
      sent.map(({ path }) => path.endsWith("/send")),
    );
  });
});

describe("a path that the service does not have", () => {
  it("ends in a NotFoundError, as a base address with a wrong path does (GEN-7)", async () => {
    const { emulator } = await startPair();
    const fetch: typeof globalThis.fetch = (input, init) =>
      emulator.handle(new Request(String(input).replace("/whoami", "/whoareyou"), init));
    const error = await failureOf(clientOf(emulator, { fetch }).client.whoami());
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ status: 404, attempts: 1 });
  });
});
