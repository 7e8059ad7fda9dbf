import { describe, expect, it } from "vitest";
import { type RotationClient, rotateSecret, type SecretStore } from "../../../src/messaging/rotation/index.ts";
import { TOKEN_PATH } from "../client/support.ts";
import { expectAgreement, FIRST_SECRET, failureOf, HOUR_MS, serviceSecret, startSetting } from "./support.ts";

describe("rotateSecret(), cut off", () => {
  it("is resumed with that very secret after an answer that stayed lost (WHK-20)", async () => {
    const setting = await startSetting();
    const match = { route: "PATCH /api/core/webhooks/delivery" };
    setting.emulator.control.faults.add({ match, action: { type: "reset", when: "after" }, times: 3 });
    expect(await failureOf(rotateSecret(setting.options))).toMatchObject({ code: "connection_failed" });
    const given = serviceSecret(setting);
    expect((await setting.secrets.read("delivery"))?.next?.secret).toBe(given);
    await setting.clock.advance(HOUR_MS);
    const rotatedAt = setting.clock.now() - HOUR_MS;
    expect(await rotateSecret(setting.options)).toMatchObject({ resumed: true, rotatedAt });
    expect(serviceSecret(setting)).toBe(given);
    await expectAgreement(setting);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9])("throws its signal's reason, and is resumed: read %i", async (count) => {
    const setting = await startSetting();
    const reason = new Error("the process ends");
    const controller = new AbortController();
    let reads = 0;
    const secrets: SecretStore = {
      ...setting.secrets,
      read(kind) {
        reads += 1;
        // The record, the other kind twice, both for the receivers' version, and those again before it is handed over.
        if (reads === count) controller.abort(reason);
        return setting.secrets.read(kind);
      },
    };
    expect(await failureOf(rotateSecret({ ...setting.options, secrets, signal: controller.signal }))).toBe(reason);
    expect(serviceSecret(setting)).toBe(FIRST_SECRET);
    expect((await setting.secrets.read("delivery"))?.next === null).toBe(count <= 2);
    await rotateSecret(setting.options);
    await expectAgreement(setting);
  });

  it("ends with its signal's reason while the service does not answer its first look", async () => {
    const reason = new Error("the process ends");
    const controller = new AbortController();
    const setting = await startSetting({
      client: {
        async fetch(input) {
          if (String(input).endsWith(TOKEN_PATH)) return new Response('{"access_token":"t"}');
          queueMicrotask(() => controller.abort(reason));
          return new Promise(() => {});
        },
      },
      empty: true,
    });
    expect(await failureOf(rotateSecret({ ...setting.options, signal: controller.signal }))).toBe(reason);
    expect(await setting.secrets.read("delivery")).toBeNull();
  });

  it("passes its signal to the first look alone: later ones end what the service has begun", async () => {
    const setting = await startSetting();
    const { webhooks } = setting.client;
    const signals: (AbortSignal | undefined)[] = [];
    const client: RotationClient = {
      webhooks: {
        get(options) {
          signals.push(options?.signal);
          return webhooks.get(options);
        },
        // Shows no rotation, so that it looks once more.
        update: async (kind, update, options) => {
          signals.push(options?.signal);
          return { ...(await webhooks.update(kind, update)), rotatedAt: 0 };
        },
      },
    };
    const { signal } = new AbortController();
    await rotateSecret({ ...setting.options, client, signal });
    expect(signals).toEqual([signal, undefined, undefined]);
  });

  it("does nothing with a signal that has aborted", async () => {
    const setting = await startSetting();
    const reason = new Error("too late");
    expect(await failureOf(rotateSecret({ ...setting.options, signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(await setting.secrets.read("delivery")).toMatchObject({ revision: 1 });
  });
});
