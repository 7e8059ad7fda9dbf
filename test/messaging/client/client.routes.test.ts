/** The client on every route of the emulated service: as each profile and each reading has it, and what it makes of what is refused. */
import { describe, expect, it } from "vitest";
import {
  ApiError,
  type Client,
  ForbiddenError,
  InvalidArgumentError,
  InvalidRequestError,
  NotFoundError,
  ServerError,
  UnauthorizedError,
} from "../../../src/messaging/client/index.ts";
import { PROFILE_NAMES } from "../../../src/messaging/emulator/options.ts";
import { READINGS, type Readings } from "../../../src/messaging/emulator/unspecified.ts";
import { MEDIUM, OPERATIONS, RECIPIENT, SMS } from "./operations.ts";
import { failureOf, fault, SEND_PATH, type StartOptions, startClient, TOKEN_PATH, WHOAMI_PATH } from "./support.ts";

/** Each value that is not its reading's default; what is read otherwise in deliveries only concerns receivers. */
const OTHER_READINGS: readonly Partial<Readings>[] = [
  ...Object.entries(READINGS).flatMap(([name, { rule, values }]) =>
    Array.isArray(values) && !/^(?:DLV|EVT)-/.test(rule) ? values.slice(1).map((value) => ({ [name]: value })) : [],
  ),
  { overlapMs: 0 },
  { replay: "current", deliveryStatus: "expired" },
];

const ENDPOINT = "http://127.0.0.1:9/hook";
const FULL = SMS.sendFrom;

type Pair = Awaited<ReturnType<typeof startPair>>;

/** An answer that is not as specified is an error. */
function startPair(emulator: StartOptions["emulator"] = {}) {
  return startClient({ emulator, validateResponses: "throw" });
}

async function readEverything({ client }: Pair): Promise<void> {
  const me = await client.whoami();
  expect(me).toMatchObject({ apiClientId: "ac_main", apiClientStatus: "ACTIVE", assignedNumbers: { total: 5 } });
  expect(await client.numbers.list()).toHaveLength(5);
  expect(await client.numbers.get(FULL)).toMatchObject({ e164: "+12065550101" });
  expect(await client.numbers.get("num_none")).toBeNull();
  const found = await client.numbers.search({ state: "CA", city: "Fresno" });
  expect(found.groups[0]?.numbers[0]).toMatchObject({ city: "Fresno", state: "CA" });
  expect((await client.numbers.search()).requestedQuantity).toBe(50);
}

async function changeNumbers({ client }: Pair): Promise<void> {
  await client.numbers.update(FULL, { campaignregId: "C123", webhookInboundOverride: ENDPOINT, mmsEnabled: true });
  const changed = await client.numbers.get(FULL);
  expect(changed).toMatchObject({ campaignRegId: "C123", webhookInboundOverride: ENDPOINT });
  await client.numbers.update(FULL, { webhookInboundOverride: null });
  expect((await client.numbers.get(FULL))?.webhookInboundOverride ?? null).toBeNull();
}

async function changeWebhooks({ client }: Pair): Promise<void> {
  const before = await client.webhooks.get();
  expect(before.defaults.inbound).toMatchObject({ enabled: false, hasCurrentSecret: false });
  const update = { endpointUrl: ENDPOINT, enabled: true, signingEnabled: true } as const;
  const inbound = await client.webhooks.update("inbound", { ...update, secret: "s".repeat(32) });
  expect(inbound).toMatchObject({ enabled: true, signingEnabled: true, hasCurrentSecret: true });
  const delivery = await client.webhooks.update("delivery", update);
  const { defaults, overridesSummary } = await client.webhooks.get();
  expect(defaults).toEqual({ inbound, delivery });
  expect(overridesSummary).toEqual({ inboundOverrideCount: 0, deliveryOverrideCount: 0 });
}

async function sendMessages({ client, emulator }: Pair): Promise<void> {
  const request = { ...SMS, to: [RECIPIENT, "4155550124"] };
  const sent = await client.messages.send(request, { idempotencyKey: "key-1" });
  expect(sent.results).toMatchObject([{ to: RECIPIENT, status: "QUEUED" }]);
  expect(sent.errors).toMatchObject([{ to: "4155550124", error: { code: "INVALID_RECIPIENT" } }]);
  await emulator.clock.advance(60_000);
  const again = await client.messages.send(request, { idempotencyKey: "key-1" });
  expect(again.results[0]?.messageId).toBe(sent.results[0]?.messageId);
  const mms = await client.messages.send({ ...SMS, messageType: "MMS", media: [MEDIUM] });
  expect(mms.allRejected).toBe(false);
  expect(emulator.control.messages()).toHaveLength(2);
}

