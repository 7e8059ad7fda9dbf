import { describe, expect, it } from "vitest";
import { rotateSecret, type SecretStore } from "../../../src/messaging/rotation/index.ts";
import {
  DAY_MS,
  expectAgreement,
  FIRST_SECRET,
  failureOf,
  fillInbound,
  HOUR_MS,
  type Setting,
  serviceSecret,
  startSetting,
  whileTimePasses,
  withConfig,
} from "./support.ts";

describe("rotateSecret(), refused", () => {
  it("waits for the end of the last rotation, as the store has it (WHK-21)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { overlapMs: HOUR_MS } } });
    const { previousValidUntil: until } = await rotateSecret(setting.options);
    const before = await setting.secrets.read("delivery");
    await setting.clock.advance(2 * HOUR_MS);
    const refused = await failureOf(rotateSecret(setting.options));
    expect(refused).toMatchObject({ name: "RotationError", code: "rotation_refused", fields: { until } });
    expect(String(refused)).toMatch(/force: true/);
    expect(await setting.secrets.read("delivery")).toEqual(before);
    await setting.clock.advance((until ?? 0) - setting.clock.now());
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });

  it("waits for a window that somebody else's rotation opened at the service (WHK-21)", async () => {
    const setting = await startSetting();
    const secret = "a-secret-that-somebody-else-put-in";
    const { previousSecretValidUntil } = await setting.client.webhooks.update("delivery", {
      signingEnabled: true,
      secret,
    });
    const refused = await failureOf(rotateSecret(setting.options));
    expect(refused).toMatchObject({ code: "rotation_refused", fields: { until: previousSecretValidUntil } });
    expect(serviceSecret(setting)).toBe(secret);
  });

  it.each([HOUR_MS, -HOUR_MS])("names the later end, the service's being %i ms after the store's", async (laterMs) => {
    const setting = await startSetting();
    const { previousValidUntil: end } = await rotateSecret(setting.options);
    const storedEnd = end ?? expect.fail();
    const previousSecretValidUntil = storedEnd + laterMs;
    const showing = (hasPreviousSecret: boolean) =>
      withConfig(setting, "get", { hasPreviousSecret, previousSecretValidUntil });
    const until = Math.max(storedEnd, previousSecretValidUntil);
    expect(await failureOf(rotateSecret(showing(true)))).toMatchObject({ fields: { until } });
    expect(await failureOf(rotateSecret(showing(false)))).toMatchObject({ fields: { until: storedEnd } });
  });

  it("refuses when the service shows a previous secret without its end, and not when that end has passed", async () => {
    const setting = await startSetting();
    const showing = (shown: object) => withConfig(setting, "get", { hasPreviousSecret: true, ...shown });
    expect(await failureOf(rotateSecret(showing({})))).toMatchObject({
      code: "rotation_refused",
      fields: { until: null },
    });
    await rotateSecret(showing({ previousSecretValidUntil: setting.clock.now() }));
    await expectAgreement(setting);
  });

  it("goes on all the same when forced, and keeps both replaced secrets (WHK-21)", async () => {
    const setting = await startSetting();
    await rotateSecret(setting.options);
    const second = serviceSecret(setting);
    await setting.clock.advance(HOUR_MS);
    await rotateSecret({ ...setting.options, force: true });
    await expectAgreement(setting);
    const previous = (await setting.secrets.read("delivery"))?.previous.map(({ secret }) => secret);
    expect(previous).toEqual([second, FIRST_SECRET]);
  });

  it("passes on that the service refuses a second rotation in its window, and ends it later (WHK-21)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { rejectRotationDuringOverlap: true } } });
    await rotateSecret(setting.options);
    await setting.clock.advance(HOUR_MS);
    const refused = await failureOf(rotateSecret({ ...setting.options, force: true }));
    expect(refused).toMatchObject({ name: "InvalidRequestError", status: 400 });
    const next = (await setting.secrets.read("delivery"))?.next?.secret;
    await setting.clock.advance(DAY_MS);
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true });
    expect(serviceSecret(setting)).toBe(next);
    await expectAgreement(setting);
  });

  it("asks for the service's secret first, unless forced (RCV-9)", async () => {
    const setting = await startSetting({ empty: true, emulator: { deliveryUrl: "http://127.0.0.1:9/" } });
    const refused = await failureOf(rotateSecret(setting.options));
    expect(refused).toMatchObject({ code: "rotation_refused" });
    expect(String(refused)).toMatch(/adoptSecret/);
    await rotateSecret({ ...setting.options, force: true });
    await expectAgreement(setting);
  });

  it.each([false, true])("never makes a ninth secret, those of both kinds counted; forced: %s", async (force) => {
    const setting = await startSetting();
    const now = setting.clock.now();
    await fillInbound(setting.secrets, now + 2 * HOUR_MS);
    const refused = await failureOf(rotateSecret({ ...setting.options, force }));
    expect(refused).toMatchObject({ code: "rotation_refused", fields: { until: now + 2 * HOUR_MS } });
    await setting.clock.advance(2 * HOUR_MS);
    await rotateSecret({ ...setting.options, force });
    await expectAgreement(setting);
  });

  it("takes `next` back when the other kind grew while it was written (RCV-9)", async () => {
    const setting = await startSetting();
    const secrets = interfering(setting, "write");
    expect(await failureOf(rotateSecret({ ...setting.options, secrets }))).toMatchObject({ code: "rotation_refused" });
    expect(await setting.secrets.read("delivery")).toMatchObject({ current: FIRST_SECRET, next: null });
    expect(serviceSecret(setting)).toBe(FIRST_SECRET);
  });

  it("takes back no other than its own `next` then (RCV-9)", async () => {
    const setting = await startSetting();
    const secrets = interfering(setting, "write");
    const since = setting.clock.now();
    const other = { secret: "what-another-rotation-began-with", since, rotatedAtBefore: null, hadSecret: true };
    const write: SecretStore["write"] = async (kind, slots, revision) => {
      const isWritten = await secrets.write(kind, slots, revision);
      if (slots.next !== null) await setting.secrets.write(kind, { ...slots, next: other }, revision + 1);
      return isWritten;
    };
    const options = { ...setting.options, secrets: { ...secrets, write } };
    expect(await failureOf(rotateSecret(options))).toMatchObject({ code: "rotation_refused" });
    expect(await setting.secrets.read("delivery")).toMatchObject({ next: other });
  });

  it("does not hand over a secret that is one too many since it was installed (RCV-9)", async () => {
    const setting = await startSetting();
    const secrets = interfering(setting, "look");
    const refused = await failureOf(rotateSecret({ ...setting.options, secrets }));
    expect(refused).toMatchObject({ code: "rotation_refused", fields: { until: expect.any(Number) } });
    expect(serviceSecret(setting)).toBe(FIRST_SECRET);
    await setting.clock.advance(2 * DAY_MS);
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true });
    await expectAgreement(setting);
  });

  it("does not hand over a secret that receivers could not use (RCV-9)", async () => {
    const setting = await startSetting();
    setting.sightings = null;
    const unusable = { current: "short", previous: [], next: null, rotatedAt: null, revision: 1 };
    const read: SecretStore["read"] = async (kind) => (kind === "inbound" ? unusable : setting.secrets.read(kind));
    const options = { ...setting.options, secrets: { ...setting.secrets, read } };
    const refused = await failureOf(whileTimePasses(setting.clock, rotateSecret(options)));
    expect(refused).toMatchObject({ name: "SetupError", code: "invalid_secret" });
    expect(serviceSecret(setting)).toBe(FIRST_SECRET);
  });

  it("counts a secret that both kinds share once", async () => {
    const setting = await startSetting();
    await fillInbound(setting.secrets, setting.clock.now() + DAY_MS, FIRST_SECRET);
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });
});

