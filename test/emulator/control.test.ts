/** The controls: the same things for a program and over HTTP. */
import { describe, expect, it } from "vitest";
import { control } from "./control-support.ts";
import { call, send, start, startAgain, startCatcher, tokenOf } from "./support.ts";

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

describe("a body as deep as somebody likes", () => {
  /** The text: writing the value would run out of stack itself. */
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  const inbound = (depth: number) =>
    `{"to":"num_000001","from":"+14155550123","body":"hello","media":${nested(depth - 1)}}`;
  const names = '"apiClientId":"ac_main","numberId":"num_000001","messageId":"msg_777"';
  const event = (depth: number) =>
    `{"kind":"delivery","eventType":"message.read",${names},"sequence":9,"data":{"deep":${nested(depth - 2)}}}`;
  /** Where the stack ends lies somewhere in it, for each of what walks through a value. */
  const sweep = Array.from({ length: 30 }, (_, i) => 100 + i * 200);

  it("is taken with 64 levels and refused with more, over HTTP and from a program", async () => {
    const emulator = await start();
    for (const depth of [64, 65, ...sweep]) {
      const statuses = [
        (await control(emulator, "POST", "/inbound", inbound(depth))).status,
        (await control(emulator, "POST", "/trigger", event(depth))).status,
      ];
      const expected = depth === 64 ? 200 : 400;
      expect([depth, ...statuses]).toEqual([depth, expected, expected]);
    }
    expect(() => emulator.control.inbound(JSON.parse(inbound(20_000)))).toThrow(/inbound\(\) .*64 levels/);
    expect(() => emulator.control.trigger(JSON.parse(event(20_000)))).toThrow(/trigger\(\) .*64 levels/);
    expect([emulator.control.messages().length, emulator.control.events().length]).toEqual([1, 2]);
    emulator.control.importState(emulator.control.exportState());
  });

  it("stops nothing: what comes after it is kept", async () => {
    const emulator = await start();
    const token = await tokenOf(emulator);
    const statuses = [];
    for (const depth of sweep) statuses.push((await control(emulator, "POST", "/inbound", inbound(depth))).status);
    expect(new Set(statuses)).toEqual(new Set([400]));
    expect((await send(emulator, token)).status).toBe(202);
    expect((await startAgain(emulator)).control.messages()).toMatchObject([{ direction: "outbound" }]);
  });
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

  it("end with a failure on request, with the given error", async () => {
    const emulator = await start();
    const token = await tokenOf(emulator);
    await send(emulator, token);
    await send(emulator, token);
    const error = { code: "CARRIER_BLOCKED", message: "blocked" };
    expect((await control(emulator, "POST", "/messages/msg_a8244c_000001/fail", error)).body.message.status).toBe(
      "failed",
    );
    expect((await control(emulator, "POST", "/messages/msg_a8244c_000002/fail")).body.message.status).toBe("failed");
    const [first] = emulator.control.events({ messageId: "msg_a8244c_000001", eventType: "message.failed" });
    expect(JSON.parse(first?.body ?? "").data.error).toMatchObject(error);
    expect((await control(emulator, "POST", "/messages/msg_a8244c_000001/fail", error)).status).toBe(409);
    expect((await control(emulator, "POST", "/messages/msg_a8244c_000002/fail", { code: "" })).status).toBe(400);
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
    const emulator = await start({ lifecycle: "instant", deliveryUrl: catcher.url });
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.advance(6_000_000);
    expect(emulator.control.deliveries({ state: "failed" })).toHaveLength(3);

    catcher.answer = 200;
    const { body } = await control(emulator, "POST", "/deliveries/dlv_a8244c_000002/redeliver");
    expect(body.delivery.state).toBe("delivered");
    expect(body.delivery.attempts.at(-1)).toMatchObject({ trigger: "redelivery", status: 200 });
    const late = await control(emulator, "POST", "/recover", { since: emulator.clock.now() });
    expect(late.body.deliveries).toEqual([]);
    const recovered = await control(emulator, "POST", "/recover", { since: 0 });
    expect(recovered.body.deliveries.map(({ deliveryId }: { deliveryId: string }) => deliveryId)).toEqual([
      "dlv_a8244c_000001",
      "dlv_a8244c_000003",
    ]);
    expect(emulator.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });

  it("refuse what does not exist, or is no time", async () => {
    const emulator = await start();
    expect((await control(emulator, "POST", "/deliveries/dlv_1/redeliver")).status).toBe(404);
    await expect(emulator.control.redeliver("dlv_1")).rejects.toMatchObject({ code: "unknown_id" });
    for (const since of [-1, 1.5, "0", null]) {
      expect((await control(emulator, "POST", "/recover", { since })).status).toBe(400);
    }
    await expect(emulator.control.recover(-1)).rejects.toMatchObject({ code: "invalid_option" });
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
