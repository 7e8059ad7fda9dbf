/** `GET /api/core/numbers`: a client's own numbers, as the specification spells them. */
import { describe, expect, it } from "vitest";
import { checkedCall } from "./checked-call.ts";
import { start, tokenOf } from "./support.ts";

describe("GET /api/core/numbers", () => {
  it("lists what is assigned to the client, all at once (NUM-1, NUM-4)", async () => {
    const emulator = await start();
    const { full, noCampaign, smsOff, mmsOff, inactive, foreign } = emulator.fixtures.numbers;
    const ids = async (token?: string) => {
      const { body } = await checkedCall(emulator, "GET", "/api/core/numbers", token === undefined ? {} : { token });
      expect(Object.keys(body)).toEqual(["numbers"]);
      return body.numbers.map(({ numberId }: { numberId: string }) => numberId);
    };
    expect(await ids()).toEqual([full, noCampaign, smsOff, mmsOff, inactive]);
    expect(await ids(await tokenOf(emulator, emulator.fixtures.clients.other))).toEqual([foreign]);
    emulator.control.updateNumber(full, { apiClientId: "ac_other" });
    expect(await ids()).not.toContain(full);
  });

  it("shows every field, absent ones as null, with campaignRegId in its own spelling (NUM-2, NUM-3, NUM-6)", async () => {
    const emulator = await start();
    const { body } = await checkedCall(emulator, "GET", "/api/core/numbers");
    expect(body.numbers.slice(0, 2)).toEqual([
      {
        numberId: emulator.fixtures.numbers.full,
        e164: "+12065550101",
        status: "ACTIVE",
        campaignRegId: "C000001",
        smsEnabled: true,
        mmsEnabled: true,
        webhookInboundOverride: null,
        webhookDeliveryOverride: null,
      },
      expect.objectContaining({ numberId: emulator.fixtures.numbers.noCampaign, campaignRegId: null }),
    ]);
  });

  it("leaves absent fields out by a reading, in updates too (NUM-6)", async () => {
    const emulator = await start({ unspecified: { absentNullables: "omit" } });
    const { noCampaign } = emulator.fixtures.numbers;
    const bare = { numberId: noCampaign, e164: "+12065550102", status: "ACTIVE", smsEnabled: true, mmsEnabled: true };
    const { body } = await checkedCall(emulator, "GET", "/api/core/numbers");
    expect(body.numbers[1]).toEqual(bare);
    const updated = await checkedCall(emulator, "PATCH", `/api/core/numbers/${noCampaign}`, {
      body: { smsEnabled: false },
    });
    expect(updated.body.number).toEqual({ ...bare, smsEnabled: false });
  });
});
