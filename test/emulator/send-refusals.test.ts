/** What `POST /api/core/messages/send` refuses, and in which order. */
import { describe, expect, it } from "vitest";
import { MAX_BODY_BYTES } from "../../src/emulator/http/route.ts";
import { call, send, start, tokenOf } from "./support.ts";

const MEDIA = [{ storageKey: "media/1.png", mimeType: "image/png", byteLength: 1024 }];

async function ready(options: Parameters<typeof start>[0] = {}) {
  const emulator = await start({ lifecycle: "manual", ...options });
  const token = await tokenOf(emulator);
  const { numbers } = emulator.fixtures;
  return { emulator, token, numbers };
}

function problems(body: { error: { details: { issues: { path: string }[] } } }): string[] {
  return body.error.details.issues.map(({ path }) => path);
}

describe("a send request that does not fit", () => {
  it.each([
    ["no to (SND-6)", { to: undefined }, "to"],
    ["an empty to (SND-6)", { to: [] }, "to"],
    ["a to that is no list (SND-6)", { to: "+14155550123" }, "to"],
    ["a recipient that is no text (SND-6)", { to: ["+14155550123", 14155550124] }, "to.1"],
    ["no sendFrom (SND-2)", { sendFrom: undefined }, "sendFrom"],
    ["a lower-case type (SND-10)", { messageType: "sms" }, "messageType"],
    ["another type (SND-10)", { messageType: "RCS" }, "messageType"],
    ["a text that is no text (SND-26)", { text: null }, "text"],
    ["no externalReference (SND-14)", { externalReference: undefined }, "externalReference"],
    ["an empty externalReference (SND-14)", { externalReference: "" }, "externalReference"],
    ["SMS with media (SND-11)", { media: MEDIA }, "media"],
    ["SMS with empty media (SND-11)", { media: [] }, "media"],
    ["MMS without media (SND-12)", { messageType: "MMS" }, "media"],
    ["MMS with empty media (SND-12)", { messageType: "MMS", media: [] }, "media"],
    [
      "media without storageKey (SND-13)",
      { messageType: "MMS", media: [{ ...MEDIA[0], storageKey: undefined }] },
      "media.0.storageKey",
    ],
    [
      "a mimeType that is no text (SND-13)",
      { messageType: "MMS", media: [{ ...MEDIA[0], mimeType: 1 }] },
      "media.0.mimeType",
    ],
    ["half a byte (SND-13)", { messageType: "MMS", media: [{ ...MEDIA[0], byteLength: 0.5 }] }, "media.0.byteLength"],
    [
      "a fileName that is no text (SND-13)",
      { messageType: "MMS", media: [{ ...MEDIA[0], fileName: null }] },
      "media.0.fileName",
    ],
  ])("gets 400 for %s", async (_, fields, path) => {
    const { emulator, token } = await ready();
    const { status, body } = await send(emulator, token, fields);
    expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(problems(body)).toEqual([path]);
    expect(emulator.control.messages()).toEqual([]);
  });

  it("is told by names, never by values", async () => {
    const { emulator, token } = await ready();
    const { text } = await send(emulator, token, {
      to: ["+14155550123", 77_777],
      text: "the text",
      messageType: "secret",
    });
    expect(text).not.toMatch(/4155550123|77777|the text|secret|order-1/);
  });

  it("gets 400 for malformed JSON, and for more than 1 MiB (GEN-8, GEN-10)", async () => {
    const { emulator, token } = await ready();
    const attempt = async (body: string) => {
      const headers = { "idempotency-key": "key" };
      return (await call(emulator, "POST", "/api/core/messages/send", { token, body, headers })).status;
    };
    expect(await attempt("{")).toBe(400);
    expect(await attempt(`{"x":"${"x".repeat(MAX_BODY_BYTES)}"}`)).toBe(400);
  });

  it("may be nested as deep as a body can be, in a field that is not known (GEN-9, SND-28)", async () => {
    const { emulator, token, numbers } = await ready();
    const known = `"sendFrom":"${numbers.full}","to":["+14155550123"],"messageType":"SMS","externalReference":"a"`;
    const attempt = async (depth: number) => {
      const body = `{${known},"deep":${"[".repeat(depth)}${"]".repeat(depth)}}`;
      const headers = { "idempotency-key": `deep-${depth}` };
      return (await call(emulator, "POST", "/api/core/messages/send", { token, body, headers })).status;
    };
    expect([await attempt(60), await attempt(60), await attempt(200_000)]).toEqual([202, 202, 400]);
    expect(emulator.control.messages()).toHaveLength(1);
  });
});

