/** Sends that are repeated with their idempotency key. */
import { describe, expect, it } from "vitest";
import type { Emulator, EmulatorOptions } from "../../../../src/messaging/emulator/index.ts";
import { call, ready as readyWith, send, startCatcher, tokenOf } from "../support.ts";

const KEY = { "idempotency-key": "key-of-this-test" };
const DAY_MS = 86_400_000;
/** Where a virtual clock starts. */
const NOW = 1_767_225_600_000;

const ready = (options: EmulatorOptions = {}) => readyWith({ lifecycle: "manual", ...options });

describe("a repeated send", () => {
  it("gets the same bytes whatever became of the message, and sends nothing again (SND-17)", async () => {
    const { emulator, token } = await ready();
    const first = await send(emulator, token, { to: ["+14155550123", "nobody"] }, KEY);
    emulator.control.advanceMessage("msg_a8244c_000001");
    const second = await send(emulator, token, { to: ["+14155550123", "nobody"] }, KEY);
    expect([second.status, second.text]).toEqual([202, first.text]);
    expect([emulator.control.messages().length, emulator.control.events().length]).toEqual([1, 2]);
  });

  it("says today's states by the reading replay: current (SND-17)", async () => {
    const { emulator, token } = await ready({ unspecified: { replay: "current" } });
    const to = ["+14155550123", "nobody", "+14155550124"];
    const first = await send(emulator, token, { to }, KEY);
    emulator.control.advanceMessage("msg_a8244c_000001");
    emulator.control.failMessage("msg_a8244c_000002");
    const { body } = await send(emulator, token, { to }, KEY);
    expect(body.results.map(({ status }: { status: string }) => status)).toEqual(["sent", "failed"]);
    expect(body.errors).toEqual(first.body.errors);
    emulator.control.advanceMessage("msg_a8244c_000001");
    expect((await send(emulator, token, { to }, KEY)).body.results[0].status).toBe("delivered");
  });

  it("is answered even after its number was disabled or went to another client (SND-27)", async () => {
    const { emulator, token } = await ready();
    const { numbers } = emulator.fixtures;
    const first = await send(emulator, token, {}, KEY);
    emulator.control.updateNumber(numbers.full, { smsEnabled: false, status: "INACTIVE", apiClientId: "ac_other" });
    expect((await send(emulator, token, {}, KEY)).text).toBe(first.text);
    expect((await send(emulator, token)).status).toBe(403);
  });

  it("gets 400 when its body does not fit, before the key is looked up (SND-27)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token, {}, KEY);
    expect((await send(emulator, token, { to: [] }, KEY)).status).toBe(400);
  });
});

describe("a key with another payload", () => {
  it.each([
    ["another text", { text: "bye" }],
    ["no text", { text: undefined }],
    ["another recipient", { to: ["+14155550199"] }],
    ["recipients in another order", { to: ["+14155550124", "+14155550123"] }],
    ["another number, even an unknown one", { sendFrom: "num_999999" }],
    ["a field that is not known", { colour: "red" }],
  ])("gets 409: %s (SND-18)", async (_, fields) => {
    const { emulator, token } = await ready();
    const again = () => send(emulator, token, { to: ["+14155550123", "+14155550124"] }, KEY);
    const first = await again();
    const refused = await send(emulator, token, { to: ["+14155550123", "+14155550124"], ...fields }, KEY);
    expect([refused.status, refused.body.error.code]).toEqual([409, "CONFLICT"]);
    expect(refused.text).not.toContain("key-of-this-test");
    expect((await again()).text).toBe(first.text);
    expect(emulator.control.messages()).toHaveLength(2);
  });
});

describe("a refusal", () => {
  it.each([
    [400, { to: [] }],
    [400, { sendFrom: "num_000002" }],
    [403, { sendFrom: "num_000006" }],
    [404, { sendFrom: "num_999999" }],
    [409, { text: "bye" }],
  ])("is the same when it is asked for again: %d %j (SND-23)", async (status, fields) => {
    const { emulator, token } = await ready();
    if (status === 409) await send(emulator, token, {}, KEY);
    const answers = [await send(emulator, token, fields, KEY), await send(emulator, token, fields, KEY)];
    const [first, second] = answers.map((answer) => [answer.status, answer.body.error]);
    expect(first?.[0]).toBe(status);
    expect(second).toEqual(first);
  });
});

