import { describe, expect, it } from "vitest";
import { RotationError, rotateSecret } from "../../../src/messaging/rotation/index.ts";
import {
  DAY_MS,
  expectAgreement,
  FIRST_SECRET,
  failureOf,
  type Setting,
  serviceSecret,
  serviceState,
  sightingOf,
  startSetting,
  withConfig,
  withOutcome,
} from "./support.ts";

const STARS = "*".repeat(32);
const MASKS = [
  "****",
  STARS,
  `${STARS}1a2b`,
  "xxxx-xxxx-xxxx-xxxx",
  "whsec_••••••••1234",
  "a1b2c3d4e5f6…7890",
  "0f1e2d3c4b***5a69",
];
const PLACEHOLDERS = ["[hidden]", "REDACTED", "<not shown>", "null"];
const NO_SECRETS = [null, "", ...PLACEHOLDERS, ...MASKS, 5, {}, ["a-text-of-at-least-16-bytes"]];

describe("rotateSecret(), not rotated", () => {
  it("says so when the service shows the same rotatedAt as before, and keeps `next` (WHK-2)", async () => {
    const setting = await startSetting();
    await rotateSecret(setting.options);
    await setting.clock.advance(2 * DAY_MS);
    const { rotatedAt } = serviceState(setting);
    const refused = await failureOf(rotateSecret(withOutcome(setting, { rotatedAt })));
    expect(refused).toMatchObject({ name: "RotationError", code: "not_rotated", fields: { rotatedAt } });
    expect(String(refused)).toMatch(/nextUses.*grows.*force: true.*null.*the other kind/);
    expect((await setting.secrets.read("delivery"))?.next?.secret).toBe(serviceSecret(setting));
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true });
    await expectAgreement(setting);
  });

  it("says so too where the service shows our own secret as its generated one (WHK-2, WHK-18)", async () => {
    const setting = await startSetting();
    const { webhooks } = withOutcome(setting, { rotatedAt: null }).client;
    const update: typeof webhooks.update = async (kind, given) => ({
      ...(await webhooks.update(kind, given)),
      generatedSecret: given.secret ?? "",
    });
    const options = { ...setting.options, client: { webhooks: { ...webhooks, update } } };
    expect(await failureOf(rotateSecret(options))).toMatchObject({ code: "not_rotated" });
  });

  it.each([undefined, null, 0])("says so when rotatedAt is %s before and after (WHK-2, WHK-16)", async (rotatedAt) => {
    const setting = await startSetting();
    const options = withOutcome(setting, { rotatedAt });
    expect(await failureOf(rotateSecret(options))).toMatchObject({ code: "not_rotated" });
    expect((await setting.secrets.read("delivery"))?.current).toBe(FIRST_SECRET);
  });

  it.each([{ rotatedAt: undefined }, { hasCurrentSecret: false }])("looks once more: %j (WHK-2)", async (fields) => {
    const setting = await startSetting();
    const { rotatedAt } = await rotateSecret(withConfig(setting, "update", fields));
    expect(rotatedAt).toBe(setting.clock.now());
    await expectAgreement(setting);
  });

  it.each([false, true])("says so when the service has no current secret then; forced: %s (WHK-2)", async (force) => {
    const setting = await startSetting();
    const options = { ...withOutcome(setting, { hasCurrentSecret: false }), force };
    expect(await failureOf(rotateSecret(options))).toMatchObject({ code: "not_rotated" });
    expect((await setting.secrets.read("delivery"))?.current).toBe(FIRST_SECRET);
  });

  it("ends all the same when forced, and warns: a service's rotatedAt may stand still (WHK-2)", async () => {
    const setting = await startSetting();
    const rotatedAt = setting.clock.now() - DAY_MS;
    const shown = withConfig({ options: withOutcome(setting, { rotatedAt }) }, "get", { rotatedAt });
    expect(await failureOf(rotateSecret(shown))).toMatchObject({ code: "not_rotated" });
    expect(await rotateSecret({ ...shown, force: true })).toMatchObject({ resumed: true, rotatedAt });
    await expectAgreement(setting);
    expect((await setting.secrets.read("delivery"))?.previous).toMatchObject([{ secret: FIRST_SECRET }]);
    const [line] = setting.lines.filter(({ message }) => /shows no rotation/.test(message));
    expect(line?.level).toBe("warn");
  });

  it("asks for no rotatedAt after a first secret, and does not compare with one of a secret that is gone (WHK-16)", async () => {
    for (const rotatedAt of [undefined, 1_700_000_000_000]) {
      const setting = await startSetting({ empty: true });
      const shown = withConfig({ options: withConfig(setting, "get", { rotatedAt }) }, "update", { rotatedAt });
      expect(await rotateSecret(shown)).toMatchObject({ rotatedAt: rotatedAt ?? null });
    }
  });
});

