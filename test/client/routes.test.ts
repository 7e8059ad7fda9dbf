import { describe, expect, it } from "vitest";
import { NotFoundError } from "../../src/client/index.ts";
import { PROFILE_NAMES } from "../../src/emulator/options.ts";
import { READINGS, type Readings } from "../../src/emulator/unspecified.ts";
import { clientOf, failureOf, MEDIUM, type Pair, RECIPIENT, smsOf, startPair } from "./routes-support.ts";

/** Each value that is not its reading's default; what is read otherwise in deliveries only concerns receivers. */
const OTHER_READINGS: readonly Partial<Readings>[] = [
  ...Object.entries(READINGS).flatMap(([name, { rule, values }]) =>
    Array.isArray(values) && !/^(?:DLV|EVT)-/.test(rule) ? values.slice(1).map((value) => ({ [name]: value })) : [],
  ),
  { overlapMs: 0 },
  { replay: "current", deliveryStatus: "expired" },
];

const ENDPOINT = "http://127.0.0.1:9/hook";

async function readEverything({ client, emulator }: Pair): Promise<void> {
  const me = await client.whoami();
  expect(me).toMatchObject({ apiClientId: "ac_main", apiClientStatus: "ACTIVE", assignedNumbers: { total: 5 } });
  const numbers = await client.numbers.list();
  expect(numbers.map(({ e164 }) => e164)).toHaveLength(5);
  expect(await client.numbers.get(emulator.fixtures.numbers.full)).toMatchObject({ e164: "+12065550101" });
  expect(await client.numbers.get("num_none")).toBeNull();
  const found = await client.numbers.search({ state: "CA", city: "Fresno" });
  expect(found.groups[0]?.numbers[0]).toMatchObject({ city: "Fresno", state: "CA" });
  expect((await client.numbers.search()).requestedQuantity).toBe(50);
}

async function changeNumbers({ client, emulator }: Pair): Promise<void> {
  const { full } = emulator.fixtures.numbers;
  await client.numbers.update(full, { campaignregId: "C123", webhookInboundOverride: ENDPOINT, mmsEnabled: true });
  const changed = await client.numbers.get(full);
  expect(changed).toMatchObject({ campaignRegId: "C123", webhookInboundOverride: ENDPOINT });
  await client.numbers.update(full, { webhookInboundOverride: null });
  expect((await client.numbers.get(full))?.webhookInboundOverride ?? null).toBeNull();
}

async function changeWebhooks({ client }: Pair): Promise<void> {
  const before = await client.webhooks.get();
  expect(before.defaults.inbound).toMatchObject({ enabled: false, hasCurrentSecret: false });
  const update = { endpointUrl: ENDPOINT, enabled: true, signingEnabled: true } as const;
  const inbound = await client.webhooks.update("inbound", { ...update, secret: "s".repeat(32) });
  expect(inbound).toMatchObject({ enabled: true, signingEnabled: true, hasCurrentSecret: true });
  await client.webhooks.update("delivery", update);
  const { defaults, overridesSummary } = await client.webhooks.get();
  expect(defaults.delivery.enabled && defaults.inbound.hasCurrentSecret).toBe(true);
  expect(overridesSummary).toEqual({ inboundOverrideCount: 0, deliveryOverrideCount: 0 });
}

async function sendMessages({ client, emulator }: Pair): Promise<void> {
  const request = { ...smsOf(emulator), to: [RECIPIENT, "4155550124"] };
  const sent = await client.messages.send(request, { idempotencyKey: "key-1" });
  expect(sent.results).toMatchObject([{ to: RECIPIENT, status: "QUEUED" }]);
  expect(sent.errors).toMatchObject([{ to: "4155550124", error: { code: "INVALID_RECIPIENT" } }]);
  await emulator.clock.advance(60_000);
  const again = await client.messages.send(request, { idempotencyKey: "key-1" });
  expect(again.results[0]?.messageId).toBe(sent.results[0]?.messageId);
  const mms = await client.messages.send({ ...smsOf(emulator), messageType: "MMS", media: [MEDIUM] });
  expect(mms.allRejected).toBe(false);
  expect(emulator.control.messages()).toHaveLength(2);
}

describe("the client, used on every route", () => {
  it.each(PROFILE_NAMES)("works with the profile %s (NUM-1, SEA-6, UPD-1, WHK-1, WHK-12, SND-7)", async (profile) => {
    const pair = await startPair({ profile });
    await readEverything(pair);
    await changeWebhooks(pair);
    await changeNumbers(pair);
    await sendMessages(pair);
    expect(pair.emulator.control.requests().filter(({ warnings }) => warnings.length > 0)).toEqual([]);
  });

  it.each(OTHER_READINGS)(
    "works where the service reads %j (GEN-9, WHK-14, WHK-16, WHK-18, WHK-27, NUM-6, UPD-11, SND-17, SND-24, TOK-21, AUT-10)",
    async (unspecified) => {
      const pair = await startPair({ unspecified });
      await readEverything(pair);
      if (unspecified["webhooks.routes"] === "404") {
        expect(await failureOf(changeWebhooks(pair))).toBeInstanceOf(NotFoundError);
      } else {
        await changeWebhooks(pair);
      }
      await changeNumbers(pair);
      await sendMessages(pair);
    },
  );

  it("keeps the path of a base address (GEN-13)", async () => {
    const pair = await startPair({ basePath: "/sms/v1" });
    await readEverything(pair);
    await sendMessages(pair);
    expect(new Set(pair.sent.map(({ path }) => path.slice(0, 16)))).toEqual(new Set(["/sms/v1/api/core"]));
    const { client } = clientOf(pair.emulator, { baseUrl: `${pair.emulator.url}//` });
    expect(await client.numbers.list()).toHaveLength(5);
  });
});

