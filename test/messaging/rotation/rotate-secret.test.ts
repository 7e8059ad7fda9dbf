import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { rotateSecret } from "../../../src/messaging/rotation/index.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import {
  DAY_MS,
  expectAgreement,
  FIRST_SECRET,
  failureOf,
  HOUR_MS,
  MINUTE_MS,
  serviceSecret,
  serviceState,
  startSetting,
  withConfig,
  withOutcome,
} from "./support.ts";

/** How a service writes timestamps that are absent. */
const ABSENT = ["omit", "null", "zero"] as const;
const ALL_ATTEMPTS_MS = 81 * MINUTE_MS;
const TOLERANCE_MS = 90 * MINUTE_MS;

describe("rotateSecret()", () => {
  it("gives service and store one new secret of 32 bytes, and keeps the old one (WHK-11, WHK-19, RCV-9)", async () => {
    const setting = await startSetting();
    const result = await rotateSecret(setting.options);
    const stored = await setting.secrets.read("delivery");
    expect(stored?.current).toMatch(/^[0-9a-f]{64}$/);
    expect(stored).toMatchObject({ next: null, previous: [{ secret: FIRST_SECRET }] });
    expect(serviceState(setting)).toMatchObject({ currentSecret: stored?.current, previousSecret: FIRST_SECRET });
    expect(result).toEqual({
      kind: "delivery",
      resumed: false,
      generated: false,
      rotatedAt: setting.clock.now(),
      previousValidUntil: setting.clock.now() + DAY_MS + ALL_ATTEMPTS_MS + TOLERANCE_MS,
      receivers: 0,
    });
  });

  it("leaves the other kind alone (WHK-7)", async () => {
    const setting = await startSetting({
      emulator: { webhookSecret: FIRST_SECRET, inboundUrl: "http://127.0.0.1:9/" },
    });
    await rotateSecret(setting.options);
    expect(serviceSecret(setting, "inbound")).toBe(FIRST_SECRET);
    expect(await setting.secrets.read("inbound")).toBeNull();
  });

  it("makes another secret each time", async () => {
    const setting = await startSetting();
    await rotateSecret(setting.options);
    const first = serviceSecret(setting);
    await setting.clock.advance(2 * DAY_MS);
    await rotateSecret(setting.options);
    expect(serviceSecret(setting)).not.toBe(first);
    // What had ended is dropped.
    expect((await setting.secrets.read("delivery"))?.previous.map(({ secret }) => secret)).toEqual([first]);
  });

  it.each(ABSENT)("installs a first secret, timestamps absent by %s (WHK-16, WHK-17)", async (absentTimestamps) => {
    const setting = await startSetting({ empty: true, emulator: { unspecified: { absentTimestamps } } });
    const result = await rotateSecret(setting.options);
    expect(result).toMatchObject({ rotatedAt: null, previousValidUntil: null, generated: false });
    const stored = await setting.secrets.read("delivery");
    expect(stored).toMatchObject({ current: serviceSecret(setting), previous: [], next: null, rotatedAt: null });
  });

  it.each(ABSENT)("knows its rotations apart, timestamps absent by %s (WHK-16, WHK-26)", async (absentTimestamps) => {
    const setting = await startSetting({ emulator: { unspecified: { absentTimestamps } } });
    for (let day = 0; day < 3; day++) {
      const { rotatedAt } = await rotateSecret(setting.options);
      expect(rotatedAt).toBe(setting.clock.now());
      await expectAgreement(setting);
      await setting.clock.advance(2 * DAY_MS);
    }
  });

  it.each([HOUR_MS, 0])(
    "keeps the old secret for retries signed at the end of a window of %i ms (DLV-6, DLV-17)",
    async (overlapMs) => {
      const setting = await startSetting({ emulator: { unspecified: { overlapMs } } });
      const { previousValidUntil } = await rotateSecret({ ...setting.options, toleranceMs: 10 * MINUTE_MS });
      expect(previousValidUntil).toBe(setting.clock.now() + overlapMs + ALL_ATTEMPTS_MS + 10 * MINUTE_MS);
    },
  );

  it("takes an end that lies in the past for none (WHK-16)", async () => {
    const setting = await startSetting();
    const shown = { previousSecretValidUntil: setting.clock.now() - HOUR_MS };
    const { previousValidUntil } = await rotateSecret(withConfig(setting, "update", shown));
    expect(previousValidUntil).toBe(setting.clock.now() + ALL_ATTEMPTS_MS + TOLERANCE_MS);
  });

  it("keeps it for less than 8 days, which is all that a keyring takes, and warns (WHK-19)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { overlapMs: 30 * DAY_MS } } });
    const { previousValidUntil } = await rotateSecret(setting.options);
    expect(previousValidUntil).toBe(setting.clock.now() + 8 * DAY_MS - MINUTE_MS);
    const [line] = setting.lines.filter(({ message }) => /8 days/.test(message));
    expect(line?.level).toBe("warn");
  });

  it("takes a secret that the service makes although one was supplied (WHK-18)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { secretGeneration: "always" } } });
    const before = serviceSecret(setting);
    expect(await rotateSecret(setting.options)).toMatchObject({ generated: true });
    await expectAgreement(setting);
    expect((await setting.secrets.read("delivery"))?.previous).toMatchObject([{ secret: before }]);
  });

  it("passes on that the service has no webhook routes, before anything is begun (WHK-27)", async () => {
    const setting = await startSetting({ empty: true, emulator: { unspecified: { "webhooks.routes": "404" } } });
    expect(await failureOf(rotateSecret(setting.options))).toMatchObject({ name: "NotFoundError", status: 404 });
    expect(await setting.secrets.read("delivery")).toBeNull();
  });
});