describe("rotateSecret(), after a rotation that its store does not know", () => {
  it("refuses, for receivers may lack what the service signs with; not when forced (RCV-9)", async () => {
    const setting = await startSetting();
    await rotateSecret(setting.options);
    await setting.clock.advance(2 * DAY_MS);
    const secret = "a-secret-that-somebody-else-put-in";
    await setting.client.webhooks.update("delivery", { signingEnabled: true, secret });
    const refused = await failureOf(rotateSecret(setting.options));
    expect(refused).toMatchObject({ code: "rotation_refused", fields: { until: null } });
    expect(String(refused)).toMatch(/rotated elsewhere, or this store was restored from a backup.*force: true/);
    expect(await setting.secrets.read("delivery")).toMatchObject({ next: null });
    await setting.clock.advance(2 * DAY_MS);
    expect(await failureOf(rotateSecret(setting.options))).toMatchObject({ code: "rotation_refused" });
    await rotateSecret({ ...setting.options, force: true });
    await expectAgreement(setting);
    await setting.clock.advance(2 * DAY_MS);
    await rotateSecret(setting.options);
  });

  it.each([undefined, null, 0])("goes on where the service shows no rotation: %s (WHK-16)", async (rotatedAt) => {
    const setting = await startSetting();
    await rotateSecret(setting.options);
    await setting.clock.advance(2 * DAY_MS);
    await rotateSecret(withConfig(setting, "get", { rotatedAt }));
    await expectAgreement(setting);
  });
});

/** A store in which the other kind gets as many secrets as there may be, at the first write of this one or look for receivers. */
function interfering({ secrets, clock }: Setting, at: "write" | "look"): SecretStore {
  let isFull = false;
  const interfere = async () => {
    if (isFull) return;
    isFull = true;
    await fillInbound(secrets, clock.now() + DAY_MS);
  };
  return {
    ...secrets,
    async write(...args) {
      const isWritten = await secrets.write(...args);
      if (at === "write") await interfere();
      return isWritten;
    },
    async receivers() {
      if (at === "look") await interfere();
      return [];
    },
  };
}
