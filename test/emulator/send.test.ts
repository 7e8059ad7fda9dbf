/** What `POST /api/core/messages/send` takes; repeats are in idempotency.test.ts. */
import { describe, expect, it } from "vitest";
import { send, start, tokenOf } from "./support.ts";

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
