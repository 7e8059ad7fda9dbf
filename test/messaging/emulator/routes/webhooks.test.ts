/** `GET /api/core/webhooks` and both updates: what is shown, what is taken, what becomes of secrets, and that none comes back. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { updateWebhookConfig, type WebhookFields } from "../../../../src/messaging/emulator/routes/webhooks.ts";
import type { WebhookRecord } from "../../../../src/messaging/emulator/state/records.ts";
import { type Readings, readingsFrom } from "../../../../src/messaging/emulator/unspecified.ts";
import { collected } from "../../client/support.ts";
import { checkedCall, verdict } from "../checked-call.ts";
import { call, start, tokenOf } from "../support.ts";

const INITIAL = {
  scope: "API_CLIENT_DEFAULT",
  enabled: false,
  signingEnabled: false,
  hasCurrentSecret: false,
  hasPreviousSecret: false,
};
const ROUTES = ["inbound", "delivery"] as const;

const read = (emulator: Emulator) => checkedCall(emulator, "GET", "/api/core/webhooks");
const patch = (emulator: Emulator, body: unknown, kind: (typeof ROUTES)[number] = "delivery") =>
  checkedCall(emulator, "PATCH", `/api/core/webhooks/${kind}`, { body });
/** What the service keeps, secrets included. */
const kept = (emulator: Emulator, kind = "delivery") =>
  emulator.control.exportState().tables.webhooks?.[`ac_main/${kind}`] as WebhookRecord;

describe("GET /api/core/webhooks", () => {
  it("shows both kinds, with nothing configured at first (WHK-1, WHK-2, WHK-3, WHK-15, WHK-16, WHK-17)", async () => {
    const { body } = await read(await start());
    expect(body).toEqual({
      defaults: {
        inbound: { eventClass: "INBOUND", ...INITIAL },
        delivery: { eventClass: "DELIVERY", ...INITIAL },
      },
      overridesSummary: { inboundOverrideCount: 0, deliveryOverrideCount: 0 },
    });
  });

  it("counts the client's own numbers with an override (WHK-6)", async () => {
    const emulator = await start();
    const { full, noCampaign, foreign } = emulator.fixtures.numbers;
    const url = "http://127.0.0.1:1/hook";
    emulator.control.updateNumber(full, { webhookInboundOverride: url, webhookDeliveryOverride: url });
    emulator.control.updateNumber(noCampaign, { webhookDeliveryOverride: url });
    emulator.control.updateNumber(foreign, { webhookInboundOverride: url });
    const { body } = await read(emulator);
    expect(body.overridesSummary).toEqual({ inboundOverrideCount: 1, deliveryOverrideCount: 2 });
  });

  it("never shows a secret, supplied or generated (WHK-5)", async () => {
    const emulator = await start();
    await patch(emulator, { signingEnabled: true, secret: "supplied-secret" }, "inbound");
    const { body } = await patch(emulator, { signingEnabled: true });
    expect(body.generatedSecret).toMatch(/^[0-9a-f]{64}$/);
    const { text } = await read(emulator);
    expect(text).not.toContain("supplied-secret");
    expect(text).not.toContain(body.generatedSecret);
    expect(text).not.toContain("generatedSecret");
  });

  it("shows another client nothing of ours", async () => {
    const emulator = await start();
    await patch(emulator, { signingEnabled: true, enabled: true });
    const token = await tokenOf(emulator, emulator.fixtures.clients.other);
    const { body } = await checkedCall(emulator, "GET", "/api/core/webhooks", { token });
    expect(body.defaults.delivery).toEqual({ eventClass: "DELIVERY", ...INITIAL });
  });
});

