import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { rotateSecret, rotationStatus } from "../../../src/messaging/rotation/index.ts";
import { compileKeys } from "../../../src/sources/keys.ts";
import { storedKeyring } from "../../../src/sources/messaging/keyring-source.ts";
import { STRICT_RULES } from "../../../src/sources/secret.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import { FIRST_SECRET, failureOf, type Setting, sightingOf, startSetting } from "./support.ts";

describe("rotationStatus()", () => {
  it("tells none, settled, installing, overlap, and settled again (RCV-9)", async () => {
    const setting = await startSetting({ empty: true });
    const phase = async () => (await statusOf(setting)).phase;
    expect(await phase()).toBe("none");
    await rotateSecret(setting.options);
    expect(await phase()).toBe("settled");
    setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
    await failureOf(rotateSecret({ ...setting.options, waitMs: 0 }));
    expect(await phase()).toBe("installing");
    setting.sightings = [];
    const { previousValidUntil } = await rotateSecret(setting.options);
    expect(await statusOf(setting)).toMatchObject({ phase: "overlap", previousValidUntil });
    await setting.clock.advance((previousValidUntil ?? 0) - setting.clock.now() - 1);
    expect(await phase()).toBe("overlap");
    await setting.clock.advance(1);
    expect(await statusOf(setting)).toMatchObject({ phase: "settled", previousValidUntil: null });
  });

  it("tells the last end of several replaced secrets", async () => {
    const setting = await startSetting();
    const now = setting.clock.now();
    const previous = [now + 5, now + 9, now + 7].map((validUntil, index) => ({
      secret: `a-replaced-secret-${index}`,
      validUntil,
    }));
    await setting.secrets.write("delivery", { current: FIRST_SECRET, previous, next: null, rotatedAt: null }, 1);
    expect((await statusOf(setting)).previousValidUntil).toBe(now + 9);
  });

  it("adds up the uses of previous and next secrets, and says which living receivers are ready", async () => {
    const setting = await startSetting();
    const now = setting.clock.now();
    const { version } = compileKeys(await storedKeyring(setting.secrets, now), STRICT_RULES, now);
    const ready = sightingOf({
      id: "a",
      seenAt: now,
      keyringVersion: version,
      counters: { "slot:service:previous": 3, "slot:service:next": 2 },
    });
    const lagging = sightingOf({
      id: "b",
      seenAt: now - 89_999,
      counters: { "slot:service:previous": 4, "slot:service:current": 9 },
    });
    const idle = sightingOf({ id: "c", seenAt: now, counters: { "slot:service:next": 6 } });
    const gone = sightingOf({
      id: "d",
      seenAt: now - 90_000,
      counters: { "slot:service:previous": 100, "slot:service:next": 100 },
    });
    setting.sightings = [ready, lagging, idle, gone];
    expect(await statusOf(setting)).toMatchObject({
      previousUses: 7,
      nextUses: 8,
      receivers: [
        { ...ready, ready: true },
        { ...lagging, ready: false },
        { ...idle, ready: false },
      ],
    });
  });

  it("finds receivers ready right after a rotation: they accept the same secrets until they read again", async () => {
    const setting = await startSetting();
    const versionNow = async () => {
      const now = setting.clock.now();
      return compileKeys(await storedKeyring(setting.secrets, now), STRICT_RULES, now).version;
    };
    const readinessOf = async (...versions: string[]) => {
      setting.sightings = versions.map((keyringVersion, i) =>
        sightingOf({ id: String(i), seenAt: setting.clock.now(), keyringVersion }),
      );
      return (await statusOf(setting)).receivers?.map(({ ready }) => ready);
    };
    const first = await versionNow();
    await failureOf(
      rotateSecret({
        ...setting.options,
        waitMs: 0,
        secrets: { ...setting.secrets, receivers: async () => [sightingOf({ seenAt: setting.clock.now() })] },
      }),
    );
    const installing = await versionNow();
    expect(await readinessOf(first, installing)).toEqual([false, true]);
    setting.sightings = [];
    await rotateSecret(setting.options);
    const ended = await versionNow();
    expect(installing).not.toBe(ended);
    // The first one lacks the secret that the service signs with.
    expect(await readinessOf(first, installing, ended)).toEqual([false, true, true]);
    // And so it is beside the other kind's, rotated after it.
    setting.sightings = [];
    await rotateSecret({ ...setting.options, kind: "inbound" });
    expect(await readinessOf(first, installing, ended, await versionNow())).toEqual([false, false, false, true]);
  });

  it("does not know the uses of `next` beside one of the other kind: receivers count both as one", async () => {
    const setting = await startSetting();
    setting.sightings = [
      sightingOf({ seenAt: setting.clock.now(), counters: { "slot:service:next": 6, "slot:service:previous": 1 } }),
    ];
    const inbound = {
      client: setting.client,
      kind: "inbound",
      secrets: setting.secrets,
      clock: setting.clock,
    } as const;
    await failureOf(rotateSecret({ ...inbound, waitMs: 0 }));
    expect(await statusOf(setting)).toMatchObject({ phase: "settled", nextUses: null, previousUses: 1 });
    const { secrets, clock } = setting;
    expect(await rotationStatus({ kind: "inbound", secrets, clock })).toMatchObject({
      phase: "installing",
      nextUses: 6,
    });
    await failureOf(rotateSecret({ ...setting.options, waitMs: 0 }));
    expect(await statusOf(setting)).toMatchObject({ phase: "installing", nextUses: null });
  });

  it("knows nothing of receivers where the store does not", async () => {
    const setting = await startSetting();
    setting.sightings = null;
    expect(await statusOf(setting)).toMatchObject({ previousUses: null, nextUses: null, receivers: null });
  });

  it("finds receivers unready before the first secret", async () => {
    const setting = await startSetting({ empty: true });
    setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
    expect(await statusOf(setting)).toMatchObject({ phase: "none", previousUses: 0, receivers: [{ ready: false }] });
  });

  it("shows no secret", async () => {
    const setting = await startSetting();
    await rotateSecret(setting.options);
    const told = inspect(await statusOf(setting), { depth: 9 });
    expect(told).not.toContain(FIRST_SECRET);
    expect(told).not.toMatch(/[0-9a-f]{32}/);
  });

  it.each([
    ["kind", { kind: undefined }],
    ["secrets", { secrets: {} }],
    ["client", { client: {} }],
  ])("names a wrong %s", async (option, wrong) => {
    const given = { kind: "delivery", secrets: memorySecrets(), ...wrong } as never;
    expect(await failureOf(rotationStatus(given))).toMatchObject({ name: "SetupError", fields: { option } });
  });
});

function statusOf({ secrets, clock }: Setting) {
  return rotationStatus({ kind: "delivery", secrets, clock });
}
