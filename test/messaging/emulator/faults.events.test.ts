/** Fault rules that play on an event as a whole. */
import { describe, expect, it } from "vitest";
import type { EmulatorOptions, FaultRule } from "../../../src/messaging/emulator/index.ts";
import { parseEvent } from "../../../src/sources/messaging/parse.ts";
import { call, send, start, startCatcher, tokenOf } from "./support.ts";

type WebhookRule = Exclude<FaultRule, { match: { route: string } }>;

async function ready(action: WebhookRule["action"], eventType: string, options: EmulatorOptions = {}) {
  const catcher = await startCatcher();
  const faults = [{ match: { eventType }, action }] as const;
  const emulator = await start({ deliveryUrl: catcher.url, faults, ...options });
  const token = await tokenOf(emulator);
  return { emulator, token, catcher, types: () => catcher.caught.map(({ event }) => event.eventType) };
}

describe("a fault on an event", () => {
  it("drops it: it happened, but nobody hears of it", async () => {
    const { emulator, token, types } = await ready({ type: "drop" }, "message.sent");
    await send(emulator, token);
    await emulator.clock.advance(86_400_000);
    expect(types()).toEqual(["message.queued", "message.delivery"]);
    expect(emulator.control.events()).toHaveLength(3);
    expect(emulator.control.deliveries({ eventType: "message.sent" })).toMatchObject([{ state: "dropped" }]);
  });

  it("drops it even where another rule duplicates it", async () => {
    const { emulator, token, types } = await ready({ type: "drop" }, "message.sent");
    emulator.control.faults.add({ match: { webhook: true }, action: { type: "duplicate" } });
    await send(emulator, token);
    await emulator.clock.advance(10_000);
    expect(types()).toEqual(["message.queued", "message.queued", "message.delivery", "message.delivery"]);
  });

  it("duplicates it: two deliveries with the same bytes (DLV-8)", async () => {
    const { emulator, token, catcher, types } = await ready({ type: "duplicate" }, "message.sent");
    await send(emulator, token);
    await emulator.clock.advance(10_000);
    expect(types()).toEqual(["message.queued", "message.sent", "message.sent", "message.delivery"]);
    expect(catcher.caught[1]?.text).toBe(catcher.caught[2]?.text);
    expect(emulator.control.events()).toHaveLength(3);
  });

  it("delays it by so much", async () => {
    const { emulator, token, types } = await ready({ type: "delay", ms: 3_600_000 }, "message.queued");
    await send(emulator, token);
    await emulator.clock.advance(3_599_999);
    expect(types()).toEqual(["message.sent", "message.delivery"]);
    await emulator.clock.advance(1);
    expect(types()).toEqual(["message.sent", "message.delivery", "message.queued"]);
  });

  it.each(["instant", "realistic"] as const)("reorders it behind all that follow: %s (DLV-10)", async (lifecycle) => {
    const { emulator, token, types } = await ready({ type: "reorder" }, "message.queued", { lifecycle });
    await send(emulator, token);
    await emulator.clock.advance(14_999);
    expect(types()).toEqual(["message.sent", "message.delivery"]);
    await emulator.clock.advance(1);
    expect(types()).toEqual(["message.sent", "message.delivery", "message.queued"]);
  });

  it("gives it an unknown type, and keeps the rest (RCV-11)", async () => {
    const { emulator, token, catcher, types } = await ready({ type: "unknownEventType" }, "message.sent");
    await send(emulator, token);
    await emulator.clock.advance(10_000);
    expect(types()).toEqual(["message.queued", "message.buffered", "message.delivery"]);
    expect(emulator.control.events().map(({ eventType }) => eventType)).toEqual(types());
    expect(catcher.caught[1]?.event).toMatchObject({ sequence: 2, data: { status: "sent" } });
    expect(Object.keys(catcher.caught[1]?.event)[0]).toBe("eventType");
    expect(emulator.control.messages()[0]).toMatchObject({ status: "delivered" });
  });

  it("adds unknown fields to it and to its data; the receiver takes it (RCV-11)", async () => {
    const { emulator, token, catcher } = await ready({ type: "extraFields" }, "message.sent");
    await send(emulator, token);
    await emulator.clock.advance(10_000);
    const [plain, extra] = catcher.caught.map(({ event }) => event);
    const added = (a: object, b: object) => Object.keys(b).filter((name) => !Object.hasOwn(a, name));
    expect(added(plain, extra)).toEqual(["schemaVersion", "routing"]);
    expect(added(plain.data, extra.data)).toEqual(["segments", "carrier", "priced"]);
    expect(added(extra, plain).concat(added(extra.data, plain.data))).toEqual([]);
    expect(parseEvent(catcher.caught[1]?.raw)).toMatchObject({ ok: true });
  });
});

describe("the fault eventBeforeResponse", () => {
  it("holds nobody up whose handlers send, however many webhooks one receiver handles at once (DLV-20)", async () => {
    const { emulator, token, catcher } = await ready({ type: "eventBeforeResponse" }, "message.queued", {
      lifecycle: "manual",
      attemptTimeoutMs: 3_000,
    });
    const inbound = { endpointUrl: catcher.url, enabled: true, signingEnabled: true };
    await call(emulator, "PATCH", "/api/core/webhooks/inbound", { token, body: inbound });
    catcher.answer = async ({ event }, response) => {
      const status = event.eventType === "message.inbound" ? (await send(emulator, token)).status : 200;
      response.writeHead(status).end();
    };
    for (let i = 0; i < 40; i++) emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: "hello" });
    await emulator.clock.idle();
    const ends = emulator.control.attempts().map(({ status, error }) => status ?? error);
    expect(ends.sort()).toEqual([...Array(40).fill(200), ...Array(40).fill(202)]);
    expect(catcher.caught).toHaveLength(80);
  });

  it("lets the send be answered after the first attempt of its queued event (DLV-20)", async () => {
    const { emulator, token, catcher } = await ready({ type: "eventBeforeResponse" }, "message.queued");
    const order: string[] = [];
    catcher.answer = (_, response) => {
      order.push("webhook");
      response.writeHead(500).end(() => order.push("webhook answered"));
    };
    await send(emulator, token);
    order.push("202");
    expect(order).toEqual(["webhook", "webhook answered", "202"]);
  });

  it("waits for every recipient's (DLV-20)", async () => {
    const { emulator, token, catcher } = await ready({ type: "eventBeforeResponse" }, "message.queued");
    const to = Array.from({ length: 40 }, (_, i) => `+141555501${i + 10}`);
    await send(emulator, token, { to });
    expect(catcher.caught).toHaveLength(40);
  });

  it("does not wait for what has no target, is dropped, or comes late anyway (DLV-2, DLV-20)", async () => {
    const { emulator, token } = await ready({ type: "eventBeforeResponse" }, "message.queued", {
      deliveryUrl: undefined,
    } as object);
    expect((await send(emulator, token)).status).toBe(202);
    const late = await ready({ type: "eventBeforeResponse" }, "message.queued");
    const id = late.emulator.control.faults.add({ match: { webhook: true }, action: { type: "delay", ms: 1_000 } });
    expect((await send(late.emulator, late.token)).status).toBe(202);
    expect(late.catcher.caught).toHaveLength(0);
    late.emulator.control.faults.remove(id);
    late.emulator.control.faults.add({ match: { webhook: true }, action: { type: "drop" } });
    expect((await send(late.emulator, late.token)).status).toBe(202);
  });
});
