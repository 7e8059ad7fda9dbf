import { describe, expect, it } from "vitest";
import type { EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { rotateSecret } from "../../../src/messaging/rotation/index.ts";
import { liveSecrets } from "../../../src/messaging/rotation/slots.ts";
import { around, Crash, type CrashPoint, crashAt } from "./broken.ts";
import { DAY_MS, expectAgreement, MINUTE_MS, type Setting, serviceState, startSetting } from "./support.ts";

type Readings = NonNullable<EmulatorOptions["unspecified"]>;

type Reading = Readings & { readonly empty?: boolean };

const READINGS: readonly Reading[] = [
  { secretGeneration: "whenMissing" },
  { secretGeneration: "everyPatch" },
  { secretGeneration: "never" },
  { secretGeneration: "always" },
  { secretGeneration: "always", rejectRotationDuringOverlap: true },
  { rejectRotationDuringOverlap: true, absentTimestamps: "null" },
  { absentTimestamps: "zero" },
  { empty: true },
  { empty: true, secretGeneration: "always" },
];

describe("rotateSecret(), after a crash at each of its operations", () => {
  it.each([...READINGS.map((reading) => [reading, "after"] as const), [{} as Reading, "before"] as const])(
    "ends what was begun: %j, %s it (WHK-16, WHK-18, WHK-20, WHK-21)",
    async ({ empty = false, ...unspecified }, when) => {
      let operation = 1;
      while (await crashes({ unspecified, empty }, { operation, when })) operation += 1;
      // Read, get, the other kind, write, the other kind, look (3), read, the other kind, both, update, write.
      expect(operation).toBeGreaterThan(13);
    },
  );
});

/** A rotation that ends at a point, and the one after it. False when the point lies behind the end. */
async function crashes(
  { unspecified, empty }: { unspecified: Readings; empty: boolean },
  point: CrashPoint,
): Promise<boolean> {
  const setting = await startSetting({ emulator: { unspecified }, empty });
  if (!empty) {
    await rotateSecret(setting.options);
    await setting.clock.advance(2 * DAY_MS);
  }
  const process = crashAt(point);
  const rotation = rotateSecret(around(setting.options, process.around));
  const crash = await Promise.race([rotation, process.crash]).then(
    () => null,
    (error: unknown) => error,
  );
  if (crash === null) return false;
  expect(crash).toBeInstanceOf(Crash);
  const isLost = unspecified.secretGeneration === "always" && !(await knowsAll(setting));
  if (!isLost) await expectAllKnown(setting);
  await setting.clock.advance(MINUTE_MS);
  await rotateAgain(setting, isLost);
  await expectAgreement(setting);
  // One that only the lost answer told is the service's previous one now.
  if (!isLost) await expectAllKnown(setting);
  return true;
}

/** Refused, the crash came behind the last write; or the service refuses to make up for the secret that it alone knows. */
async function rotateAgain({ options, clock }: Setting, isLost: boolean): Promise<void> {
  const stored = await options.secrets.read("delivery");
  const again = await rotateSecret(options).catch((error: unknown) => error);
  if (!(again instanceof Error)) return;
  if (stored?.next === null) return expect(again).toMatchObject({ code: "rotation_refused" });
  expect({ isLost, again }).toMatchObject({ isLost: true, again: { status: 400 } });
  await clock.advance(DAY_MS);
  await rotateSecret(options);
}

/** Whatever the service may sign with now, receivers accept (DLV-16). */
async function expectAllKnown(setting: Setting): Promise<void> {
  expect(await knowsAll(setting)).toBe(true);
}

async function knowsAll(setting: Setting): Promise<boolean> {
  const { currentSecret, previousSecret, previousValidUntil } = serviceState(setting);
  const stored = await setting.secrets.read("delivery");
  const now = setting.clock.now();
  const isPreviousUsed = previousValidUntil !== null && previousValidUntil > now;
  const used = [currentSecret, isPreviousUsed ? previousSecret : null].filter((secret) => secret !== null);
  const known = stored === null ? [] : liveSecrets(stored, now);
  return used.every((secret) => known.includes(secret));
}
