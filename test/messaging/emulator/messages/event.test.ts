/** The bodies of events: byte for byte in the specification's order of fields. */
import { describe, expect, it } from "vitest";
import type { Emulator, EmulatorOptions } from "../../../../src/messaging/emulator/index.ts";
import { parseEvent } from "../../../../src/sources/messaging/parse.ts";
import { ready as readyWith, send } from "../support.ts";

const NOW = 1_767_225_600_000;

const ready = (options: EmulatorOptions = {}) => readyWith({ lifecycle: "instant", ...options });

function texts(emulator: Emulator): string[] {
  return emulator.control.events().map(({ body }) => body);
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads fields of bodies whose shape it checks
function bodies(emulator: Emulator): any[] {
  return texts(emulator).map((text) => JSON.parse(text));
}

describe("an outbound event", () => {
  it("has the specification's fields in its order, sendFrom in E.164 (EVT-2, EVT-3, EVT-4, EVT-5, EVT-6, EVT-7, EVT-8)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token);
    const data = (rest: string) =>
      `"data":{"messageId":"msg_a8244c_000001","externalReference":"order-1","sendFrom":"+12065550101","to":"+14155550123",${rest}}`;
    const event = (type: string, sequence: number, rest: string) =>
      `{"eventType":"${type}","direction":"outbound","occurredAt":${NOW},"apiClientId":"ac_main",` +
      `"messageId":"msg_a8244c_000001","sequence":${sequence},${data(rest)}}`;
    expect(texts(emulator)).toEqual([
      event("message.queued", 1, '"status":"QUEUED","error":null'),
      event("message.sent", 2, '"status":"sent","error":null'),
      event("message.delivery", 3, '"status":"delivered","error":null,"providerMessageRef":"provider_a8244c_000001"'),
    ]);
  });

  it("says failed with code, message and details (EVT-5, EVT-6, EVT-9)", async () => {
    const { emulator, token } = await ready({ lifecycle: "manual" });
    await send(emulator, token);
    emulator.control.failMessage("msg_a8244c_000001");
    const [, { eventType, sequence, data }] = bodies(emulator);
    expect([eventType, sequence, data.status]).toEqual(["message.failed", 2, "failed"]);
    expect(data.error).toEqual({ code: "PROVIDER_SEND_FAILED", message: expect.any(String), details: {} });
    expect(Object.keys(data)).toEqual(["messageId", "externalReference", "sendFrom", "to", "status", "error"]);
  });

  it("has a provider reference of its own per message (EVT-7)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token, { to: ["+14155550123", "+14155550124"] });
    const references = bodies(emulator).map(({ data }) => data.providerMessageRef);
    expect(references.filter(Boolean)).toEqual(["provider_a8244c_000001", "provider_a8244c_000002"]);
  });

  it("says another status for a delivery by the reading deliveryStatus (EVT-13)", async () => {
    const { emulator, token } = await ready({ unspecified: { deliveryStatus: "delivered_to_handset" } });
    await send(emulator, token);
    expect(bodies(emulator).map(({ data }) => data.status)).toEqual(["QUEUED", "sent", "delivered_to_handset"]);
    expect(emulator.control.messages()[0]).toMatchObject({ status: "delivered" });
  });
});