it("rotateSecret(), before the service has a secret, remembers the rotatedAt that the service shows all the same (WHK-16)", async () => {
  const setting = await startSetting({ empty: true });
  const rotatedAt = setting.clock.now() - DAY_MS;
  setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
  const shown = withConfig(setting, "get", { hasCurrentSecret: false, rotatedAt });
  await failureOf(rotateSecret({ ...shown, waitMs: 0 }));
  const stored = await setting.secrets.read("delivery");
  expect(stored?.next).toMatchObject({ hadSecret: false, rotatedAtBefore: rotatedAt });
});

describe("rotateSecret(), answers of another shape", () => {
  it.each([null, {}, { defaults: null }, { defaults: {} }, { defaults: { delivery: 5 } }, "a page"])(
    "begins nothing when the service's configuration is none: %j (WHK-1)",
    async (answer) => {
      const setting = await startSetting();
      const webhooks = { ...setting.client.webhooks, get: async () => answer };
      const refused = await failureOf(rotateSecret({ ...setting.options, client: { webhooks } as never }));
      expect(refused).toBeInstanceOf(RotationError);
      expect(refused).toMatchObject({ code: "invalid_response" });
      expect(await setting.secrets.read("delivery")).toMatchObject({ next: null, revision: 1 });
    },
  );

  it("is resumed when the answer to the update was none (WHK-12)", async () => {
    const setting = await startSetting();
    const { webhooks } = setting.client;
    const update = (...args: Parameters<typeof webhooks.update>) => webhooks.update(...args).then(() => null);
    const client = { webhooks: { ...webhooks, update } } as never;
    expect(await failureOf(rotateSecret({ ...setting.options, client }))).toMatchObject({ code: "invalid_response" });
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true });
    await expectAgreement(setting);
  });

  it.each(NO_SECRETS)("takes %j for no generated secret (WHK-13, WHK-18)", async (generatedSecret) => {
    const setting = await startSetting();
    expect(await rotateSecret(generating(setting, generatedSecret))).toMatchObject({ generated: false });
    await expectAgreement(setting);
  });

  it.each(["elevenbytes", "fifteen bytes.."])("refuses %j, that no receiver takes (WHK-18, WHK-24)", async (secret) => {
    const setting = await startSetting();
    const refused = await failureOf(rotateSecret(generating(setting, secret)));
    expect(refused).toBeInstanceOf(RotationError);
    expect(refused).toMatchObject({ code: "invalid_secret", fields: { kind: "delivery" } });
    expect(String(refused)).toMatch(/deliveries are refused.*dangerouslyShort: true/);
    expect(String(refused)).not.toContain(secret);
    expect(await setting.secrets.read("delivery")).toMatchObject({ current: FIRST_SECRET, next: expect.any(Object) });
    // What the service makes next can be used.
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true, generated: false });
    await expectAgreement(setting);
  });

  it("refuses a short one by its bytes, not its text (DLV-14)", async () => {
    const setting = await startSetting();
    const secrets = { ...setting.secrets, encoding: "hex" as const };
    const refused = await failureOf(rotateSecret({ ...generating(setting, "0123456789abcdef01"), secrets }));
    expect(refused).toMatchObject({ code: "invalid_secret" });
  });

  it.each(["sixteen bytes...", "0000000012345678"])("takes %j for one (WHK-18)", async (generatedSecret) => {
    const setting = await startSetting();
    expect(await rotateSecret(generating(setting, generatedSecret))).toMatchObject({ generated: true });
    expect(await setting.secrets.read("delivery")).toMatchObject({ current: generatedSecret });
  });
});

function generating(setting: Setting, generatedSecret: unknown) {
  return withConfig(setting, "update", { generatedSecret });
}