describe("a webhook's default", () => {
  it("shows its endpointUrl only where the service does (WHK-14)", async () => {
    for (const shows of [false, true]) {
      const { client } = await startPair({ unspecified: { "webhooks.exposeEndpointUrl": shows } });
      const update = { signingEnabled: false, endpointUrl: ENDPOINT };
      expect((await client.webhooks.update("inbound", update)).endpointUrl).toBe(shows ? ENDPOINT : undefined);
    }
  });

  it("has an event class that the client hands on as it is (WHK-15)", async () => {
    const { client } = await startPair();
    const { inbound, delivery } = (await client.webhooks.get()).defaults;
    expect([inbound.eventClass, delivery.eventClass]).toEqual(["INBOUND", "DELIVERY"]);
  });

  it.each([
    ["omit", undefined],
    ["null", null],
    ["zero", 0],
  ] as const)("has timestamps as the service writes their absence: %s (WHK-16)", async (absentTimestamps, written) => {
    const { client } = await startPair({ unspecified: { absentTimestamps } });
    const { inbound } = (await client.webhooks.get()).defaults;
    expect([inbound.rotatedAt, inbound.previousSecretValidUntil]).toEqual([written, written]);
  });

  it("is plainly said to be missing where the service does not expose it (WHK-27)", async () => {
    const { client } = await startPair({ unspecified: { "webhooks.routes": "404" } });
    for (const call of [client.webhooks.get(), client.webhooks.update("inbound", { signingEnabled: false })]) {
      const error = await failureOf(call);
      expect(error).toBeInstanceOf(NotFoundError);
      expect(error.message).toContain("does not expose");
      expect(error.message).toContain("numbers.update");
    }
  });

  it("can not be rotated twice where the service refuses that (WHK-21)", async () => {
    const { client } = await startPair({ unspecified: { rejectRotationDuringOverlap: true } });
    const rotate = (mark: string) =>
      client.webhooks.update("inbound", { signingEnabled: true, secret: mark.repeat(32) });
    await rotate("a");
    await rotate("b");
    expect(await failureOf(rotate("c"))).toMatchObject({ code: "INVALID_REQUEST", status: 400, attempts: 1 });
  });

  it.each([
    ["whenMissing", [true, false]],
    ["everyPatch", [true, true]],
    ["always", [true, true]],
    ["never", [false, false]],
  ] as const)(
    "tells a generated secret by its name, where the service generates: %s (WHK-13, WHK-18)",
    async (secretGeneration, generated) => {
      const { client } = await startPair({ unspecified: { secretGeneration } });
      const first = await client.webhooks.update("delivery", { signingEnabled: true });
      const second = await client.webhooks.update("delivery", { signingEnabled: true });
      expect([first, second].map(({ generatedSecret }) => generatedSecret !== undefined)).toEqual(generated);
      for (const { generatedSecret } of [first, second]) {
        if (generatedSecret !== undefined) expect(JSON.stringify([first, second])).not.toContain(generatedSecret);
      }
    },
  );
});

describe("whoami", () => {
  it("tells capabilities, and no send is gated on them (WHO-2)", async () => {
    const { client, emulator } = await startPair({ unspecified: { "capabilities.enforce": true } });
    emulator.control.updateClient("ac_main", { capabilities: [] });
    expect((await client.whoami()).capabilities).toEqual([]);
    expect((await client.messages.send(smsOf(emulator))).results).toHaveLength(1);
    expect(await failureOf(client.numbers.list())).toMatchObject({ code: "FORBIDDEN", attempts: 1 });
  });

  it("tells overrides of numbers, never the defaults: those are at webhooks.get (WHO-4, WHO-5, WHO-6)", async () => {
    const { client, emulator } = await startPair({ inboundUrl: ENDPOINT, deliveryUrl: ENDPOINT });
    const flags = async () => {
      const { inboundWebhookConfigured, deliveryWebhookConfigured } = await client.whoami();
      return [inboundWebhookConfigured, deliveryWebhookConfigured];
    };
    expect(await flags()).toEqual([false, false]);
    expect((await client.webhooks.get()).defaults.inbound.enabled).toBe(true);
    await client.numbers.update(emulator.fixtures.numbers.full, { webhookInboundOverride: ENDPOINT });
    expect(await flags()).toEqual([true, false]);
  });
});

