import { describe, expect, it } from "vitest";
import { adoptSecret, rotateSecret, type SecretStore } from "../../../src/messaging/rotation/index.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import { DAY_MS, FIRST_SECRET, failureOf, HOUR_MS, sightingOf, startSetting } from "./support.ts";

const ANOTHER = "another-secret-of-32-bytes";

describe("adoptSecret()", () => {
  it("stores the secret in use as the current one, so that a rotation can begin (RCV-9)", async () => {
    const setting = await startSetting({ empty: true });
    await setting.client.webhooks.update("delivery", { signingEnabled: true, secret: FIRST_SECRET });
    expect(await adoptSecret({ kind: "delivery", secrets: setting.secrets, secret: FIRST_SECRET })).toBe(true);
    expect(await setting.secrets.read("delivery")).toMatchObject({ current: FIRST_SECRET, previous: [], next: null });
    await rotateSecret(setting.options);
    expect((await setting.secrets.read("delivery"))?.previous).toMatchObject([{ secret: FIRST_SECRET }]);
  });

  it.each([FIRST_SECRET, ANOTHER])("changes nothing later, whatever is given: %s (RCV-9)", async (secret) => {
    const setting = await startSetting();
    for (const _ of ["before", "after"]) {
      const before = await setting.secrets.read("delivery");
      expect(await adoptSecret({ kind: "delivery", secrets: setting.secrets, secret })).toBe(false);
      expect(await setting.secrets.read("delivery")).toEqual(before);
      await rotateSecret({ ...setting.options, force: true });
    }
  });

  it("never puts one beside a rotation that is under way", async () => {
    const setting = await startSetting({ empty: true });
    setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
    await failureOf(rotateSecret({ ...setting.options, waitMs: 0 }));
    expect(await adoptSecret({ kind: "delivery", secrets: setting.secrets, secret: FIRST_SECRET })).toBe(false);
    expect(await setting.secrets.read("delivery")).toMatchObject({ current: null, revision: 1 });
  });

  it.each([FIRST_SECRET, ANOTHER])("lets one of several processes that start together store it: %s", async (secret) => {
    const secrets = memorySecrets();
    const adopted = [FIRST_SECRET, secret, secret].map((each) =>
      adoptSecret({ kind: "delivery", secrets, secret: each }),
    );
    expect(await Promise.all(adopted)).toEqual([true, false, false]);
    expect(await secrets.read("delivery")).toMatchObject({ current: FIRST_SECRET, revision: 1 });
  });

  it("takes the place of one that was taken out, and keeps the replaced ones that still count", async () => {
    const secrets = memorySecrets();
    const kept = { secret: ANOTHER, validUntil: Date.now() + HOUR_MS };
    const previous = [kept, { secret: "one-that-has-ended", validUntil: Date.now() - 1 }];
    await secrets.write("delivery", { current: null, previous, next: null, rotatedAt: 5 }, 0);
    expect(await adoptSecret({ kind: "delivery", secrets, secret: FIRST_SECRET })).toBe(true);
    expect(await secrets.read("delivery")).toEqual({
      current: FIRST_SECRET,
      previous: [kept],
      next: null,
      rotatedAt: null,
      revision: 2,
    });
  });

  it("never makes a ninth secret, those of both kinds counted (RCV-9)", async () => {
    const secrets = memorySecrets();
    const previous = Array.from({ length: 7 }, (_, index) => ({
      secret: `a-replaced-delivery-secret-${index}`,
      validUntil: Date.now() + DAY_MS + index,
    }));
    await secrets.write("delivery", { current: FIRST_SECRET, previous, next: null, rotatedAt: null }, 0);
    const refused = await failureOf(adoptSecret({ kind: "inbound", secrets, secret: ANOTHER }));
    expect(refused).toMatchObject({ code: "rotation_refused", fields: { until: previous[0]?.validUntil } });
    expect(await secrets.read("inbound")).toBeNull();
    expect(await adoptSecret({ kind: "inbound", secrets, secret: FIRST_SECRET })).toBe(true);
    expect(await adoptSecret({ kind: "delivery", secrets, secret: ANOTHER })).toBe(false);
  });

  it("gives up on a store in which somebody else's write is always first", async () => {
    const secrets: SecretStore = { ...memorySecrets(), write: async () => false };
    const failure = await failureOf(adoptSecret({ kind: "delivery", secrets, secret: FIRST_SECRET }));
    expect(failure).toMatchObject({ code: "rotation_conflict" });
  });

  it.each(["", "   ", "short", 5, undefined])("refuses what is no secret: %j", async (secret) => {
    const secrets = memorySecrets();
    const refused = await failureOf(adoptSecret({ kind: "delivery", secrets, secret: secret as string }));
    expect(refused).toMatchObject({ name: "SetupError", fields: { option: "secret" } });
    expect(await secrets.read("delivery")).toBeNull();
  });
});
