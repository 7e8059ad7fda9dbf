/** The controls: the same things for a program and over HTTP. */
import { describe, expect, it } from "vitest";
import { control } from "../control-support.ts";
import { call, ready, send, start, startCatcher, tokenOf } from "../support.ts";

describe("inbound", () => {
  const message = { to: "num_000001", from: "+14155550123", body: "hello" };

  it("is a customer's message to a number, named by its id or its E.164, and reaches the inbound target (DLV-1, EVT-11)", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ inboundUrl: catcher.url });
    const { body } = await control(emulator, "POST", "/inbound", { ...message, media: [{ any: "shape" }] });
    expect(body.message).toMatchObject({ direction: "inbound", numberId: "num_000001", to: "+12065550101" });
    emulator.control.inbound({ ...message, to: "+12065550102" });
    await emulator.clock.idle();
    expect(catcher.caught.map(({ event }) => [event.eventType, event.data.numberId, event.data.media])).toEqual([
      ["message.inbound", "num_000001", [{ any: "shape" }]],
      ["message.inbound", "num_000002", []],
    ]);
  });

  it.each([
    ["an unknown number", { ...message, to: "+19995550100" }, 404],
    ["no sender", { to: message.to, body: "x" }, 400],
    ["a field that is none", { ...message, text: "x" }, 400],
    ["a body that is no text", { ...message, body: 1 }, 400],
  ])("refuses %s", async (_, body, status) => {
    const emulator = await start();
    expect((await control(emulator, "POST", "/inbound", body)).status).toBe(status);
    expect(() => emulator.control.inbound(body as typeof message)).toThrow(
      status === 404 ? /no such number/ : /inbound/,
    );
    expect(emulator.control.messages()).toEqual([]);
  });
});

it("a body is taken with 64 levels and refused with more, over HTTP and from a program", async () => {
  const emulator = await start();
  /** As a text: writing the value would run out of stack itself. */
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  const inbound = (depth: number) =>
    `{"to":"num_000001","from":"+14155550123","body":"hello","media":${nested(depth - 1)}}`;
  const names = '"apiClientId":"ac_main","numberId":"num_000001","messageId":"msg_777"';
  const event = (depth: number) =>
    `{"kind":"delivery","eventType":"message.read",${names},"sequence":9,"data":{"deep":${nested(depth - 2)}}}`;
  for (const [depth, expected] of [64, 65, 700, 1_500, 3_000, 6_000].map(
    (each) => [each, each === 64 ? 200 : 400] as const,
  )) {
    expect((await control(emulator, "POST", "/inbound", inbound(depth))).status).toBe(expected);
    expect((await control(emulator, "POST", "/trigger", event(depth))).status).toBe(expected);
  }
  expect(() => emulator.control.inbound(JSON.parse(inbound(20_000)))).toThrow(/inbound\(\) .*64 levels/);
  expect(() => emulator.control.trigger(JSON.parse(event(20_000)))).toThrow(/trigger\(\) .*64 levels/);
  expect([emulator.control.messages().length, emulator.control.events().length]).toEqual([1, 2]);
  emulator.control.importState(emulator.control.exportState());
});

describe("a message's steps", () => {
  it("happen on request, one by one, until it has ended", async () => {
    const emulator = await start({ lifecycle: "manual" });
    await send(emulator, await tokenOf(emulator));
    const advance = () => control(emulator, "POST", "/messages/msg_a8244c_000001/advance");
    expect((await advance()).body.message.status).toBe("sent");
    expect((await advance()).body.message.status).toBe("delivered");
    const ended = await advance();
    expect([ended.status, ended.body.error.code]).toEqual([409, "CONFLICT"]);
    expect(() => emulator.control.advanceMessage("msg_a8244c_000001")).toThrow(
      expect.objectContaining({ code: "message_ended" }),
    );
    expect((await control(emulator, "POST", "/messages/msg_a8244c_000009/advance")).status).toBe(404);
  });

  it("end with a failure on request, with the given error (EVT-6)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token);
    const error = { code: "CARRIER_BLOCKED", message: "blocked" };
    const fail = (body?: object) => control(emulator, "POST", "/messages/msg_a8244c_000001/fail", body);
    expect((await fail({ code: "" })).status).toBe(400);
    expect((await fail(error)).body.message.status).toBe("failed");
    const [first] = emulator.control.events({ eventType: "message.failed" });
    expect(JSON.parse(first?.body ?? "").data.error).toMatchObject(error);
    expect((await fail()).status).toBe(409);
  });
});

describe("trigger", () => {
  const event = {
    kind: "delivery",
    eventType: "message.read",
    apiClientId: "ac_main",
    numberId: "num_000001",
    messageId: "msg_777",
    sequence: 9,
    data: { anything: [1] },
  } as const;

  it("sends any event, as if the service had", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ deliveryUrl: catcher.url });
    const { body } = await control(emulator, "POST", "/trigger", event);
    await emulator.clock.idle();
    expect(catcher.caught.map(({ text }) => text)).toEqual([body.event.body]);
    expect(catcher.caught[0]?.event).toMatchObject({ eventType: "message.read", sequence: 9 });
  });

  it.each([
    [{ apiClientId: "ac_none" }, 404],
    [{ numberId: "num_none" }, 404],
    [{ kind: "other" }, 400],
    [{ sequence: "9" }, 400],
    [{ data: [] }, 400],
  ])("refuses %j", async (fields, status) => {
    const emulator = await start();
    expect((await control(emulator, "POST", "/trigger", { ...event, ...fields })).status).toBe(status);
    expect(emulator.control.events()).toEqual([]);
  });
});

describe("redeliver and recover", () => {
  it("make one extra attempt of a delivery, or of all since a time that were not delivered", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const { emulator, token } = await ready({ lifecycle: "instant", deliveryUrl: catcher.url });
    await send(emulator, token);
    await emulator.clock.idle();
    catcher.answer = 200;
    const { body } = await control(emulator, "POST", "/deliveries/dlv_a8244c_000002/redeliver");
    expect(body.delivery).toMatchObject({ state: "delivered", attempts: [{}, { trigger: "redelivery", status: 200 }] });
    const recover = async (since: number) => (await control(emulator, "POST", "/recover", { since })).body.deliveries;
    expect(await recover(emulator.clock.now() + 1)).toEqual([]);
    expect(await recover(0)).toMatchObject([{ deliveryId: "dlv_a8244c_000001" }, { deliveryId: "dlv_a8244c_000003" }]);
  });
});

describe("fault rules", () => {
  const rule = { match: { route: "GET /api/core/whoami" }, action: { type: "status", status: 503 }, times: 1 };

  it("are added, counted, listed and removed, one or all", async () => {
    const emulator = await start();
    const added = await control(emulator, "POST", "/faults", rule);
    await control(emulator, "POST", "/faults", { ...rule, match: { route: "GET /api/core/numbers" } });
    const token = await tokenOf(emulator);
    const whoami = async () => (await call(emulator, "GET", "/api/core/whoami", { token })).status;
    expect(await whoami()).toBe(503);
    const { body } = await control(emulator, "GET", "/faults");
    expect(body.faults.map(({ played }: { played: number }) => played)).toEqual([1, 0]);
    expect((await control(emulator, "DELETE", `/faults/${added.body.id}`)).body).toEqual({ removed: 1 });
    expect((await control(emulator, "DELETE", `/faults/${added.body.id}`)).status).toBe(404);
    expect((await control(emulator, "DELETE", "/faults")).body).toEqual({ removed: 1 });
    expect(emulator.control.faults.list()).toEqual([]);
    expect(await whoami()).toBe(200);
  });
});
