import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.ts";
import { callOf } from "../../../src/messaging/client/call.ts";
import { rotateSecret, type SecretStore } from "../../../src/messaging/rotation/index.ts";
import { expectAgreement, failureOf, type Setting, serviceSecret, startSetting, whileTimePasses } from "./support.ts";

const LOST = expect.stringMatching(/could not be stored for 120 s: that secret is lost.*rotateSecret\(\) again/);
const GENERATING = { emulator: { unspecified: { secretGeneration: "always" } } } as const;

describe("rotateSecret(), with a secret of the service's own and a store that fails", () => {
  it("stores it after failures of writing and reading, though its signal aborts (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    const controller = new AbortController();
    const secrets = failing(setting, (operation) => {
      controller.abort();
      return operation <= 5;
    });
    const options = { ...setting.options, secrets, signal: controller.signal };
    expect(await whileTimePasses(setting.clock, rotateSecret(options))).toMatchObject({ generated: true });
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
    expect(failure).toMatchObject({ code: "store_unavailable", message: LOST });
    expect(inspect(failure, { depth: 9 })).not.toContain(serviceSecret(setting));
    const waitedMs = setting.clock.monotonic() - begunAt;
    expect(waitedMs).toBeGreaterThanOrEqual(120_000);
    expect(waitedMs).toBeLessThan(126_000);
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true, generated: true });
    await expectAgreement(setting);
  });

  it("tries after pauses that grow up to 5 s (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    const tried: number[] = [];
    const write: SecretStore["write"] = async (...args) => {
      tried.push(setting.clock.monotonic());
      if (tried.length > 1) throw new Error("not now");
      return setting.secrets.write(...args);
    };
    const options = { ...setting.options, secrets: { ...setting.secrets, write } };
    await failureOf(whileTimePasses(setting.clock, rotateSecret(options), 1_000));
    const [, first = 0, ...later] = tried;
    const pauses = later.map((time, index) => time - (index === 0 ? first : (later[index - 1] ?? 0)));
    expect(pauses.slice(0, 3)).toEqual([250, 375, 562.5]);
    expect(pauses.at(-1)).toBe(5_000);
  });

  it("says that it is lost where every write came too late, and goes on with another (WHK-18)", async () => {
    const setting = await startSetting(GENERATING);
    const failure = await lateFailure(setting);
    expect(failure).toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({ code: "rotation_conflict", message: LOST, cause: { code: "rotation_conflict" } });
    expect(inspect(failure, { depth: 9 })).not.toMatch(/store failed|goes on with that secret/);
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });

  it("does not blame the store where the service does not say whose secret is the later one (WHK-18)", async () => {
    for (const [type, code] of [
      ["reset", "connection_failed"],
      ["status", "api_error"],
    ] as const) {
      const setting = await startSetting(GENERATING);
      const { webhooks } = setting.client;
      const update: typeof webhooks.update = (...args) =>
        callOf(
          webhooks
            .update(...args)
            .withResponse()
            .finally(() => endOtherwise(setting, type)),
        );
      const options = { ...setting.options, client: { webhooks: { ...webhooks, update } } };
      const failure = await failureOf(whileTimePasses(setting.clock, rotateSecret(options), 1_000));
      expect(failure).toBeInstanceOf(StoreError);
      expect(failure).toMatchObject({ code, message: LOST, cause: { operation: "webhooks.get" } });
    }
  });

  it("says that the service has our own secret, where every write came too late", async () => {
    const setting = await startSetting();
    expect(await lateFailure(setting)).toMatchObject({
      name: "RotationError",
      code: "rotation_conflict",
      message: expect.stringMatching(/^The service has a new/),
    });
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });
});

/** What a rotation ends with whose later writes all come after somebody else's. */
function lateFailure({ clock, options, secrets }: Setting): Promise<unknown> {
  let writes = 0;
  const late: SecretStore = {
    ...secrets,
    async write(...args) {
      writes += 1;
      return writes > 1 ? false : secrets.write(...args);
    },
  };
  return failureOf(whileTimePasses(clock, rotateSecret({ ...options, secrets: late }), 1_000));
}

/** Another rotation ends with a secret of its own, and the service does not say any more which came later. */
async function endOtherwise({ secrets, emulator }: Setting, type: "reset" | "status"): Promise<void> {
  const { revision = 0 } = (await secrets.read("delivery")) ?? {};
  const current = "what-the-other-rotation-ended-with";
  await secrets.write("delivery", { current, previous: [], next: null, rotatedAt: null }, revision);
  const action = type === "reset" ? ({ type, when: "before" } as const) : ({ type, status: 500 } as const);
  emulator.control.faults.add({ match: { route: "GET /api/core/webhooks" }, action });
}

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
