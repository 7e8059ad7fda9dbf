import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { BEGIN, configure, expectSigned, newest, receive, stage } from "../delivery-support.ts";
import { call, ready, send, startCatcher, tokenOf } from "../support.ts";

const OTHER_SECRET = "secret-of-the-other-kind";

const override = ({ control, fixtures }: Emulator, fields: Parameters<Emulator["control"]["updateNumber"]>[1]) =>
  control.updateNumber(fixtures.numbers.full, fields);

describe("deliveries: targets", () => {
  it("prefers the number's override, per kind, and returns to the default without it (DLV-2)", async () => {
    const { emulator, catcher } = await stage({ lifecycle: "manual" });
    const own = await startCatcher();
    override(emulator, { webhookInboundOverride: own.url });
    await receive(emulator);
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.idle();
    expect(own.caught.map(({ event }) => event.eventType)).toEqual(["message.inbound"]);
    expect(catcher.caught.map(({ event }) => event.eventType)).toEqual(["message.queued"]);
    override(emulator, { webhookInboundOverride: null, webhookDeliveryOverride: own.url });
    await receive(emulator);
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.idle();
    expect(own.caught.map(({ event }) => event.eventType)).toEqual(["message.inbound", "message.queued"]);
    expect(catcher.caught.map(({ event }) => event.eventType)).toEqual(["message.queued", "message.inbound"]);
  });

  it("lets the override win even when the default is disabled, with the kind's signing (DLV-3, DLV-15)", async () => {
    const { emulator, catcher } = await stage();
    const own = await startCatcher();
    await configure(emulator, "inbound", { enabled: false });
    override(emulator, { webhookInboundOverride: own.url });
    const { state } = await receive(emulator);
    expect(state).toBe("delivered");
    expect(catcher.caught).toEqual([]);
    expectSigned(own.caught[0]);
  });

  it("leaves an override unsigned where that is the reading, and only it (DLV-15)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { overrideSigning: "unsigned" } });
    const own = await startCatcher();
    await receive(emulator);
    override(emulator, { webhookInboundOverride: own.url });
    await receive(emulator);
    expectSigned(catcher.caught[0]);
    expect([own.caught[0]?.signature, own.caught[0]?.timestamp]).toEqual([undefined, undefined]);
  });

  it.each([
    ["disabled", { enabled: false }],
    ["without a URL", { endpointUrl: null }],
  ])("logs NO_TARGET and tries nothing when the default is %s (DLV-2)", async (_, fields) => {
    const { emulator, catcher } = await stage();
    await configure(emulator, "inbound", fields);
    const delivery = await receive(emulator);
    expect(delivery).toMatchObject({ state: "no_target", nextAttemptAt: null, scheduledAttempts: 0 });
    expect(delivery.attempts).toMatchObject([{ at: BEGIN, url: null, status: null, error: "NO_TARGET", faults: [] }]);
    await configure(emulator, "inbound", { enabled: true, endpointUrl: catcher.url });
    await emulator.clock.advance(86_400_000);
    expect(catcher.caught).toEqual([]);
    expect(newest(emulator).attempts).toHaveLength(1);
  });

  it("looks at the client that owns the number only: another client's default does not count", async () => {
    const { emulator, catcher } = await stage();
    emulator.control.inbound({ to: emulator.fixtures.numbers.foreign, from: "+14155550123", body: "hello" });
    await emulator.clock.idle();
    expect(newest(emulator).state).toBe("no_target");
    expect(catcher.caught).toEqual([]);
  });

  it("takes both kinds on one URL with different signing: other secrets, or one of them unsigned (DLV-4, DLV-9)", async () => {
    const { emulator, catcher } = await stage({ lifecycle: "manual" });
    await configure(emulator, "delivery", { secret: OTHER_SECRET });
    await receive(emulator);
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.idle();
    const [inbound, queued] = catcher.caught;
    expectSigned(inbound);
    expectSigned(queued, OTHER_SECRET);
    await configure(emulator, "inbound", { signingEnabled: false });
    await receive(emulator);
    const unsigned = catcher.caught[2];
    expect(unsigned?.event.eventType).toBe("message.inbound");
    expect(Object.keys(unsigned?.headers ?? {}).filter((name) => name.startsWith("x-service"))).toEqual([]);
  });

  it("queues the events of one message independently: a refused one comes after its successors (DLV-10)", async () => {
    const { emulator, catcher } = await stage({ lifecycle: "instant" });
    catcher.answer = (caught, response) => {
      const first = catcher.caught.filter(({ text }) => text === caught.text).length === 1;
      response.writeHead(caught.event.sequence === 1 && first ? 503 : 200).end();
    };
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.advance(60_000);
    expect(catcher.caught.map(({ event }) => event.sequence)).toEqual([1, 2, 3, 1]);
  });
});