describe("PATCH /api/core/webhooks/{kind}", () => {
  it("answers with the configuration of that kind, and leaves the other (WHK-7, WHK-12)", async () => {
    const emulator = await start();
    for (const kind of ROUTES) {
      const set = { signingEnabled: true, enabled: kind === "inbound" };
      const { body } = await patch(emulator, { ...set, secret: `secret-${kind}` }, kind);
      expect(body).toEqual({ ...INITIAL, ...set, eventClass: kind.toUpperCase(), hasCurrentSecret: true });
    }
    const { defaults } = (await read(emulator)).body;
    expect([defaults.inbound.enabled, defaults.delivery.enabled]).toEqual([true, false]);
    const secrets = ROUTES.map((kind) => kept(emulator, kind).currentSecret);
    expect(secrets).toEqual(["secret-inbound", "secret-delivery"]);
  });

  it.each([
    ["no signingEnabled (WHK-8)", { enabled: true }],
    ["signingEnabled as a text (WHK-8)", { signingEnabled: "true" }],
    ["signingEnabled null (WHK-8)", { signingEnabled: null }],
    ["enabled null (WHK-10)", { signingEnabled: true, enabled: null }],
    ["enabled as a number (WHK-10)", { signingEnabled: true, enabled: 1 }],
    ["a URL as a number (WHK-9)", { signingEnabled: true, endpointUrl: 5 }],
    ["a URL that is none (WHK-25)", { signingEnabled: true, endpointUrl: "example" }],
    ["an empty URL (WHK-25)", { signingEnabled: true, endpointUrl: "" }],
    ["an ftp URL (WHK-25)", { signingEnabled: true, endpointUrl: "ftp://127.0.0.1/hook" }],
    ["an empty secret (WHK-24)", { signingEnabled: true, secret: "" }],
    ["a secret that is null (WHK-11)", { signingEnabled: true, secret: null }],
    ["a secret that is no text (WHK-11)", { signingEnabled: true, secret: 12_345 }],
    ["an array", []],
  ])("refuses %s with 400, and changes nothing", async (_, body) => {
    const emulator = await start({ deliveryUrl: "http://127.0.0.1:1/hook" });
    const before = kept(emulator);
    expect(verdict(await patch(emulator, body))).toBe("400 INVALID_REQUEST");
    expect(kept(emulator)).toEqual(before);
  });

  it.each([false, true])("shows the URL only by a reading: %s (WHK-14)", async (isShown) => {
    const endpointUrl = "http://127.0.0.1:1/hook";
    const emulator = await start({ unspecified: { "webhooks.exposeEndpointUrl": isShown } });
    const shown = isShown ? [endpointUrl, null] : [undefined, undefined];
    expect((await patch(emulator, { signingEnabled: false, endpointUrl })).body.endpointUrl).toBe(shown[0]);
    const { delivery, inbound } = (await read(emulator)).body.defaults;
    expect([delivery.endpointUrl, inbound.endpointUrl]).toEqual(shown);
  });

  it.each([
    ["omit", undefined],
    ["null", null],
    ["zero", 0],
  ] as const)("writes absent timestamps by the reading %s (WHK-16)", async (absentTimestamps, expected) => {
    const emulator = await start({ unspecified: { absentTimestamps } });
    const { inbound } = (await read(emulator)).body.defaults;
    expect([inbound.previousSecretValidUntil, inbound.rotatedAt]).toEqual([expected, expected]);
    expect("rotatedAt" in inbound).toBe(absentTimestamps !== "omit");
  });
});

it('webhooks.routes "404": the routes do not exist, whatever the body; 401 goes before (WHK-27)', async () => {
  const emulator = await start({ unspecified: { "webhooks.routes": "404" } });
  expect(verdict(await read(emulator))).toBe("404 NOT_FOUND");
  for (const kind of ROUTES) {
    expect(verdict(await patch(emulator, { signingEnabled: true, enabled: true }, kind))).toBe("404 NOT_FOUND");
    expect(verdict(await patch(emulator, "no JSON", kind))).toBe("404 NOT_FOUND");
  }
  expect(kept(emulator).enabled).toBe(false);
  expect(verdict(await call(emulator, "GET", "/api/core/webhooks"))).toBe("401 UNAUTHORIZED");
});

const DAY = 86_400_000;

const signed = (emulator: Emulator, fields: object = {}, kind?: (typeof ROUTES)[number]) =>
  patch(emulator, { signingEnabled: true, ...fields }, kind);
const shown = async (emulator: Emulator) => (await read(emulator)).body.defaults.delivery;

describe("a generated secret", () => {
  it("comes when signing has none, once, and is the current one (WHK-13, WHK-18)", async () => {
    const emulator = await start();
    const { body } = await signed(emulator);
    expect(body).toMatchObject({ hasCurrentSecret: true, hasPreviousSecret: false });
    expect(kept(emulator).currentSecret).toBe(body.generatedSecret);
    expect((await signed(emulator)).body).not.toHaveProperty("generatedSecret");
  });

  it("is another one each time and for each kind, and repeats with the seed (WHK-18)", async () => {
    const run = async (seed: string) => {
      const emulator = await start({ seed, unspecified: { secretGeneration: "everyPatch" } });
      const bodies = [await signed(emulator), await signed(emulator), await signed(emulator, {}, "inbound")];
      return bodies.map(({ body }) => body.generatedSecret);
    };
    const first = await run("a");
    expect(new Set([...first, ...(await run("b"))]).size).toBe(6);
    expect(await run("a")).toEqual(first);
  });
});