describe("Idempotency-Key", () => {
  it.each([[{}], [{ "idempotency-key": "" }], [{ "idempotency-key": "  " }]])(
    "must be there: %j gets 400 (SND-1)",
    async (headers) => {
      const { emulator, token } = await ready();
      const { status, body } = await send(emulator, token, {}, headers);
      expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
      expect(emulator.control.messages()).toEqual([]);
    },
  );
});

describe("the sending number", () => {
  it("is refused with 404 when it is an E.164 number (SND-3)", async () => {
    const { emulator, token } = await ready();
    const { status, body } = await send(emulator, token, { sendFrom: "+12065550101" });
    expect([status, body.error.code, body.error.details]).toEqual([404, "NOT_FOUND", { field: "sendFrom" }]);
  });

  it("is refused with 404 when it is unknown (SND-4)", async () => {
    const { emulator, token } = await ready();
    expect((await send(emulator, token, { sendFrom: "num_999999" })).status).toBe(404);
    expect((await send(emulator, token, { sendFrom: "" })).status).toBe(404);
    expect((await send(emulator, token, { sendFrom: "__proto__" })).status).toBe(404);
  });

  it("is refused with 403 when it is another client's (SND-5)", async () => {
    const { emulator, token, numbers } = await ready();
    const { status, body } = await send(emulator, token, { sendFrom: numbers.foreign });
    expect([status, body.error.code]).toEqual([403, "FORBIDDEN"]);
    const other = await tokenOf(emulator, emulator.fixtures.clients.other);
    expect((await send(emulator, other, { sendFrom: numbers.foreign })).status).toBe(202);
  });

  it.each([
    ["noCampaign", "SMS", "campaignregId"],
    ["smsOff", "SMS", "SMS"],
    ["mmsOff", "MMS", "MMS"],
    ["inactive", "SMS", "active"],
    ["inactive", "MMS", "active"],
  ] as const)("is refused with 400 when it is %s for %s (SND-15, SND-16)", async (name, messageType, word) => {
    const { emulator, token, numbers } = await ready();
    const media = messageType === "MMS" ? MEDIA : undefined;
    const { status, body } = await send(emulator, token, { sendFrom: numbers[name], messageType, media });
    expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(body.error.message).toContain(word);
    expect(emulator.control.messages()).toEqual([]);
  });

  it("may have the other channel disabled (SND-16)", async () => {
    const { emulator, token, numbers } = await ready();
    expect((await send(emulator, token, { sendFrom: numbers.mmsOff })).status).toBe(202);
    const mms = { sendFrom: numbers.smsOff, messageType: "MMS", media: MEDIA };
    expect((await send(emulator, token, mms)).status).toBe(202);
  });
});

describe("the order of errors", () => {
  const wrong = { to: [], sendFrom: "num_999999" };

  it("is caller, key, body, number, campaign, channel and status (SND-27)", async () => {
    const { emulator, token, numbers } = await ready();
    const code = async (...[, ...rest]: Parameters<typeof send>) => {
      const { status, body } = await send(emulator, ...rest);
      return `${status} ${body.error?.message ?? ""}`;
    };
    expect(await code(emulator, "nonsense", wrong, {})).toMatch(/^401/);
    expect(await code(emulator, token, wrong, {})).toMatch(/^400 .*Idempotency-Key/);
    expect(await code(emulator, token, wrong)).toMatch(/^400 "to"/);
    expect(await code(emulator, token, { sendFrom: "num_999999" })).toMatch(/^404/);
    const everything = { campaignRegId: null, smsEnabled: false, status: "INACTIVE" } as const;
    emulator.control.updateNumber(numbers.foreign, everything);
    emulator.control.updateNumber(numbers.full, everything);
    expect(await code(emulator, token, { sendFrom: numbers.foreign })).toMatch(/^403/);
    expect(await code(emulator, token, {})).toMatch(/^400 .*campaignregId/);
    emulator.control.updateNumber(numbers.full, { campaignRegId: "C1" });
    expect(await code(emulator, token, {})).toMatch(/^400 .*SMS/);
    emulator.control.updateNumber(numbers.full, { smsEnabled: true });
    expect(await code(emulator, token, {})).toMatch(/^400 .*active/);
  });
});