describe("the client, used on every route", () => {
  it.each(PROFILE_NAMES)(
    "works with the profile %s (NUM-1, NUM-4, SEA-6, UPD-1, WHK-1, WHK-12, SND-7)",
    async (profile) => {
      const pair = await startPair({ profile });
      for (const play of [readEverything, changeWebhooks, changeNumbers, sendMessages]) await play(pair);
      expect(pair.emulator.control.requests().filter(({ warnings }) => warnings.length > 0)).toEqual([]);
    },
  );

  it.each(OTHER_READINGS)(
    "works where the service reads %j (GEN-9, NUM-6, WHK-14, WHK-16, WHK-18, WHK-27, UPD-11, SND-17, SND-24, TOK-21, AUT-10)",
    async (unspecified) => {
      const pair = await startPair({ unspecified });
      await readEverything(pair);
      if (unspecified["webhooks.routes"] === "404") await failureOf(changeWebhooks(pair), NotFoundError);
      else await changeWebhooks(pair);
      await changeNumbers(pair);
      await sendMessages(pair);
    },
  );

  it("keeps the path of a base address (GEN-13)", async () => {
    const pair = await startPair({ basePath: "/sms/v1" });
    await readEverything(pair);
    await sendMessages(pair);
    expect(new Set(pair.requests.map(({ path }) => path.slice(0, 12)))).toEqual(new Set(["/sms/v1/api/"]));
  });

  it("follows the recommended first use: token, whoami, numbers, send by number id, outcome by webhook (CLI-10)", async () => {
    const { client, emulator, requests } = await startPair();
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
    const [usable] = await client.numbers.list();
    const { results } = await client.messages.send({ ...SMS, sendFrom: usable?.numberId ?? "" });
    await emulator.clock.advance(10_000);
    const types = emulator.control.events({ messageId: results[0]?.messageId }).map((event) => event.eventType);
    expect(types).toEqual(["message.queued", "message.sent", "message.delivery"]);
    expect(requests.map(({ path }) => path)).toEqual([TOKEN_PATH, WHOAMI_PATH, "/api/core/numbers", SEND_PATH]);
  });

  it("sends whatever capabilities it has (WHO-2)", async () => {
    const { client, emulator } = await startPair({ unspecified: { "capabilities.enforce": true } });
    emulator.control.updateClient("ac_main", { capabilities: [] });
    expect((await client.whoami()).capabilities).toEqual([]);
    expect((await client.messages.send(SMS)).results).toHaveLength(1);
    expect(await failureOf(client.numbers.list(), ForbiddenError)).toMatchObject({ code: "FORBIDDEN", attempts: 1 });
  });
});

describe.each(OPERATIONS)("$name", ({ name, route, call }) => {
  it.each([
    ["a refused token", { type: "revokeToken" }, UnauthorizedError, { code: "UNAUTHORIZED", status: 401, attempts: 2 }],
    ["a 500", { type: "status", status: 500 }, ServerError, { code: "SERVER_ERROR", status: 500, attempts: 3 }],
    ["a page of a proxy", { type: "badGateway" }, ServerError, { code: "api_error", status: 502, requestId: null }],
  ] as const)(
    "ends at %s in a typed error, after all retries (CLI-3, CLI-5, GEN-12)",
    async (_, action, type, facts) => {
      const { client, requests } = await startPair({ faults: [fault(route, action)] });
      const error = await failureOf(call(client), type);
      expect(error).toMatchObject({ operation: name, ...facts });
      const calls = requests.filter(({ path }) => path !== TOKEN_PATH);
      expect(calls).toHaveLength(error.attempts);
      expect(new Set(calls.map(({ body }) => body)).size).toBe(1);
      expect(new Set(calls.map(({ headers }) => headers.get("idempotency-key"))).size).toBe(1);
    },
  );

  it("gets an answer after a 500 (SND-22, CLI-5)", async () => {
    const { client, requests } = await startPair({ faults: [fault(route, { type: "status", status: 500 }, 1)] });
    await call(client);
    expect(requests.filter(({ path }) => path !== TOKEN_PATH)).toHaveLength(2);
  });

  it("takes the options of a call", async () => {
    const { client, requests } = await startPair({ faults: [fault(route, { type: "status", status: 500 })] });
    const options = { maxRetries: 0, timeoutMs: 5_000, headers: { "x-trace": "1" } };
    await expect(call(client, options)).rejects.toMatchObject({ attempts: 1 });
    expect(requests.at(-1)?.headers.get("x-trace")).toBe("1");
  });

  it("rejects options that are none, or whose signal cannot be read, and throws nothing", async () => {
    const unreadable = Object.defineProperty({}, "signal", {
      enumerable: true,
      get() {
        throw new Error("unreadable");
      },
    });
    const { client, requests } = await startPair();
    for (const options of [7, null, [], unreadable]) {
      const error = await failureOf(call(client, options as never), InvalidArgumentError);
      expect(error).toMatchObject({ attempts: 0, operation: name, code: "invalid_argument" });
    }
    expect(requests).toEqual([]);
  });
});