describe("rotateSecret(), options", () => {
  it.each([
    ["kind", {}],
    ["kind", { kind: "outbound" }],
    ["client", { client: undefined }],
    ["secrets", { secrets: undefined }],
    ["force", { force: "yes" }],
    ["waitMs", { waitMs: -1 }],
    ["waitMs", { waitMs: 3_600_001 }],
    ["toleranceMs", { toleranceMs: 0 }],
    ["signal", { signal: {} }],
    ["logger", { logger: {} }],
    ["waitms", { waitms: 5 }],
    ["secrets.refreshMs", { secrets: { ...memorySecrets(), refreshMs: undefined } }],
    ["secrets.refreshMs", { secrets: { ...memorySecrets(), refreshMs: 99 } }],
    ["secrets.encoding", { secrets: { ...memorySecrets(), encoding: "base32" } }],
  ])("names a wrong %s: %j", async (option, wrong) => {
    const { options } = await startSetting();
    const { kind, ...withoutKind } = options;
    const given = option === "kind" ? withoutKind : options;
    const failure = await failureOf(rotateSecret({ ...given, ...wrong } as typeof options));
    expect(failure).toMatchObject({ name: "SetupError", fields: { option } });
  });
});

it("rotateSecret() logs each step, and never a secret", async () => {
  const setting = await startSetting({ emulator: { unspecified: { secretGeneration: "always" } } });
  const result = await rotateSecret(setting.options);
  const stored = await setting.secrets.read("delivery");
  const refused = await failureOf(rotateSecret(setting.options));
  await setting.clock.advance(2 * DAY_MS);
  const failed = await failureOf(rotateSecret(withOutcome(setting, { hasCurrentSecret: false })));
  const told =
    inspect([setting.lines, result, refused, failed], { depth: 9 }) + JSON.stringify([refused, failed, result]);
  expect(setting.lines.length).toBeGreaterThan(5);
  for (const secret of [stored?.current, ...(stored?.previous.map(({ secret }) => secret) ?? [])]) {
    expect(told).not.toContain(secret);
  }
  expect(told).not.toMatch(/[0-9a-f]{32}/);
});
