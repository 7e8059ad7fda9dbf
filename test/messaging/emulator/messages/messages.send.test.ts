/** What `POST /api/core/messages/send` takes and refuses, and in which order; repeats are in idempotency.test.ts. */
import { describe, expect, it } from "vitest";
import { send, start, tokenOf } from "../support.ts";

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

describe("an accepted send", () => {
  it("answers 202 with a QUEUED result per recipient (SND-2, SND-9, SND-20)", async () => {
    const { emulator, token } = await ready();
    const answer = await send(emulator, token, { to: ["+14155550123", "+14155550124"] });
    expect(answer.status).toBe(202);
    expect(answer.text).toBe(
      '{"results":[{"to":"+14155550123","messageId":"msg_a8244c_000001","status":"QUEUED"},' +
        '{"to":"+14155550124","messageId":"msg_a8244c_000002","status":"QUEUED"}],"errors":[]}',
    );
    expect(emulator.control.messages()).toHaveLength(2);
  });

  it("says QUEUED even when the lifecycle is already over (SND-9, SND-20)", async () => {
    const { emulator, token } = await ready({ lifecycle: "instant" });
    const { body } = await send(emulator, token);
    expect(body.results[0].status).toBe("QUEUED");
    expect(emulator.control.messages()[0]).toMatchObject({ status: "delivered" });
  });

  it("makes a message with its own events per recipient; they share the reference (SND-19)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token, { to: ["+14155550123", "+14155550124"], externalReference: "order-9" });
    const events = emulator.control.events().map(({ body }) => JSON.parse(body));
    expect(events.map(({ messageId, sequence }) => [messageId, sequence])).toEqual([
      ["msg_a8244c_000001", 1],
      ["msg_a8244c_000002", 1],
    ]);
    expect(events.map(({ data }) => data.externalReference)).toEqual(["order-9", "order-9"]);
  });

  it("handles a number that stands there twice one by one (SND-25)", async () => {
    const { emulator, token } = await ready();
    const { body } = await send(emulator, token, { to: ["+14155550123", "+14155550123"] });
    expect(body.results.map(({ messageId }: { messageId: string }) => messageId)).toEqual([
      "msg_a8244c_000001",
      "msg_a8244c_000002",
    ]);
  });

  it("takes an SMS without a text (SND-26)", async () => {
    const { emulator, token } = await ready();
    expect((await send(emulator, token, { text: undefined })).status).toBe(202);
    expect(emulator.control.messages()[0]).toMatchObject({ text: null });
  });

  it("takes an MMS with media, with and without the optional fields (SND-10, SND-12, SND-13)", async () => {
    const { emulator, token } = await ready();
    const full = [{ ...MEDIA[0], sourceUrl: "https://example.com/1.png", fileName: "1.png" }];
    expect((await send(emulator, token, { messageType: "MMS", media: MEDIA })).status).toBe(202);
    expect((await send(emulator, token, { messageType: "MMS", media: full })).status).toBe(202);
  });

  it("has no limit of its own for recipients, text, media and key (SND-32)", async () => {
    const { emulator, token } = await ready();
    const to = Array.from({ length: 2_000 }, (_, i) => `+1415${String(5_550_000 + i)}`);
    const fields = {
      to,
      text: "x".repeat(100_000),
      messageType: "MMS",
      media: Array.from({ length: 200 }, () => ({ ...MEDIA[0], byteLength: Number.MAX_SAFE_INTEGER })),
    };
    const answer = await send(emulator, token, fields, { "idempotency-key": "k".repeat(4_000) });
    expect(answer.status).toBe(202);
    expect(answer.body.results).toHaveLength(2_000);
  });
});

describe("recipients that are no E.164 numbers", () => {
  it("are in errors, the others in results, with 202 (SND-7)", async () => {
    const { emulator, token } = await ready();
    const { status, body } = await send(emulator, token, { to: ["555-0100", "+14155550123"] });
    expect(status).toBe(202);
    expect(body.results.map(({ to }: { to: string }) => to)).toEqual(["+14155550123"]);
    expect(body.errors).toEqual([
      { to: "555-0100", error: { code: "INVALID_RECIPIENT", message: expect.any(String), details: {} } },
    ]);
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it("come back exactly as they came (SND-8)", async () => {
    const { emulator, token } = await ready();
    const texts = ["", "<script>alert(1)</script>", "\u001b[31m\r\n+1", "__proto__", " \t+1 415 \n"];
    const { body } = await send(emulator, token, { to: texts });
    expect(body.errors.map(({ to }: { to: string }) => to)).toEqual(texts);
  });

  it.each([
    ["14155550123", false],
    ["+04155550123", false],
    ["+1", false],
    ["+12", true],
    ["+123456789012345", true],
    ["+1234567890123456", false],
    [" +14155550123", false],
    ["+14155550123\n", false],
    ["+1 415 555 0123", false],
    ["+１4155550123", false],
  ])("are those that do not match the pattern, without trimming: %j fits: %s (SND-25)", async (to, fits) => {
    const { emulator, token } = await ready();
    const { body } = await send(emulator, token, { to: [to] });
    expect(body.results).toHaveLength(fits ? 1 : 0);
    expect(body.errors).toHaveLength(fits ? 0 : 1);
  });

  it("may be all of them: 202 with empty results (SND-24)", async () => {
    const { emulator, token } = await ready();
    const { status, body } = await send(emulator, token, { to: ["nobody"] });
    expect([status, body.results, body.errors.length]).toEqual([202, [], 1]);
    expect(emulator.control.events()).toEqual([]);
  });

  it("give 400 when they are all of them, by the reading allRejected (SND-24)", async () => {
    const { emulator, token } = await ready({ unspecified: { allRejected: 400 } });
    const refused = await send(emulator, token, { to: ["nobody", "no one"] });
    expect([refused.status, refused.body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(problems(refused.body)).toEqual(["to.0", "to.1"]);
    expect(refused.text).not.toContain("nobody");
    expect((await send(emulator, token, { to: ["nobody", "+14155550123"] })).status).toBe(202);
  });
});

describe("a send request that does not fit", () => {
  const mms = (item: object) => ({ messageType: "MMS", media: [{ ...MEDIA[0], ...item }] });

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
    ["media without storageKey (SND-13)", mms({ storageKey: undefined }), "media.0.storageKey"],
    ["a mimeType that is no text (SND-13)", mms({ mimeType: 1 }), "media.0.mimeType"],
    ["half a byte (SND-13)", mms({ byteLength: 0.5 }), "media.0.byteLength"],
    ["a fileName that is no text (SND-13)", mms({ fileName: null }), "media.0.fileName"],
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
});

describe("Idempotency-Key", () => {
  it.each([undefined, "", "  "])("must be there: %j gets 400 (SND-1)", async (key) => {
    const { emulator, token } = await ready();
    const { status, body } = await send(emulator, token, {}, key === undefined ? {} : { "idempotency-key": key });
    expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(emulator.control.messages()).toEqual([]);
  });
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