describe("deliveries: the request and its log", () => {
  it("is a POST of the event's exact bytes as application/json (DLV-11)", async () => {
    const { emulator, catcher } = await stage();
    await receive(emulator, "grüße \u2028 🎉");
    const [caught] = catcher.caught;
    expect(caught?.method).toBe("POST");
    expect(caught?.headers["content-type"]).toBe("application/json");
    expect(caught?.headers["content-length"]).toBe(String(caught?.raw.length));
    expect(caught?.text).toBe(emulator.control.events()[0]?.body);
    expect(caught?.event.data.body).toBe("grüße \u2028 🎉");
  });

  it("has another method and content type where those are the readings (DLV-11)", async () => {
    const contentType = "application/vnd.service+json; charset=utf-8";
    const unspecified = { "webhooks.method": "PUT", "webhooks.contentType": contentType } as const;
    const { emulator, catcher } = await stage({ unspecified });
    await receive(emulator);
    expect(catcher.caught[0]).toMatchObject({ method: "PUT", headers: { "content-type": contentType } });
  });

  it("logs status, headers and 16 KiB of the answer with the request's headers", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = (_, response) => response.writeHead(201, { "x-mine": "yes" }).end("a".repeat(20_000));
    const { attempts, ...delivery } = await receive(emulator);
    expect(delivery).toMatchObject({ state: "delivered", nextAttemptAt: null, scheduledAttempts: 1 });
    expect(attempts).toMatchObject([
      {
        trigger: "schedule",
        at: BEGIN,
        durationMs: 0,
        url: catcher.url,
        requestHeaders: {
          "content-type": "application/json",
          "x-service-timestamp": catcher.caught[0]?.timestamp,
          "x-service-signature": catcher.caught[0]?.signature,
        },
        status: 201,
        error: null,
        responseHeaders: { "x-mine": "yes" },
        responseBody: "a".repeat(16_384),
        faults: [],
      },
    ]);
  });

  it("measures how long an attempt took on a running clock", async () => {
    const { emulator, catcher } = await stage({ clock: "x60" });
    catcher.answer = (_, response) => void setTimeout(() => response.writeHead(200).end(), 50);
    const [attempt] = (await receive(emulator)).attempts;
    expect(attempt?.durationMs).toBeGreaterThanOrEqual(49 * 60);
  });

  it("keeps attempts of one message apart and lets those of others overlap", async () => {
    const { emulator, catcher } = await stage({ lifecycle: "instant" });
    const under: string[] = [];
    const held: (() => void)[] = [];
    const together: number[] = [];
    catcher.answer = ({ event: { messageId } }, response) => {
      under.push(messageId);
      held.push(() => {
        under.splice(under.indexOf(messageId), 1);
        response.writeHead(200).end();
      });
      // Nothing is answered before a second attempt is under way.
      if (held.length < 2) return;
      together.push(new Set(under).size);
      for (const answer of held.splice(0)) answer();
    };
    await send(emulator, await tokenOf(emulator), { to: ["+14155550124", "+14155550125"] });
    await emulator.clock.idle();
    expect(together).toEqual([2, 2, 2]);
    expect(catcher.caught.map(({ event }) => event.sequence)).toEqual([1, 1, 2, 2, 3, 3]);
  });
});

describe("clock.advance()", () => {
  it("shows a call from a webhook the time of that webhook (DLV-20)", async () => {
    const catcher = await startCatcher();
    const { emulator, token } = await ready({ deliveryUrl: catcher.url });
    const calledAt = new Map<string, number>();
    catcher.answer = ({ event }, response) => {
      const answer = () => {
        calledAt.set(`${event.messageId} ${event.sequence}`, emulator.clock.now());
        response.end();
      };
      // As long as a busy receiver takes, longer for earlier messages.
      setTimeout(answer, 20 - (Number(event.data.externalReference) % 20));
    };
    for (let i = 0; i < 10; i++) await send(emulator, token, { externalReference: String(i) });
    await emulator.clock.advance(120_000);
    const events = emulator.control.events();
    expect(events).toHaveLength(30);
    for (const { messageId, sequence, occurredAt } of events) {
      expect(calledAt.get(`${messageId} ${sequence}`)).toBe(occurredAt);
    }
  });

  it("does not let how long an attempt takes decide where the next one of its message goes (DLV-18)", async () => {
    const catcher = await startCatcher();
    const held: (() => void)[] = [];
    catcher.answer = (_caught, response) => void held.push(() => response.end());
    const { emulator, token } = await ready({ deliveryUrl: catcher.url, lifecycle: "instant" });
    await send(emulator, token);
    const body = { endpointUrl: `${catcher.url}/other`, signingEnabled: true };
    await call(emulator, "PATCH", "/api/core/webhooks/delivery", { token, body });
    await expect.poll(() => held.length).toBe(1);
    catcher.answer = 200;
    held[0]?.();
    await emulator.clock.idle();
    expect(catcher.caught.map(({ path }) => path)).toEqual(["/webhooks", "/webhooks", "/webhooks"]);
  });
});
