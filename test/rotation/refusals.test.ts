import { describe, expect, it } from "vitest";
import { rotateSecret } from "../../src/rotation/index.ts";
import {
  DAY_MS,
  expectAgreement,
  FIRST_SECRET,
  failureOf,
  HOUR_MS,
  serviceSecret,
  startSetting,
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
    const previous = Array.from({ length: 6 }, (_, index) => ({
      secret: `a-replaced-inbound-secret-${index}`,
      validUntil: now + (index + 2) * HOUR_MS,
    }));
    await setting.secrets.write("inbound", { current: "an-inbound-secret", previous, next: null, rotatedAt: null }, 0);
    const refused = await failureOf(rotateSecret({ ...setting.options, force }));
    expect(refused).toMatchObject({ code: "rotation_refused", fields: { until: now + 2 * HOUR_MS } });
    await setting.clock.advance(2 * HOUR_MS);
    await rotateSecret({ ...setting.options, force });
    await expectAgreement(setting);
  });

  it("counts a secret that both kinds share once", async () => {
    const setting = await startSetting();
    const previous = Array.from({ length: 6 }, (_, index) => ({
      secret: `a-replaced-inbound-secret-${index}`,
      validUntil: setting.clock.now() + DAY_MS,
    }));
    await setting.secrets.write("inbound", { current: FIRST_SECRET, previous, next: null, rotatedAt: null }, 0);
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });
});
