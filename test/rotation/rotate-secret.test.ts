import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { rotateSecret, type SecretStore } from "../../src/rotation/index.ts";
import {
  DAY_MS,
  FIRST_SECRET,
  failureOf,
  HOUR_MS,
  MINUTE_MS,
  type Setting,
  serviceSecret,
  serviceState,
  startSetting,
} from "./support.ts";

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

  it.each(["omit", "null", "zero"] as const)(
    "installs a first secret where there was none, timestamps absent by %s (WHK-16, WHK-17)",
    async (absentTimestamps) => {
      const setting = await startSetting({ empty: true, emulator: { unspecified: { absentTimestamps } } });
      const result = await rotateSecret(setting.options);
      expect(result).toMatchObject({ rotatedAt: null, previousValidUntil: null, generated: false });
      const stored = await setting.secrets.read("delivery");
      expect(stored).toMatchObject({ current: serviceSecret(setting), previous: [], next: null });
    },
  );

  it.each(["omit", "null", "zero"] as const)(
    "knows its rotations apart, timestamps absent by %s (WHK-16, WHK-26)",
    async (absentTimestamps) => {
      const setting = await startSetting({ emulator: { unspecified: { absentTimestamps } } });
      for (let day = 0; day < 3; day++) {
        const { rotatedAt } = await rotateSecret(setting.options);
        expect(rotatedAt).toBe(setting.clock.now());
        await expectAgreement(setting);
        await setting.clock.advance(2 * DAY_MS);
      }
    },
  );

  it("keeps the old secret for retries signed at the end of the service's window (DLV-6, DLV-16, DLV-17)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { overlapMs: HOUR_MS } } });
    const { previousValidUntil } = await rotateSecret({ ...setting.options, toleranceMs: 10 * MINUTE_MS });
    expect(previousValidUntil).toBe(setting.clock.now() + HOUR_MS + ALL_ATTEMPTS_MS + 10 * MINUTE_MS);
  });

  it("keeps it for frozen retries where the service has no window (WHK-19, DLV-17)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { overlapMs: 0 } } });
    const { previousValidUntil } = await rotateSecret(setting.options);
    expect(previousValidUntil).toBe(setting.clock.now() + ALL_ATTEMPTS_MS + TOLERANCE_MS);
  });

  it("keeps it for less than 8 days, which is all that a keyring takes, and warns (WHK-19)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { overlapMs: 30 * DAY_MS } } });
    const { previousValidUntil } = await rotateSecret(setting.options);
    expect(previousValidUntil).toBe(setting.clock.now() + 8 * DAY_MS - MINUTE_MS);
    expect(setting.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
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
    await setting.secrets.write("inbound", { current: "an-inbound-secret", previous, next: null }, 0);
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
    await setting.secrets.write("inbound", { current: FIRST_SECRET, previous, next: null }, 0);
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });
});

describe("rotateSecret(), not rotated", () => {
  it("says so when the service shows the same rotatedAt as before, and keeps `next` (WHK-2)", async () => {
    const setting = await startSetting();
    await rotateSecret(setting.options);
    await setting.clock.advance(2 * DAY_MS);
    const { rotatedAt } = serviceState(setting);
    const refused = await failureOf(rotateSecret(withConfig(setting, "update", { rotatedAt })));
    expect(refused).toMatchObject({ name: "RotationError", code: "not_rotated" });
    expect((await setting.secrets.read("delivery"))?.next?.secret).toBe(serviceSecret(setting));
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true });
    await expectAgreement(setting);
  });

  it("says so when the service has no current secret then (WHK-2)", async () => {
    const setting = await startSetting();
    const refused = await failureOf(rotateSecret(withConfig(setting, "update", { hasCurrentSecret: false })));
    expect(refused).toMatchObject({ code: "not_rotated" });
    expect((await setting.secrets.read("delivery"))?.current).toBe(FIRST_SECRET);
  });

  it("does not compare with a rotation of a secret that is gone (WHK-16)", async () => {
    const setting = await startSetting({ empty: true });
    const rotatedAt = setting.clock.now() - DAY_MS;
    const shown = withConfig({ ...setting, options: withConfig(setting, "get", { rotatedAt }) }, "update", {
      rotatedAt,
    });
    expect(await rotateSecret(shown)).toMatchObject({ rotatedAt });
  });
});