describe("payloads", () => {
  const post = async (emulator: Emulator, token: string, body: string) =>
    (await call(emulator, "POST", "/api/core/messages/send", { token, body, headers: KEY })).status;
  const media = (item: string) =>
    `{"sendFrom":"num_000001","to":["+14155550123"],"messageType":"MMS","externalReference":"a","media":[${item}]}`;

  it("are the same when only spaces, escapes and the order of keys differ, at any depth (SND-28)", async () => {
    const { emulator, token } = await ready();
    await post(emulator, token, media('{"storageKey":"é","mimeType":"b","byteLength":10}'));
    const other = `{ "media":[{"byteLength":1.0e1, "mimeType":"b","storageKey":"\\u00e9"}],
      "externalReference":"a","messageType":"MMS","to":["+14155550123"],"sendFrom":"num_000001"}`;
    expect(await post(emulator, token, other)).toBe(202);
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it("are told apart by a value at any depth, and by where it stands (SND-28)", async () => {
    const { emulator, token } = await ready();
    await post(emulator, token, media('{"storageKey":"a","mimeType":"b","byteLength":10}'));
    expect(await post(emulator, token, media('{"storageKey":"a","mimeType":"b","byteLength":11}'))).toBe(409);
    expect(await post(emulator, token, media('{"storageKey":"b","mimeType":"a","byteLength":10}'))).toBe(409);
    expect(await post(emulator, token, media('{"storageKey":"a\\",\\"x","mimeType":"b","byteLength":10}'))).toBe(409);
  });
});

describe("a key", () => {
  it("is not burnt by a refusal (SND-29)", async () => {
    const { emulator, token } = await ready();
    expect((await send(emulator, token, { sendFrom: "num_999999" }, KEY)).status).toBe(404);
    expect((await send(emulator, token, { sendFrom: emulator.fixtures.numbers.foreign }, KEY)).status).toBe(403);
    expect((await send(emulator, token, { sendFrom: emulator.fixtures.numbers.noCampaign }, KEY)).status).toBe(400);
    expect((await send(emulator, token, {}, KEY)).status).toBe(202);
  });

  it.each([
    [202, 409],
    [400, 202],
  ] as const)("is burnt by a send to nobody only if that has %i (SND-24, SND-29)", async (...statuses) => {
    const { emulator, token } = await ready({ unspecified: { allRejected: statuses[0] } });
    const answers = [await send(emulator, token, { to: ["nobody"] }, KEY), await send(emulator, token, {}, KEY)];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
  });

  it("belongs to its client (SND-30)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token, {}, KEY);
    const other = await tokenOf(emulator, emulator.fixtures.clients.other);
    const { status, body } = await send(emulator, other, { sendFrom: emulator.fixtures.numbers.foreign }, KEY);
    expect([status, body.results[0].messageId]).toEqual([202, "msg_a8244c_000002"]);
  });

  it("is told apart exactly (SND-30)", async () => {
    const { emulator, token } = await ready();
    for (const key of ["a", "A", "a,b", "__proto__", '","'])
      await send(emulator, token, {}, { "idempotency-key": key });
    expect(emulator.control.messages()).toHaveLength(5);
  });

  it("is forgotten after 24 hours of the emulator's time, not before (SND-30)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token, {}, KEY);
    await emulator.clock.advance(DAY_MS - 1);
    const late = await tokenOf(emulator);
    expect((await send(emulator, late, { text: "bye" }, KEY)).status).toBe(409);
    await emulator.clock.advance(1);
    const { status, body } = await send(emulator, late, { text: "bye" }, KEY);
    expect([status, body.results[0].messageId]).toEqual([202, "msg_a8244c_000002"]);
    // And it starts its 24 hours anew.
    await emulator.clock.advance(DAY_MS - 1);
    expect((await send(emulator, await tokenOf(emulator), {}, KEY)).status).toBe(409);
  });

  it("that starts anew does not keep older ones in the state (SND-30)", async () => {
    const { emulator, token } = await ready();
    const sendAt = async (hours: number, key: string) => {
      await emulator.clock.advance(Math.max(0, NOW + hours * 3_600_000 - emulator.clock.now()));
      await send(emulator, hours === 0 ? token : await tokenOf(emulator), {}, { "idempotency-key": key });
    };
    await sendAt(0, "a");
    await sendAt(12, "b");
    await sendAt(24, "a");
    await sendAt(36, "c");
    const kept = Object.values(emulator.control.exportState().tables.idempotency ?? {});
    expect(kept).toMatchObject([{ createdAt: NOW + DAY_MS }, { createdAt: NOW + 1.5 * DAY_MS }]);
  });
});

describe("two calls at once with one key", () => {
  it("send once, with one answer (SND-31)", async () => {
    const { emulator, token } = await ready();
    const calls = await Promise.all(Array.from({ length: 20 }, () => send(emulator, token, {}, KEY)));
    expect(new Set(calls.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it("are answered in their order: the second waits for the first (SND-31, DLV-20)", async () => {
    const catcher = await startCatcher();
    const { emulator, token } = await ready({
      deliveryUrl: catcher.url,
      faults: [{ match: { webhook: true, eventType: "message.queued" }, action: { type: "eventBeforeResponse" } }],
    });
    const arrived = new Promise<() => void>((resolve) => {
      catcher.answer = (_, response) => resolve(() => response.writeHead(200).end());
    });
    const answered: string[] = [];
    const named = (name: string) => async (answer: { text: string }) => {
      answered.push(name);
      return answer.text;
    };
    const first = send(emulator, token, {}, KEY).then(named("first"));
    const finish = await arrived;
    const second = send(emulator, token, {}, KEY).then(named("second"));
    // Another key's payload conflict needs no waiting, and shows that the second had its chance to be answered.
    expect((await send(emulator, token, { text: "bye" }, KEY)).status).toBe(409);
    expect(answered).toEqual([]);
    finish();
    expect(await second).toBe(await first);
    expect(answered).toEqual(["first", "second"]);
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it("each try for themselves when the first fails (SND-29, SND-31)", async () => {
    const { emulator, token } = await ready();
    const calls = [0, 1, 2].map(() => send(emulator, token, { to: ["+15005550011"] }, KEY));
    const answers = await Promise.all(calls);
    expect(answers.map(({ status }) => status)).toEqual([500, 202, 202]);
    expect(answers[1]?.text).toBe(answers[2]?.text);
    expect(emulator.control.messages()).toHaveLength(1);
  });
});
