import { describe, expect, it } from "vitest";
import type { Emulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { call, send, start, startCatcher, tokenOf } from "./support.ts";

const METADATA = "http://169.254.169.254/latest/meta-data/";
const ALL_ATTEMPTS_MS = 81 * 60_000;

describe("a webhook to an address that is not allowed", () => {
  it.each([
    ["a metadata address, whatever is open", METADATA, { allowPublicTargets: true, allowPrivateTargets: ["fc00::/7"] }],
    ["a private address", "http://10.0.0.1/hooks", {}],
    ["a public address", "https://8.8.8.8/hooks", {}],
    ["a URL with credentials", "http://user:pass@127.0.0.1/hooks", {}],
  ])("is tried by the plan and logged as blocked: %s (DLV-6, DLV-7)", async (_, deliveryUrl, options) => {
    const emulator = await start({ deliveryUrl, lifecycle: "manual", ...options });
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.advance(ALL_ATTEMPTS_MS);
    const [delivery] = emulator.control.deliveries();
    expect(delivery).toMatchObject({ state: "failed", scheduledAttempts: 5 });
    expect(delivery?.attempts.map(({ status, error }) => [status, error])).toEqual(Array(5).fill([null, "blocked"]));
  });

  it("is blocked behind a number's override as well, and on redelivery (DLV-2)", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ deliveryUrl: catcher.url, lifecycle: "manual" });
    const token = await tokenOf(emulator);
    const path = `/api/core/numbers/${emulator.fixtures.numbers.full}`;
    const update = (webhookDeliveryOverride: string | null) =>
      call(emulator, "PATCH", path, { token, body: { webhookDeliveryOverride } });
    expect((await update(METADATA)).status).toBe(200);
    await send(emulator, token);
    await emulator.clock.idle();
    const [delivery] = emulator.control.deliveries();
    expect(delivery?.attempts).toMatchObject([{ url: METADATA, error: "blocked" }]);
    await emulator.control.redeliver(delivery?.deliveryId ?? "");
    expect(catcher.caught).toEqual([]);
    await update(null);
    await emulator.control.redeliver(delivery?.deliveryId ?? "");
    expect(catcher.caught).toHaveLength(1);
    expect(emulator.control.attempts().map(({ error, status }) => error ?? status)).toEqual([
      "blocked",
      "blocked",
      200,
    ]);
  });
});

const PRIVATE = "names a private address: allowPrivateTargets opens its network";

describe("a target that will be blocked", () => {
  const lastWarnings = (emulator: Emulator) => emulator.control.requests().at(-1)?.warnings;

  it("is told of when the emulator starts, with the reason and without the URL", async () => {
    const warned: unknown[] = [];
    const logger = { ...silentLogger, warn: (...line: unknown[]) => void warned.push(line) };
    await start({ logger, inboundUrl: "http://user:pass@127.0.0.1/hooks", deliveryUrl: "http://10.1.2.3/hooks" });
    expect(warned).toEqual([
      [
        { option: "inboundUrl", reason: "holds credentials" },
        "Webhooks to inboundUrl will be blocked: it holds credentials.",
      ],
      [{ option: "deliveryUrl", reason: PRIVATE }, `Webhooks to deliveryUrl will be blocked: it ${PRIVATE}.`],
    ]);
    warned.length = 0;
    const open = { allowPrivateTargets: ["10.0.0.0/8"], allowPublicTargets: true };
    await start({ logger, ...open, inboundUrl: "http://receiver.test/hooks", deliveryUrl: "http://10.1.2.3/hooks" });
    await start({ logger });
    expect(warned).toEqual([]);
  });

  it("does not keep an emulator from starting whose logger fails", async () => {
    const warn = () => {
      throw new Error("the log is full");
    };
    const emulator = await start({ logger: { ...silentLogger, warn }, deliveryUrl: METADATA });
    expect((await call(emulator, "GET", "/_emulator/health")).status).toBe(200);
  });

  it.each(["inbound", "delivery"])("gets a warning in the log of the update of the %s webhook", async (kind) => {
    const emulator = await start();
    const token = await tokenOf(emulator);
    const update = (fields: object) =>
      call(emulator, "PATCH", `/api/core/webhooks/${kind}`, { token, body: { signingEnabled: true, ...fields } });
    expect((await update({ endpointUrl: "http://10.1.2.3/hooks" })).status).toBe(200);
    expect(lastWarnings(emulator)).toEqual([`webhooks to this endpointUrl will be blocked: it ${PRIVATE}`]);
    for (const fields of [{}, { endpointUrl: null }, { endpointUrl: "http://127.0.0.1/hooks" }]) {
      await update(fields);
      expect(lastWarnings(emulator)).toEqual([]);
    }
  });

  it("gets a warning in the log of the update of a number", async () => {
    const emulator = await start();
    const token = await tokenOf(emulator);
    const update = (body: object) =>
      call(emulator, "PATCH", `/api/core/numbers/${emulator.fixtures.numbers.full}`, { token, body });
    const urls = { webhookInboundOverride: METADATA, webhookDeliveryOverride: "https://8.8.8.8/" };
    expect((await update(urls)).status).toBe(200);
    expect(lastWarnings(emulator)).toEqual([
      "webhooks to this webhookInboundOverride will be blocked: it names a link-local or metadata address, which webhooks never reach",
      "webhooks to this webhookDeliveryOverride will be blocked: it names a public address: allowPublicTargets opens them",
    ]);
    await update({ webhookInboundOverride: null, webhookDeliveryOverride: "http://receiver.test/", smsEnabled: true });
    expect(lastWarnings(emulator)).toEqual([]);
  });
});