describe("the reading sameSequence", () => {
  it("tells message.delivery twice with one sequence and one reference, first as buffered (EVT-12)", async () => {
    const { emulator, token } = await ready({ unspecified: { sameSequence: true } });
    await send(emulator, token);
    const [, , first, second] = bodies(emulator);
    expect([first.sequence, first.data.status]).toEqual([3, "buffered"]);
    expect([second.sequence, second.data.status]).toEqual([3, "delivered"]);
    expect(first.data.providerMessageRef).toBe(second.data.providerMessageRef);
    expect(bodies(emulator)).toHaveLength(4);
  });

  it("leaves the message sent in between, in its time and by request (EVT-12)", async () => {
    const { emulator, token } = await ready({ lifecycle: "realistic", unspecified: { sameSequence: true } });
    await send(emulator, token);
    emulator.control.advanceMessage("msg_a8244c_000001");
    expect(emulator.control.advanceMessage("msg_a8244c_000001")).toMatchObject({ status: "sent", sequence: 3 });
    await emulator.clock.advance(10_000);
    expect(emulator.control.messages()[0]).toMatchObject({ status: "delivered", sequence: 3 });
    await send(emulator, token);
    await emulator.clock.advance(10_000);
    const times = emulator.control.events({ messageId: "msg_a8244c_000002" }).map(({ occurredAt }) => occurredAt);
    expect(new Set(times).size).toBe(4);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});

describe("message.inbound", () => {
  it("has the specification's fields in its order, no sequence, no messageId of its own (EVT-3, EVT-10)", async () => {
    const { emulator } = await ready();
    const { conversationId } = emulator.control.inbound({ to: "+12065550101", from: "+14155550123", body: "hello" });
    expect(texts(emulator)).toEqual([
      `{"eventType":"message.inbound","direction":"inbound","occurredAt":${NOW},"apiClientId":"ac_main","data":{` +
        `"messageId":"msg_a8244c_000001","conversationId":"${conversationId}","numberId":"num_000001","from":"+14155550123",` +
        `"to":"+12065550101","body":"hello","media":[],"timestamp":${NOW}}}`,
    ]);
    expect(emulator.control.events()[0]).toMatchObject({
      kind: "inbound",
      messageId: "msg_a8244c_000001",
      sequence: null,
    });
  });

  it("has one conversation per pair of numbers, in any emulator of the seed, even after a reset (EVT-10)", async () => {
    const { emulator } = await ready();
    const receive = (to: string, from: string) => emulator.control.inbound({ to, from, body: "x" }).conversationId;
    const first = receive("num_000001", "+14155550123");
    expect(first).toMatch(/^conv_[0-9a-f]{12}$/);
    expect(receive("num_000001", "+14155550124")).not.toBe(first);
    expect(receive("num_000002", "+14155550123")).not.toBe(first);
    emulator.control.reset();
    expect(receive("num_000001", "+14155550123")).toBe(first);
  });

  it("goes to the number's owner (EVT-10)", async () => {
    const { emulator } = await ready();
    emulator.control.inbound({ to: "num_000006", from: "+14155550123", body: "x" });
    emulator.control.updateNumber("num_000006", { apiClientId: "ac_main" });
    emulator.control.inbound({ to: "num_000006", from: "+14155550123", body: "x" });
    expect(bodies(emulator).map(({ apiClientId }) => apiClientId)).toEqual(["ac_other", "ac_main"]);
  });
});

describe("a triggered event", () => {
  const names = { apiClientId: "ac_main", numberId: "num_000001", messageId: "msg_9" };

  it("is told as it was asked for, also with an unknown type and any sequence", async () => {
    const { emulator } = await ready();
    const data = { z: 1, messageId: "msg_9", a: [null] };
    emulator.control.trigger({ ...names, kind: "delivery", eventType: "message.read", sequence: 7, data });
    expect(texts(emulator)).toEqual([
      `{"eventType":"message.read","direction":"outbound","occurredAt":${NOW},"apiClientId":"ac_main","messageId":"msg_9",` +
        '"sequence":7,"data":{"z":1,"messageId":"msg_9","a":[null]}}',
    ]);
    expect(parseEvent(Buffer.from(texts(emulator)[0] ?? ""))).toMatchObject({ ok: true });
  });

  it("of the inbound kind has no messageId of its own; without a sequence there is none (EVT-3)", async () => {
    const { emulator } = await ready();
    emulator.control.trigger({ ...names, kind: "inbound", eventType: "message.inbound", sequence: null, data: {} });
    emulator.control.trigger({ ...names, kind: "delivery", eventType: "message.sent", sequence: null, data: {} });
    expect(bodies(emulator).map((body) => Object.keys(body).join())).toEqual([
      "eventType,direction,occurredAt,apiClientId,data",
      "eventType,direction,occurredAt,apiClientId,messageId,data",
    ]);
  });

  it("changes no message", async () => {
    const { emulator, token } = await ready({ lifecycle: "manual" });
    await send(emulator, token);
    const before = emulator.control.messages();
    const event = { ...names, messageId: "msg_a8244c_000001", kind: "delivery", eventType: "message.failed" } as const;
    emulator.control.trigger({ ...event, sequence: 4, data: {} });
    expect(emulator.control.messages()).toEqual(before);
  });
});
