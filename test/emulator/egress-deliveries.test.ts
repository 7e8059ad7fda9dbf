import { describe, expect, it } from "vitest";
import { createEmulator } from "../../src/emulator/index.ts";
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

describe("createEmulator()", () => {
  it.each([["10.0.0.1"], ["8.8.8.0/24"], ["169.254.0.0/16"]])("refuses %s among allowPrivateTargets", async (range) => {
    const refused = createEmulator({ port: null, allowPrivateTargets: [range] });
    await expect(refused).rejects.toMatchObject({ name: "SetupError", fields: { option: "allowPrivateTargets" } });
  });
});
