import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { rotateSecret, type SecretStore } from "../../src/rotation/index.ts";
import { expectAgreement, failureOf, type Setting, serviceSecret, startSetting, whileTimePasses } from "./support.ts";

const GENERATING = { emulator: { unspecified: { secretGeneration: "always" } } } as const;

describe("rotateSecret(), with a secret of the service's own and a store that fails", () => {
  it("stores it after failures of writing and reading (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    const secrets = failing(setting, (operation) => operation <= 5);
    const result = await whileTimePasses(setting.clock, rotateSecret({ ...setting.options, secrets }));
    expect(result).toMatchObject({ generated: true });
    await expectAgreement(setting);
  });

  it("stores it though its signal aborts (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    const controller = new AbortController();
    const secrets = failing(setting, (operation) => {
      controller.abort();
      return operation <= 2;
    });
    await whileTimePasses(setting.clock, rotateSecret({ ...setting.options, secrets, signal: controller.signal }));
    await expectAgreement(setting);
  });

  it("knows a write whose answer was lost (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    let writes = 0;
    const secrets: SecretStore = {
      ...setting.secrets,
      async write(...args) {
        const isWritten = await setting.secrets.write(...args);
        writes += 1;
        if (writes === 2) throw new Error("the connection broke");
        return isWritten;
      },
    };
    const result = await whileTimePasses(setting.clock, rotateSecret({ ...setting.options, secrets }));
    expect(result).toMatchObject({ generated: true });
    expect(writes).toBe(2);
    await expectAgreement(setting);
  });

  it("goes on beyond ten writes that somebody else's came before (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    let writes = 0;
    const secrets: SecretStore = {
      ...setting.secrets,
      async write(...args) {
        writes += 1;
        return writes > 1 && writes < 25 ? false : setting.secrets.write(...args);
      },
    };
    await whileTimePasses(setting.clock, rotateSecret({ ...setting.options, secrets }));
    await expectAgreement(setting);
  });

  it("gives up after 2 minutes, says what to do, and shows nothing of it (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    const secrets = failing(setting, () => true);
    const begunAt = setting.clock.monotonic();
    const failure = await failureOf(whileTimePasses(setting.clock, rotateSecret({ ...setting.options, secrets })));
    expect(failure).toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/rotateSecret\(\) again/),
    });
    expect(inspect(failure, { depth: 9 })).not.toContain(serviceSecret(setting));
    const waitedMs = setting.clock.monotonic() - begunAt;
    expect(waitedMs).toBeGreaterThanOrEqual(120_000);
    expect(waitedMs).toBeLessThan(126_000);
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true, generated: true });
    await expectAgreement(setting);
  });

  it("says after the hand-over that the service has the secret, where every write came too late (WHK-18)", async () => {
    for (const given of [GENERATING, {}]) {
      const setting = await startSetting(given);
      let writes = 0;
      const secrets: SecretStore = {
        ...setting.secrets,
        async write(...args) {
          writes += 1;
          return writes > 1 ? false : setting.secrets.write(...args);
        },
      };
      const failure = await failureOf(
        whileTimePasses(setting.clock, rotateSecret({ ...setting.options, secrets }), 1_000),
      );
      expect(failure).toMatchObject({
        code: "rotation_conflict",
        message: expect.stringMatching(/^The service has a new/),
      });
      await rotateSecret(setting.options);
      await expectAgreement(setting);
    }
  });
});

/** A store whose operations fail once `next` is written and the service has its secret; its errors quote what it was given. */
function failing({ secrets, client }: Setting, isFailing: (operation: number) => boolean): SecretStore {
  let operations = 0;
  const attempt = async <T>(operation: () => Promise<T>, given: unknown) => {
    const { delivery } = (await client.webhooks.get()).defaults;
    if ((delivery.rotatedAt ?? null) === null) return operation();
    operations += 1;
    if (isFailing(operations)) throw new Error(`failed with ${JSON.stringify(given)}`);
    return operation();
  };
  return {
    ...secrets,
    read: (kind) => attempt(() => secrets.read(kind), kind),
    write: (...args) => attempt(() => secrets.write(...args), args),
  };
}
