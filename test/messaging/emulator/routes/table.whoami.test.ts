/** `GET /api/core/whoami` (WHO). */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { call, ready, start, tokenOf } from "../support.ts";

const whoami = async (emulator: Emulator, token: string) =>
  (await call(emulator, "GET", "/api/core/whoami", { token })).body;

const patch = (emulator: Emulator, token: string, numberId: string, body: object) =>
  call(emulator, "PATCH", `/api/core/numbers/${numberId}`, { token, body });

describe("GET /api/core/whoami", () => {
  it("says who calls, with these fields and no others (WHO-1, WHO-2, WHO-3)", async () => {
    const emulator = await start();
    expect(await whoami(emulator, await tokenOf(emulator))).toEqual({
      apiClientId: "ac_main",
      apiClientName: "Main client",
      apiClientStatus: "ACTIVE",
      capabilities: ["numbers:read", "numbers:search", "numbers:update"],
      assignedNumbers: { total: 5, smsEnabledCount: 4, mmsEnabledCount: 4 },
      inboundWebhookConfigured: false,
      deliveryWebhookConfigured: false,
    });
  });

  it("counts flags of inactive numbers too, and follows their changes (WHO-3)", async () => {
    const { emulator, token } = await ready();
    const { inactive, full, foreign } = emulator.fixtures.numbers;
    expect(emulator.control.numbers().find(({ numberId }) => numberId === inactive)).toMatchObject({
      status: "INACTIVE",
      smsEnabled: true,
    });
    await patch(emulator, token, full, { smsEnabled: false, mmsEnabled: false });
    const counts = { total: 5, smsEnabledCount: 3, mmsEnabledCount: 3 };
    expect((await whoami(emulator, token)).assignedNumbers).toEqual(counts);
    emulator.control.updateNumber(foreign, { apiClientId: "ac_main" });
    const more = { total: 6, smsEnabledCount: 4, mmsEnabledCount: 4 };
    expect((await whoami(emulator, token)).assignedNumbers).toEqual(more);
  });

  it.each([
    ["inboundWebhookConfigured", "webhookInboundOverride", "WHO-4"],
    ["deliveryWebhookConfigured", "webhookDeliveryOverride", "WHO-5"],
  ])("turns %s with a number's %s alone, and back (%s, WHO-7, UPD-12)", async (flag, override) => {
    const { emulator, token } = await ready();
    const { full, smsOff } = emulator.fixtures.numbers;
    const flags = async () => {
      const { inboundWebhookConfigured, deliveryWebhookConfigured } = await whoami(emulator, token);
      return { inboundWebhookConfigured, deliveryWebhookConfigured };
    };
    const none = { inboundWebhookConfigured: false, deliveryWebhookConfigured: false };
    const set = { [override]: "http://127.0.0.1:1/" };
    await patch(emulator, token, full, set);
    await patch(emulator, token, smsOff, set);
    expect(await flags()).toEqual({ ...none, [flag]: true });
    await patch(emulator, token, full, { [override]: null });
    expect(await flags()).toEqual({ ...none, [flag]: true });
    await patch(emulator, token, smsOff, { [override]: null });
    expect(await flags()).toEqual(none);
  });

  it("turns neither flag with a default alone (WHO-6)", async () => {
    const url = "http://127.0.0.1:1/";
    const emulator = await start({ inboundUrl: url, deliveryUrl: url });
    const flags = { inboundWebhookConfigured: false, deliveryWebhookConfigured: false };
    expect(await whoami(emulator, await tokenOf(emulator))).toMatchObject(flags);
  });

  it("does not count the numbers of other clients (WHO-8)", async () => {
    const emulator = await start();
    const { other } = emulator.fixtures.clients;
    const [mine, theirs] = [await tokenOf(emulator), await tokenOf(emulator, other)];
    await patch(emulator, theirs, emulator.fixtures.numbers.foreign, { webhookInboundOverride: "http://127.0.0.1:1/" });
    expect(await whoami(emulator, theirs)).toMatchObject({
      apiClientId: "ac_other",
      assignedNumbers: { total: 1, smsEnabledCount: 1, mmsEnabledCount: 1 },
      inboundWebhookConfigured: true,
    });
    expect(await whoami(emulator, mine)).toMatchObject({
      assignedNumbers: { total: 5 },
      inboundWebhookConfigured: false,
    });
  });
});
