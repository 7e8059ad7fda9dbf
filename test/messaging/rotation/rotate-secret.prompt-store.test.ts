import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { rotateSecret, type SecretStore } from "../../../src/messaging/rotation/index.ts";
import { watchedTimers } from "../../support/watched-timers.ts";
import {
  expectAgreement,
  FIRST_SECRET,
  failureOf,
  type Setting,
  serviceSecret,
  startSetting,
  whileTimePasses,
} from "./support.ts";

type Spoil = (setting: Setting) => SecretStore;
/** Before the service has the secret: the record, the other kind twice, both for the receivers' version, and those again. */
const EARLY: readonly (readonly [what: string, spoil: Spoil, said: RegExp])[] = [
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(
    (count) =>
      [`read ${count}`, (setting: Setting) => silentAt(setting, count), /answer read\(\) within 10 s/] as const,
  ),
  ["receivers", ({ secrets }) => ({ ...secrets, receivers: () => new Promise(() => {}) }), /receivers\(\)/],
  ...([false, true] as const).map(
    (isKept) =>
      [
        `write that installs the secret, kept: ${isKept}`,
        (setting: Setting) => silentWrite(setting, 1, isKept),
        /answer write\(\) within 10 s\. This call gave the service no secret;/,
      ] as const,
  ),
];
const LAST_WRITES = [
  ["was lost", false],
  ["was kept", true],
] as const;
const GENERATING = { emulator: { unspecified: { secretGeneration: "always" } } } as const;

/** A call ends after 10 s, and not before. */
async function expectGivenUp({ clock }: Setting, failure: Promise<unknown>, message: RegExp): Promise<void> {
  await clock.advance(9_999);
  await expect(Promise.race([failure, "still waiting"])).resolves.toBe("still waiting");
  await clock.advance(1);
  expect(await failure).toMatchObject({
    name: "StoreError",
    code: "store_unavailable",
    message: expect.stringMatching(message),
  });
}

describe("rotateSecret(), with a store that does not answer", () => {
  it.each(EARLY)("ends after 10 s, and is resumed: %s", async (_, spoil, said) => {
    const setting = await startSetting();
    await expectGivenUp(setting, failureOf(rotateSecret({ ...setting.options, secrets: spoil(setting) })), said);
    expect(serviceSecret(setting)).toBe(FIRST_SECRET);
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });

  it.each(EARLY)("ends at once when its signal aborts, with the reason: %s", async (_, spoil) => {
    const setting = await startSetting();
    const controller = new AbortController();
    const reason = new Error("the process ends");
    const options = { ...setting.options, secrets: spoil(setting), signal: controller.signal };
    const failure = failureOf(rotateSecret(options));
    await setting.clock.advance(1_000);
    controller.abort(reason);
    expect(await failure).toBe(reason);
  });

  it.each(LAST_WRITES)("ends after 10 s when the write that ends the rotation %s", async (_, isKept) => {
    const setting = await startSetting();
    const failure = failureOf(rotateSecret({ ...setting.options, secrets: silentWrite(setting, 2, isKept) }));
    await expectGivenUp(setting, failure, /answer write\(\) within 10 s\. The service has a new secret by then/);
    expect(serviceSecret(setting)).not.toBe(FIRST_SECRET);
    await rotateSecret({ ...setting.options, force: true });
    await expectAgreement(setting);
  });

  it.each(LAST_WRITES)("loses no secret of the service's own to a write that %s (WHK-18)", async (_, isKept) => {
    const setting = await startSetting(GENERATING);
    const controller = new AbortController();
    const rotation = rotateSecret({
      ...setting.options,
      secrets: silentWrite(setting, 2, isKept),
      signal: controller.signal,
    });
    await setting.clock.advance(1_000);
    controller.abort();
    expect(await whileTimePasses(setting.clock, rotation)).toMatchObject({ generated: true });
    await expectAgreement(setting);
  });

  it("says after 2 minutes that such a secret is lost, where no write has an answer (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    let writes = 0;
    const write: SecretStore["write"] = (...args) => {
      writes += 1;
      return writes === 1 ? setting.secrets.write(...args) : new Promise(() => {});
    };
    const begunAt = setting.clock.monotonic();
    const options = { ...setting.options, secrets: { ...setting.secrets, write } };
    const failure = await failureOf(whileTimePasses(setting.clock, rotateSecret(options), 1_000));
    expect(failure).toMatchObject({ code: "store_unavailable", message: expect.stringMatching(/that secret is lost/) });
    expect(setting.clock.monotonic() - begunAt).toBeLessThan(140_000);
  });

  it("does not claim of a rotation taken up that the service lacks its secret", async () => {
    const setting = await startSetting();
    const match = { route: "PATCH /api/core/webhooks/delivery" };
    setting.emulator.control.faults.add({ match, action: { type: "reset", when: "after" }, times: 3 });
    await failureOf(rotateSecret(setting.options));
    const failure = failureOf(rotateSecret({ ...setting.options, secrets: silentAt(setting, 2) }));
    await setting.clock.advance(10_000);
    expect(serviceSecret(setting)).not.toBe(FIRST_SECRET);
    expect(await failure).toMatchObject({
      message: expect.stringMatching(/This call gave the service no secret; an earlier one may have\./),
    });
  });

  it.each(["time", "signal", "answer"])("leaves no timer and no listener behind when ended by %s", async (end) => {
    const setting = await startSetting();
    const { clock, running } = watchedTimers(setting.clock);
    const controller = new AbortController();
    const { signal } = controller;
    const read = () => (end === "answer" ? Promise.reject(new Error("not open")) : new Promise<never>(() => {}));
    const options = { ...setting.options, clock, signal, secrets: { ...setting.secrets, read } };
    const failure = failureOf(rotateSecret(options));
    expect([running(), getEventListeners(signal, "abort").length]).toEqual([1, 1]);
    if (end === "signal") controller.abort();
    if (end === "time") await setting.clock.advance(10_000);
    await failure;
    expect([running(), getEventListeners(signal, "abort").length]).toEqual([0, 0]);
  });

  it("passes on what a store throws instead of rejecting", async () => {
    const setting = await startSetting();
    const reason = new Error("not open");
    const read = () => {
      throw reason;
    };
    expect(await failureOf(rotateSecret({ ...setting.options, secrets: { ...setting.secrets, read } }))).toBe(reason);
  });
});

/** A store whose one read has no answer. */
function silentAt({ secrets }: Setting, count: number): SecretStore {
  let reads = 0;
  return {
    ...secrets,
    read(kind) {
      reads += 1;
      return reads === count ? new Promise(() => {}) : secrets.read(kind);
    },
  };
}

/** A store whose one write has no answer, whether or not it kept what it was given. */
function silentWrite({ secrets }: Setting, count: number, isKept: boolean): SecretStore {
  let writes = 0;
  return {
    ...secrets,
    async write(...args) {
      writes += 1;
      if (writes !== count) return secrets.write(...args);
      if (isKept) await secrets.write(...args);
      return new Promise(() => {});
    },
  };
}
