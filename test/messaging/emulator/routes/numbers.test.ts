/** A client's own numbers: how they are listed, and what `PATCH /api/core/numbers/{numberId}` takes and refuses. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { checkedCall, verdict } from "../checked-call.ts";
import { call, start, tokenOf } from "../support.ts";

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

const URL_A = "http://127.0.0.1:1/a";
const URL_B = "https://example.com/b?c=d";

const patch = (emulator: Emulator, body: unknown, numberId = emulator.fixtures.numbers.full) =>
  checkedCall(emulator, "PATCH", `/api/core/numbers/${numberId}`, { body });

async function read(emulator: Emulator, numberId = emulator.fixtures.numbers.full) {
  const { body } = await checkedCall(emulator, "GET", "/api/core/numbers");
  return body.numbers.find((number: { numberId: string }) => number.numberId === numberId);
}

describe("PATCH /api/core/numbers/{numberId}", () => {
  it.each([
    ["campaignregId", { campaignregId: "C42" }, { campaignRegId: "C42" }],
    ["campaignregId null", { campaignregId: null }, { campaignRegId: null }],
    ["smsEnabled", { smsEnabled: false }, { smsEnabled: false }],
    ["mmsEnabled", { mmsEnabled: false }, { mmsEnabled: false }],
    ["an inbound override", { webhookInboundOverride: URL_A }, { webhookInboundOverride: URL_A }],
    ["a delivery override", { webhookDeliveryOverride: URL_B }, { webhookDeliveryOverride: URL_B }],
    ["nothing", {}, {}],
  ])("takes %s alone, and leaves the rest (UPD-1, UPD-8, UPD-10)", async (_, body, changes) => {
    const emulator = await start();
    const before = await read(emulator);
    const { body: answer } = await patch(emulator, body);
    expect(answer).toEqual({ number: { ...before, ...changes } });
    expect(await read(emulator)).toEqual(answer.number);
  });

  it("clears overrides with null, and keeps them when absent (UPD-8, UPD-10)", async () => {
    const emulator = await start();
    await patch(emulator, { webhookInboundOverride: URL_A, webhookDeliveryOverride: URL_B });
    await patch(emulator, { webhookInboundOverride: null });
    expect(await read(emulator)).toMatchObject({ webhookInboundOverride: null, webhookDeliveryOverride: URL_B });
    await patch(emulator, { webhookDeliveryOverride: null });
    expect(await read(emulator)).toMatchObject({ webhookDeliveryOverride: null });
  });

  it.each([
    ["campaignregId as a number (UPD-4)", { campaignregId: 1 }],
    ["an empty campaignregId (UPD-4)", { campaignregId: "" }],
    ["smsEnabled as a text (UPD-4)", { smsEnabled: "true" }],
    ["smsEnabled null (UPD-9)", { smsEnabled: null }],
    ["mmsEnabled null (UPD-9)", { mmsEnabled: null }],
    ["an override that is no URL (UPD-5)", { webhookInboundOverride: "nowhere" }],
    ["an override without a host (UPD-5)", { webhookDeliveryOverride: "http://" }],
    ["an override as a number (UPD-5)", { webhookDeliveryOverride: 7 }],
    ["an empty override (UPD-15)", { webhookInboundOverride: "" }],
    ["an override of another scheme (UPD-15)", { webhookDeliveryOverride: "ftp://127.0.0.1/a" }],
  ])("refuses %s with 400, and changes nothing", async (_, body) => {
    const emulator = await start();
    const before = await read(emulator);
    const mixed = { campaignregId: "C43", ...body };
    expect(verdict(await patch(emulator, mixed))).toBe("400 INVALID_REQUEST");
    expect(await read(emulator)).toEqual(before);
  });

  it("does not take campaignRegId for campaignregId, and says so loudly (UPD-7)", async () => {
    const emulator = await start();
    const { body } = await patch(emulator, { campaignRegId: "C42", smsEnabled: false });
    expect(body.number).toMatchObject({ campaignRegId: "C000001", smsEnabled: false });
    const warnings = emulator.control.requests().at(-1)?.warnings;
    expect(warnings).toEqual([expect.stringMatching(/"campaignRegId" IS NOT A FIELD.*"campaignregId"/)]);
    await patch(emulator, { smsenabled: true });
    expect(emulator.control.requests().at(-1)?.warnings).toEqual(['unknown field "smsenabled" was ignored']);
    const strict = await start({ profile: "strict" });
    const refused = await patch(strict, { campaignRegId: "C42" });
    expect(verdict(refused)).toBe("400 INVALID_REQUEST");
    expect(refused.body.error.details).toEqual({ unknownFields: ["campaignRegId"] });
  });

  it("answers number: null by a reading, with the change made (UPD-11)", async () => {
    const emulator = await start({ unspecified: { updateReturnsNull: true } });
    expect((await patch(emulator, { webhookInboundOverride: URL_A })).body).toEqual({ number: null });
    expect(await read(emulator)).toMatchObject({ webhookInboundOverride: URL_A });
  });
});

describe("errors of PATCH /api/core/numbers/{numberId}", () => {
  it.each([
    ["unknown with 404 (UPD-2)", () => "num_999999", "404 NOT_FOUND"],
    ["named by its E.164 with 404 (UPD-2)", () => "+12065550101", "404 NOT_FOUND"],
    ["of another client with 403 (UPD-3)", ({ fixtures }: Emulator) => fixtures.numbers.foreign, "403 FORBIDDEN"],
    ["inactive with 400 (UPD-6)", ({ fixtures }: Emulator) => fixtures.numbers.inactive, "400 INVALID_REQUEST"],
  ])("refuses a number %s, even for no change", async (_, idOf, expected) => {
    const emulator = await start();
    const before = emulator.control.numbers();
    for (const body of [{}, { smsEnabled: false }]) {
      expect(verdict(await patch(emulator, body, idOf(emulator)))).toBe(expected);
    }
    expect(emulator.control.numbers()).toEqual(before);
  });

  it("comes in the order 401, body, 404, 403, inactive (UPD-14, AUT-8)", async () => {
    const emulator = await start();
    const { foreign, inactive } = emulator.fixtures.numbers;
    const bad = { smsEnabled: null };
    const anonymous = await call(emulator, "PATCH", "/api/core/numbers/num_999999", { body: bad });
    expect(verdict(anonymous)).toBe("401 UNAUTHORIZED");
    expect(verdict(await patch(emulator, bad, "num_999999"))).toBe("400 INVALID_REQUEST");
    expect(verdict(await patch(emulator, bad, foreign))).toBe("400 INVALID_REQUEST");
    emulator.control.updateNumber(foreign, { status: "INACTIVE" });
    expect(verdict(await patch(emulator, {}, foreign))).toBe("403 FORBIDDEN");
    expect(verdict(await patch(emulator, {}, inactive))).toBe("400 INVALID_REQUEST");
  });

  it("decodes the number id once (UPD-16)", async () => {
    const emulator = await start();
    expect(verdict(await patch(emulator, {}, "num%5F000001"))).toBe("200");
    expect(verdict(await patch(emulator, {}, "num%255F000001"))).toBe("404 NOT_FOUND");
    expect(verdict(await patch(emulator, {}, "num%ZZ"))).toBe("404 NOT_FOUND");
    const state = emulator.control.exportState();
    const number = { ...(state.tables.numbers?.num_000001 as object), numberId: "a/b %41" };
    emulator.control.importState({ ...state, tables: { ...state.tables, numbers: { "a/b %41": number } } });
    expect((await patch(emulator, {}, "a%2Fb%20%2541")).body.number.numberId).toBe("a/b %41");
  });
});