describe("rotateSecret(), cut off", () => {
  it("goes on after a lost answer by itself: the client sends the same secret again (WHK-20)", async () => {
    const setting = await startSetting();
    loseAnswers(setting, 1);
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: false, rotatedAt: setting.clock.now() });
    await expectAgreement(setting);
  });

  it("is resumed with that very secret after an answer that stayed lost (WHK-20)", async () => {
    const setting = await startSetting();
    loseAnswers(setting, 3);
    expect(await failureOf(rotateSecret(setting.options))).toMatchObject({ code: "connection_failed" });
    const given = serviceSecret(setting);
    expect((await setting.secrets.read("delivery"))?.next?.secret).toBe(given);
    await setting.clock.advance(HOUR_MS);
    const rotatedAt = setting.clock.now() - HOUR_MS;
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true, rotatedAt });
    expect(serviceSecret(setting)).toBe(given);
    await expectAgreement(setting);
  });

  it.each([1, 2, 3, 4, 5])(
    "throws the reason of its signal between two steps, and is resumed: read %i",
    async (count) => {
      const setting = await startSetting();
      const reason = new Error("the process ends");
      const controller = new AbortController();
      let reads = 0;
      const secrets: SecretStore = {
        ...setting.secrets,
        read(kind) {
          reads += 1;
          // The record and the other kind, both for the receivers' version, and the record before it is handed over.
          if (reads === count) controller.abort(reason);
          return setting.secrets.read(kind);
        },
      };
      expect(await failureOf(rotateSecret({ ...setting.options, secrets, signal: controller.signal }))).toBe(reason);
      expect(serviceSecret(setting)).toBe(FIRST_SECRET);
      await rotateSecret(setting.options);
      await expectAgreement(setting);
    },
  );

  it("does nothing with a signal that has aborted", async () => {
    const setting = await startSetting();
    const reason = new Error("too late");
    expect(await failureOf(rotateSecret({ ...setting.options, signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(await setting.secrets.read("delivery")).toMatchObject({ revision: 1 });
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
  ])("names a wrong %s: %j", async (option, wrong) => {
    const { options } = await startSetting();
    const { kind, ...withoutKind } = options;
    const given = option === "kind" ? withoutKind : options;
    const failure = await failureOf(rotateSecret({ ...given, ...wrong } as typeof options));
    expect(failure).toMatchObject({ name: "SetupError", fields: { option } });
  });
});

describe("rotateSecret(), what it tells", () => {
  it("logs each step, and never a secret", async () => {
    const setting = await startSetting({ emulator: { unspecified: { secretGeneration: "always" } } });
    const result = await rotateSecret(setting.options);
    const stored = await setting.secrets.read("delivery");
    const refused = await failureOf(rotateSecret(setting.options));
    await setting.clock.advance(2 * DAY_MS);
    const failed = await failureOf(rotateSecret(withConfig(setting, "update", { hasCurrentSecret: false })));
    const told =
      inspect([setting.lines, result, refused, failed], { depth: 9 }) + JSON.stringify([refused, failed, result]);
    expect(setting.lines.length).toBeGreaterThan(5);
    for (const secret of [stored?.current, ...(stored?.previous.map(({ secret }) => secret) ?? [])]) {
      expect(told).not.toContain(secret);
    }
    expect(told).not.toMatch(/[0-9a-f]{32}/);
  });
});

/** The service rotates, and the connection breaks before its answer comes. */
function loseAnswers({ emulator }: Setting, times: number): void {
  const match = { route: "PATCH /api/core/webhooks/delivery" };
  emulator.control.faults.add({ match, action: { type: "reset", when: "after" }, times });
}

/** The options, with a client to whose answers something is added. */
function withConfig({ options }: Pick<Setting, "options">, method: "get" | "update", fields: object) {
  const { webhooks } = options.client;
  const changed: typeof webhooks =
    method === "update"
      ? { ...webhooks, update: async (...args) => ({ ...(await webhooks.update(...args)), ...fields }) }
      : {
          ...webhooks,
          async get() {
            const { defaults, ...rest } = await webhooks.get();
            return { ...rest, defaults: { ...defaults, delivery: { ...defaults.delivery, ...fields } } };
          },
        };
  return { ...options, client: { webhooks: changed } };
}

async function expectAgreement(setting: Setting): Promise<void> {
  const stored = await setting.secrets.read("delivery");
  expect(stored?.current).toBe(serviceSecret(setting));
  expect(stored?.next).toBeNull();
}
