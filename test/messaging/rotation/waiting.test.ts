import { describe, expect, it } from "vitest";
import { type ReceiverSighting, rotateSecret, type SecretStore } from "../../../src/messaging/rotation/index.ts";
import { compileKeys } from "../../../src/sources/keys.ts";
import { storedKeyring } from "../../../src/sources/messaging/keyring-source.ts";
import { STRICT_RULES } from "../../../src/sources/secret.ts";
import {
  failureOf,
  type Setting,
  serviceSecret,
  serviceState,
  sightingOf,
  startSetting,
  whileTimePasses,
} from "./support.ts";

describe("rotateSecret(), waiting for receivers", () => {
  it("gives the service the secret only when the last receiver has it (RCV-9)", async () => {
    const setting = await startSetting();
    const before = setting.clock.now();
    receiversThat(setting, [
      { id: "a", pid: 1, lagMs: 0 },
      { id: "b", pid: 2, lagMs: 30_000 },
    ]);
    const result = await whileTimePasses(setting.clock, rotateSecret(setting.options));
    expect(result.receivers).toBe(2);
    expect(serviceState(setting).rotatedAt).toBeGreaterThanOrEqual(before + 30_000);
    expect(serviceState(setting).rotatedAt).toBeLessThan(before + 40_000);
  });

  it("does not wait for a receiver that was not seen for 90 s", async () => {
    const setting = await startSetting();
    const seenAt = setting.clock.now() - 90_000;
    setting.sightings = [sightingOf({ seenAt })];
    expect(await rotateSecret(setting.options)).toMatchObject({ receivers: 0 });
    const [line] = setting.lines.filter(({ message }) => message.startsWith("No receiver"));
    expect(line?.level).toBe("warn");
  });

  it("waits for one that was seen 89,999 ms ago, and not once it is gone for 90 s", async () => {
    const setting = await startSetting();
    const before = setting.clock.now();
    setting.sightings = [sightingOf({ seenAt: before - 89_999 })];
    const result = await whileTimePasses(setting.clock, rotateSecret(setting.options));
    expect(result.receivers).toBe(0);
    expect(result.rotatedAt).toBeGreaterThan(before);
  });

  it("gives up after waitMs, names who lags, and harms nothing (RCV-9)", async () => {
    const setting = await startSetting();
    const before = serviceSecret(setting);
    setting.sightings = [
      sightingOf({ pid: 101, host: "web-1", seenAt: setting.clock.now() }),
      sightingOf({ pid: 102, host: "web-2", seenAt: setting.clock.now() }),
    ];
    const begunAt = setting.clock.monotonic();
    const refused = await failureOf(
      whileTimePasses(setting.clock, rotateSecret({ ...setting.options, waitMs: 10_000 })),
    );
    expect(refused).toMatchObject({
      name: "RotationError",
      code: "receivers_not_ready",
      fields: { receivers: "101@web-1, 102@web-2" },
    });
    expect(String(refused)).toMatch(/: 2 receivers do not use .*101@web-1, 102@web-2.*have no secrets of their own/);
    expect(setting.clock.monotonic() - begunAt).toBeLessThan(11_000);
    expect(serviceSecret(setting)).toBe(before);
    const next = (await setting.secrets.read("delivery"))?.next?.secret;
    setting.sightings = [];
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true });
    expect(serviceSecret(setting)).toBe(next);
  });

  it("looks once with waitMs 0, and tells of one receiver that lags as of one (RCV-9)", async () => {
    const setting = await startSetting();
    setting.sightings = [sightingOf({ pid: 101, host: "web-1", seenAt: setting.clock.now() })];
    const refused = await failureOf(rotateSecret({ ...setting.options, waitMs: 0 }));
    expect(refused).toMatchObject({ code: "receivers_not_ready" });
    expect(String(refused)).toContain(
      "1 receiver does not use the new delivery secret after 0 ms: 101@web-1. Check that",
    );
    receiversThat(setting, [{ id: "a", pid: 1, lagMs: 0 }]);
    expect(await rotateSecret({ ...setting.options, waitMs: 0 })).toMatchObject({ receivers: 1 });
  });

  it("asks no more than every 250 ms, and less and less often", async () => {
    const setting = await startSetting();
    let looks = 0;
    const secrets: SecretStore = {
      ...setting.secrets,
      async receivers() {
        looks += 1;
        return [sightingOf({ seenAt: setting.clock.now() })];
      },
    };
    await failureOf(whileTimePasses(setting.clock, rotateSecret({ ...setting.options, secrets, waitMs: 60_000 })));
    expect(looks).toBeGreaterThan(12);
    expect(looks).toBeLessThan(24);
  });

  it("gives unknown receivers two refreshes of time (WHK-11)", async () => {
    const setting = await startSetting();
    setting.sightings = null;
    const before = setting.clock.now();
    const result = await whileTimePasses(setting.clock, rotateSecret(setting.options));
    expect(result.receivers).toBeNull();
    expect(result.rotatedAt).toBeGreaterThanOrEqual(before + 2 * setting.secrets.refreshMs);
    expect(result.rotatedAt).toBeLessThan(before + 3 * setting.secrets.refreshMs);
  });

  it("gives it in each call: the clock that dated `next` may be ahead or behind (WHK-11)", async () => {
    const setting = await startSetting();
    setting.sightings = null;
    const refused = await failureOf(rotateSecret({ ...setting.options, waitMs: 0 }));
    expect(refused).toMatchObject({ code: "receivers_not_ready", fields: { receivers: null } });
    expect(String(refused)).toMatch(/2000 ms more than waitMs/);
    for (const jumpMs of [-3_600_000, 3_600_000]) {
      setting.clock.set(setting.clock.now() + jumpMs);
      const refusedAgain = failureOf(
        whileTimePasses(setting.clock, rotateSecret({ ...setting.options, waitMs: 1_900 })),
      );
      expect(await refusedAgain).toMatchObject({ code: "receivers_not_ready" });
    }
    const resumed = whileTimePasses(setting.clock, rotateSecret({ ...setting.options, waitMs: 2_000 }));
    expect(await resumed).toMatchObject({ resumed: true, receivers: null });
  });

  it("throws the reason of its signal while it waits", async () => {
    const setting = await startSetting();
    setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
    const controller = new AbortController();
    const reason = new Error("the process ends");
    const rotation = failureOf(rotateSecret({ ...setting.options, signal: controller.signal }));
    await setting.clock.advance(1_000);
    controller.abort(reason);
    expect(await rotation).toBe(reason);
    expect((await setting.secrets.read("delivery"))?.next).not.toBeNull();
  });
});

interface LaggingReceiver {
  readonly id: string;
  readonly pid: number;
  /** From a change of the secrets until it reports that it has them. */
  readonly lagMs: number;
}

/** Receivers that are seen all the time. */
function receiversThat(setting: Setting, receivers: readonly LaggingReceiver[]): void {
  const { clock, secrets } = setting;
  const versions: { readonly version: string; readonly since: number }[] = [];
  const versionAt = (at: number) => versions.findLast(({ since }) => since <= at)?.version ?? "old";
  secrets.receivers = async (): Promise<readonly ReceiverSighting[]> => {
    const { version } = compileKeys(await storedKeyring(secrets, clock.now()), STRICT_RULES, clock.now());
    if (versions.at(-1)?.version !== version) versions.push({ version, since: clock.now() });
    const seenAt = clock.now();
    return receivers.map(({ lagMs, ...fields }) =>
      sightingOf({ ...fields, seenAt, keyringVersion: versionAt(seenAt - lagMs) }),
    );
  };
}