/** What the types refuse: a caller in JavaScript can write it all the same. */
const send = (fields: object) => (client: Client) => client.messages.send({ ...SMS, ...fields } as never);
const update = (fields: object, id: string = FULL) => {
  return (client: Client) => client.numbers.update(id, fields as never);
};
const webhook = (fields: object) => (client: Client) => client.webhooks.update("delivery", fields as never);
const search = (fields: object) => (client: Client) => client.numbers.search(fields);

describe("what the service refuses for good", () => {
  it.each([
    ["an update of an unknown number (UPD-2)", update({}, "num_none"), NotFoundError, "NOT_FOUND"],
    ["an update of another client's number (UPD-3)", update({}, "num_000006"), ForbiddenError, "FORBIDDEN"],
    ["an update of an inactive number (UPD-6)", update({}, "num_000005"), InvalidRequestError, "INVALID_REQUEST"],
    ["a send from an unknown number (SND-4)", send({ sendFrom: "num_none" }), NotFoundError, "NOT_FOUND"],
    ["a send from another client's number (SND-5)", send({ sendFrom: "num_000006" }), ForbiddenError, "FORBIDDEN"],
    ["a send without a campaign (SND-15)", send({ sendFrom: "num_000002" }), InvalidRequestError, "INVALID_REQUEST"],
    ["a send without SMS (SND-16)", send({ sendFrom: "num_000003" }), InvalidRequestError, "INVALID_REQUEST"],
  ])("ends in a typed error after one request: %s (CLI-6, SND-23)", async (_, call, type, code) => {
    const { client, requests } = await startPair();
    const error = await failureOf(call(client), type);
    expect(error).toMatchObject({ code, attempts: 1, requestId: expect.stringMatching(/^req_/) });
    expect(requests).toHaveLength(2);
  });
});

describe.each(PROFILE_NAMES)("what the service would refuse, with the profile %s,", (profile) => {
  it.each([
    ["an E.164 number in sendFrom (SND-3)", send({ sendFrom: RECIPIENT }), /^sendFrom: must be a numberId/],
    ["an SMS with media (SND-11)", send({ media: [] }), /^media: /],
    ["an MMS without media (SND-12)", send({ messageType: "MMS" }), /^media: /],
    ["a messageType of its own (SND-10)", send({ messageType: "sms" }), /^messageType: /],
    ["no recipients (SND-6)", send({ to: [] }), /^to: /],
    ["an empty externalReference (SND-14)", send({ externalReference: "" }), /^externalReference: /],
    ["an override that is no URL (UPD-5)", update({ webhookInboundOverride: "a" }), /^webhookInboundOverride: /],
    ["smsEnabled of null (UPD-9)", update({ smsEnabled: null }), /^smsEnabled: /],
    ["nxx without npa (SEA-2)", search({ nxx: "555" }), /^nxx: needs npa/],
    ["city without state (SEA-3)", search({ city: "Fresno" }), /^city: needs state/],
    ["rateCenter with state (SEA-4, SEA-5)", search({ rateCenter: "FRESNO", state: "CA" }), /^rateCenter: /],
    ["a webhook without signingEnabled (WHK-8)", webhook({ enabled: true }), /^signingEnabled: /],
    ["an empty secret (WHK-24)", webhook({ signingEnabled: true, secret: "" }), /^secret: /],
    ["an endpointUrl that is no URL (WHK-25)", webhook({ signingEnabled: true, endpointUrl: "a" }), /^endpointUrl: /],
  ])("is refused before any request: %s (SEA-15, CLI-6)", async (_, call, issue) => {
    const { client, emulator } = await startPair({ profile });
    const error = await failureOf(call(client), InvalidArgumentError);
    expect(error).toMatchObject({ code: "invalid_argument", attempts: 0, issues: [expect.stringMatching(issue)] });
    expect(emulator.control.requests()).toEqual([]);
    const unchecked = await startClient({ emulator: { profile }, validateRequests: false });
    const refusal = await failureOf(call(unchecked.client), ApiError);
    expect(refusal).toMatchObject({ attempts: 1, status: expect.toBeOneOf([400, 404]) });
  });
});