describe("numbers", () => {
  it("are one list from one request, without cursors (NUM-4)", async () => {
    const { client, sent } = await startPair();
    const numbers = await client.numbers.list();
    expect(Array.isArray(numbers)).toBe(true);
    expect(sent.map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /api/core/numbers"]);
  });

  it.each(["null", "omit"] as const)(
    "may have their optional fields as the service writes them: %s (NUM-6)",
    async (absentNullables) => {
      const { client, emulator } = await startPair({ unspecified: { absentNullables } });
      const number = await client.numbers.get(emulator.fixtures.numbers.noCampaign);
      expect(number?.campaignRegId).toBe(absentNullables === "null" ? null : undefined);
    },
  );

  it("are updated with campaignregId and read with campaignRegId (NUM-3, UPD-7, CLI-8)", async () => {
    const { client, emulator, sent } = await startPair();
    const updated = await client.numbers.update(emulator.fixtures.numbers.noCampaign, { campaignregId: "C9" });
    expect(JSON.parse(sent[0]?.body ?? "")).toEqual({ campaignregId: "C9" });
    expect(updated?.campaignRegId).toBe("C9");
    expect(updated).not.toHaveProperty("campaignregId");
  });

  it("may be answered with null after an update, and read again (UPD-11, UPD-13)", async () => {
    const { client, emulator } = await startPair({ unspecified: { updateReturnsNull: true } });
    const { noCampaign } = emulator.fixtures.numbers;
    expect(await client.numbers.update(noCampaign, { campaignregId: "C9" })).toBeNull();
    expect(await client.numbers.get(noCampaign)).toMatchObject({ campaignRegId: "C9" });
  });

  it.each(["a/b", "a b?c#d", "%2e%2e", "né", "a%b"])(
    "may have any id: %s is one segment of the path (UPD-16)",
    async (numberId) => {
      const { client, sent } = await startPair();
      expect(await failureOf(client.numbers.update(numberId, {}))).toMatchObject({ code: "NOT_FOUND" });
      const [, segment = ""] = /^\/api\/core\/numbers\/([^/]+)$/.exec(sent[0]?.path ?? "") ?? [];
      expect(decodeURIComponent(segment)).toBe(numberId);
    },
  );

  it("are counted by the service: a group's count is handed on, whatever the length of its list (SEA-14)", async () => {
    const groups = [{ rateCenter: "X", count: 99, numbers: [{ e164: "+12065550110" }] }];
    const body = JSON.stringify({ groups, requestedQuantity: 50 });
    const { emulator } = await startPair();
    const fetch: typeof globalThis.fetch = async (input, init) =>
      String(input).endsWith("/search") ? new Response(body) : emulator.handle(new Request(input, init));
    const found = await clientOf(emulator, { fetch }).client.numbers.search({ npa: "206" });
    expect(found.groups).toEqual(groups);
  });
});

describe("a send", () => {
  it("gives rejected recipients as data, and an error on request (SND-7, CLI-9)", async () => {
    const { client, emulator } = await startPair();
    const sent = await client.messages.send({ ...smsOf(emulator), to: [RECIPIENT, "nobody"] });
    expect([sent.results.length, sent.errors.length, sent.allRejected]).toEqual([1, 1, false]);
    expect(() => sent.throwIfRejected()).toThrow(expect.objectContaining({ accepted: 1, rejected: 1 }));
  });

  it("hands a rejected recipient on as the service wrote it (SND-8)", async () => {
    const { client, emulator } = await startPair();
    const raw = ["<img src=x onerror=alert(1)>", "\u001b[2J", "", " +14155550124 "];
    const sent = await client.messages.send({ ...smsOf(emulator), to: [RECIPIENT, ...raw] });
    expect(sent.errors.map(({ to }) => to)).toEqual(raw);
  });

  it("with no valid recipient is data or a refusal, as the service reads it (SND-24)", async () => {
    const rejected = { ...smsOf((await startPair()).emulator), to: ["nobody"] };
    const asData = await startPair({}, { validateRequests: false });
    expect(await asData.client.messages.send(rejected)).toMatchObject({ results: [], allRejected: true });
    const asRefusal = await startPair({ unspecified: { allRejected: 400 } }, { validateRequests: false });
    expect(await failureOf(asRefusal.client.messages.send(rejected))).toMatchObject({ code: "INVALID_REQUEST" });
  });

  it.each(["stored", "current"] as const)(
    "made again with its key sends nothing again, answered with what is %s (SND-17)",
    async (replay) => {
      const { client, emulator } = await startPair({ unspecified: { replay }, lifecycle: "instant" });
      const send = () => client.messages.send(smsOf(emulator), { idempotencyKey: "key-1" });
      const [first, again] = [await send(), await send()];
      expect(again.results[0]?.messageId).toBe(first.results[0]?.messageId);
      expect(again.results[0]?.status).toBe(replay === "stored" ? "QUEUED" : "delivered");
      expect(again.idempotencyKey).toBe("key-1");
    },
  );

  it("makes a message per recipient (SND-19)", async () => {
    const { client, emulator } = await startPair();
    const { results } = await client.messages.send({ ...smsOf(emulator), to: [RECIPIENT, "+14155550124", RECIPIENT] });
    expect(new Set(results.map(({ messageId }) => messageId)).size).toBe(3);
  });
});