describe("a secret that no receiver takes", () => {
  it("is taken, as the specification has no rule for it, with a warning that does not show it (WHK-24)", async () => {
    const { lines, logger } = collected();
    const emulator = await start({ logger });
    expect((await signed(emulator, { secret: "elevenbytes" })).status).toBe(200);
    expect(kept(emulator).currentSecret).toBe("elevenbytes");
    const warning = expect.stringMatching(/is 11 bytes long; a secret has at least 16\. .*receivers refuse it\.$/);
    expect(emulator.control.requests().at(-1)?.warnings).toEqual([warning]);
    expect(lines).toEqual([{ level: "warn", fields: { kind: "delivery", apiClientId: "ac_main" }, message: warning }]);
    expect(JSON.stringify(lines)).not.toContain("elevenbytes");
    await signed(emulator, { secret: "sixteen bytes..." });
    expect(lines).toHaveLength(1);
  });

  it("is warned of at the start too", async () => {
    const { lines, logger } = collected();
    await start({ logger, webhookSecret: "elevenbytes" });
    expect(lines).toMatchObject([{ level: "warn", message: expect.stringContaining("is 11 bytes long") }]);
  });
});

describe("a rotation", () => {
  it("makes the current secret the previous one for 24 hours (WHK-4, WHK-19, WHK-26)", async () => {
    const emulator = await start();
    await signed(emulator, { secret: "first" });
    await emulator.clock.advance(1_000);
    const rotatedAt = emulator.clock.now();
    const { body } = await signed(emulator, { secret: "second" });
    const during = { hasPreviousSecret: true, rotatedAt, previousSecretValidUntil: rotatedAt + DAY };
    expect(body).toMatchObject(during);
    expect(kept(emulator)).toMatchObject({ currentSecret: "second", previousSecret: "first" });
    await emulator.clock.advance(DAY - 1);
    expect(await shown(emulator)).toMatchObject(during);
    await emulator.clock.advance(1);
    const after = await shown(emulator);
    expect(after).toMatchObject({ hasCurrentSecret: true, hasPreviousSecret: false, rotatedAt });
    expect(after).not.toHaveProperty("previousSecretValidUntil");
  });

  it("inside the window gets 400 by a reading, and changes nothing until it has passed (WHK-21)", async () => {
    const emulator = await start({ unspecified: { rejectRotationDuringOverlap: true } });
    await signed(emulator, { secret: "first" });
    await signed(emulator, { secret: "second" });
    const before = kept(emulator);
    const refused = await signed(emulator, { secret: "third", enabled: true });
    expect(verdict(refused)).toBe("400 INVALID_REQUEST");
    expect(refused.body.error.details).toEqual({ previousSecretValidUntil: emulator.clock.now() + DAY });
    expect(kept(emulator)).toEqual(before);
    await emulator.clock.advance(DAY);
    expect((await signed(emulator, { secret: "third" })).body.hasPreviousSecret).toBe(true);
    expect(kept(emulator).currentSecret).toBe("third");
  });
});

const NOW = 1_767_225_600_000;

const EMPTY: WebhookRecord = {
  apiClientId: "ac_main",
  kind: "delivery",
  endpointUrl: null,
  enabled: false,
  signingEnabled: false,
  currentSecret: null,
  previousSecret: null,
  previousValidUntil: null,
  rotatedAt: null,
};
const SIGNED: WebhookRecord = { ...EMPTY, signingEnabled: true, currentSecret: "first" };
/** Rotated an hour ago. */
const ROTATED: WebhookRecord = {
  ...SIGNED,
  currentSecret: "second",
  previousSecret: "first",
  previousValidUntil: NOW - 3_600_000 + DAY,
  rotatedAt: NOW - 3_600_000,
};

function update(config: WebhookRecord, body: WebhookFields, unspecified: Partial<Readings> = {}, now = NOW) {
  let generated = 0;
  const readings = readingsFrom(unspecified);
  const result = updateWebhookConfig(config, body, { now, readings, generate: () => `generated-${++generated}` });
  return { result, generated };
}

/** The configuration after an update that must not be refused. */
function updated(...args: Parameters<typeof update>): WebhookRecord {
  const { result } = update(...args);
  if (result.outcome !== "updated") throw new Error(`the update was refused: ${result.outcome}`);
  return result.config;
}

