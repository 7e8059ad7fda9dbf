/** What an update makes of a webhook configuration, as a table over states, bodies and readings. */
import { describe, expect, it } from "vitest";
import { updateWebhookConfig, type WebhookFields } from "../../src/emulator/routes/webhooks.ts";
import type { WebhookRecord } from "../../src/emulator/state/records.ts";
import { type Readings, readingsFrom } from "../../src/emulator/unspecified.ts";

const NOW = 1_767_225_600_000;
const DAY = 86_400_000;

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