describe("updateWebhookConfig()", () => {
  const config = { ...SIGNED, endpointUrl: "http://127.0.0.1:1/old", enabled: true };
  const url = "http://127.0.0.1:1/new";
  it.each([
    ["keeps what is absent (WHK-9, WHK-10)", { signingEnabled: true }, {}],
    ["sets a URL (WHK-9)", { signingEnabled: true, endpointUrl: url }, { endpointUrl: url }],
    ["clears a URL with null (WHK-9)", { signingEnabled: true, endpointUrl: null }, { endpointUrl: null }],
    ["disables (WHK-10)", { signingEnabled: true, enabled: false }, { enabled: false }],
    ["turns signing off and keeps the secret (WHK-23)", { signingEnabled: false }, { signingEnabled: false }],
    ["sees no rotation in the same secret (WHK-20)", { signingEnabled: true, secret: "first" }, {}],
    [
      "rotates to another secret (WHK-19)",
      { signingEnabled: true, secret: "second" },
      { currentSecret: "second", previousSecret: "first", previousValidUntil: NOW + DAY, rotatedAt: NOW },
    ],
    [
      "rotates with signing off (WHK-19)",
      { signingEnabled: false, secret: "second" },
      {
        signingEnabled: false,
        currentSecret: "second",
        previousSecret: "first",
        previousValidUntil: NOW + DAY,
        rotatedAt: NOW,
      },
    ],
  ])("%s", (_, body, changes) => {
    expect(updated(config, body)).toEqual({ ...config, ...changes });
  });

  it("takes a supplied secret as the first one, which is no rotation (WHK-11)", () => {
    expect(updated(EMPTY, { signingEnabled: true, secret: "first" })).toEqual(SIGNED);
  });

  it("evicts the previous secret at a second rotation inside the window (WHK-21)", () => {
    expect(updated(ROTATED, { signingEnabled: true, secret: "third" })).toMatchObject({
      currentSecret: "third",
      previousSecret: "second",
      previousValidUntil: NOW + DAY,
      rotatedAt: NOW,
    });
  });

  it.each([0, 60_000])("keeps the previous secret valid for overlapMs %i (WHK-19)", (overlapMs) => {
    const config = updated(SIGNED, { signingEnabled: true, secret: "second" }, { overlapMs });
    expect(config).toMatchObject({ previousSecret: "first", previousValidUntil: NOW + overlapMs });
  });
});

describe("updateWebhookConfig() with secretGeneration (WHK-18)", () => {
  const on = { signingEnabled: true };
  const off = { signingEnabled: false };
  const supplied = { signingEnabled: true, secret: "supplied" };
  const suppliedOff = { signingEnabled: false, secret: "supplied" };
  // Per reading: the current secret after each update, of a configuration without a secret and of one with "first".
  it.each([
    ["whenMissing", ["generated-1", null, "supplied", "supplied"], ["first", "first", "supplied", "supplied"]],
    ["everyPatch", ["generated-1", null, "supplied", "supplied"], ["generated-1", "first", "supplied", "supplied"]],
    ["always", ["generated-1", null, "generated-1", "supplied"], ["generated-1", "first", "generated-1", "supplied"]],
    ["never", [null, null, "supplied", "supplied"], ["first", "first", "supplied", "supplied"]],
  ] as const)("%s", (secretGeneration, withoutSecret, withSecret) => {
    const bodies = [on, off, supplied, suppliedOff];
    const secrets = (config: WebhookRecord) =>
      bodies.map((body) => updated(config, body, { secretGeneration }).currentSecret);
    expect(secrets(EMPTY)).toEqual(withoutSecret);
    expect(secrets(SIGNED)).toEqual(withSecret);
  });

  it("tells the generated secret, and makes none that is not taken, such as beside a supplied one (WHK-22)", () => {
    expect(update(EMPTY, on)).toMatchObject({ result: { generatedSecret: "generated-1" }, generated: 1 });
    expect(update(SIGNED, on)).toMatchObject({ result: { generatedSecret: null }, generated: 0 });
    expect(update(EMPTY, supplied)).toMatchObject({ result: { generatedSecret: null }, generated: 0 });
    expect(update(EMPTY, supplied, { secretGeneration: "always" })).toMatchObject({
      result: { generatedSecret: "generated-1" },
      generated: 1,
    });
  });

  it("rotates to a generated secret as to a supplied one (WHK-19)", () => {
    expect(updated(SIGNED, on, { secretGeneration: "everyPatch" })).toMatchObject({
      currentSecret: "generated-1",
      previousSecret: "first",
      previousValidUntil: NOW + DAY,
      rotatedAt: NOW,
    });
  });
});

describe("updateWebhookConfig() with rejectRotationDuringOverlap (WHK-21)", () => {
  const unspecified = { rejectRotationDuringOverlap: true };
  const third = { signingEnabled: true, secret: "third" };

  it("refuses a second rotation while the previous secret is valid", () => {
    const refused = { outcome: "rotation_refused", previousValidUntil: NOW - 3_600_000 + DAY };
    expect(update(ROTATED, third, unspecified).result).toEqual(refused);
    expect(update(ROTATED, third, unspecified, refused.previousValidUntil - 1).result).toEqual(refused);
  });

  it("takes first secrets, the same secret and everything else", () => {
    expect(updated(EMPTY, third, unspecified).currentSecret).toBe("third");
    expect(updated(ROTATED, { signingEnabled: true, secret: "second" }, unspecified)).toEqual(ROTATED);
    expect(updated(ROTATED, { signingEnabled: false, enabled: true }, unspecified).enabled).toBe(true);
  });
});
