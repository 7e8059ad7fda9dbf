import express from "express";
import Fastify from "fastify";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { expressWebhook } from "../../../adapters/express.ts";
import { fastifyWebhook } from "../../../adapters/fastify.ts";
import { createReceiver, PermanentError, SetupError, verifySignature } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import {
  createFakeClock,
  deliver,
  fixtures,
  incomingOf,
  lifecycle,
  type SignedRequest,
  signedRequest,
  TEST_SECRET,
  tampered,
} from "../../../src/tools/testing/index.ts";

function receiverWith(onDelivery: () => unknown) {
  const store = memoryStore({ volatile: true });
  return createReceiver({ secrets: TEST_SECRET, store, logger: silentLogger }).on("message.delivery", onDelivery);
}

describe("an unknown option", () => {
  it.each<[string, () => unknown]>([
    ["fixtures.queued()", () => fixtures.queued({ mesageId: "m" } as never)],
    ["fixtures.sent()", () => fixtures.sent({ eventType: "x" } as never)],
    ["fixtures.delivery()", () => fixtures.delivery({ status: "sent" } as never)],
    ["fixtures.failed()", () => fixtures.failed({ error: {} } as never)],
    ["fixtures.inbound()", () => fixtures.inbound({ sequence: 1 } as never)],
    ["fixtures.unknown()", () => fixtures.unknown({ type: "message.read" } as never)],
    ["fixtures.queued()", () => lifecycle({ messageID: "m" } as never)],
    ["signedRequest()", () => signedRequest("{}", { secrets: "s" } as never)],
  ])("is refused by %s", (name, make) => {
    expect(make).toThrow(SetupError);
    expect(make).toThrow(`${name} has no option`);
  });

  it("is refused by deliver()", async () => {
    const delivering = deliver(
      receiverWith(() => {}),
      fixtures.delivery(),
      { timeout: 5 } as never,
    );
    await expect(delivering).rejects.toThrow('deliver() has no option "timeout". Did you mean "timeoutMs"?');
  });
});

describe("fixtures.unknown()", () => {
  it("has a place among a message's events only if the options give one (RCV-11)", () => {
    expect(fixtures.unknown({ messageId: "msg_1", sequence: 4 })).toMatchObject({ messageId: "msg_1", sequence: 4 });
    expect(Object.keys(fixtures.unknown())).toEqual(["eventType", "direction", "occurredAt", "apiClientId", "data"]);
  });
});

describe("deliver()", () => {
  it("resolves when the handler has run", async () => {
    const seen: string[] = [];
    const receiver = receiverWith(() => seen.push("delivered"));
    const { state, answer } = await deliver(receiver, fixtures.delivery({ sequence: 1 }));
    expect([state, answer.status, seen]).toEqual(["handled", 200, ["delivered"]]);
  });

  it("handles a single event of a message, and names the missing sequences", async () => {
    const missing: unknown[] = [];
    const clock = createFakeClock();
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ secrets: TEST_SECRET, store, clock, logger: silentLogger });
    receiver.on("message.delivery", (_event, ctx) => missing.push(ctx.missing));
    expect((await deliver(receiver, fixtures.delivery())).state).toBe("handled");
    expect(missing).toEqual([{ from: 1, to: 2 }]);
  });

  it("resolves with a started receiver too", async () => {
    const receiver = receiverWith(async () => {});
    await receiver.start();
    expect((await deliver(receiver, fixtures.delivery())).state).toBe("handled");
    await receiver.stop();
  });

  it("returns different states for a failing handler, a dead letter, an unhandled type, a gap and a quarantined body", async () => {
    const failing = receiverWith(() => {
      throw new Error("no");
    });
    expect((await deliver(failing, fixtures.delivery())).state).toBe("retrying");
    const hopeless = receiverWith(() => {
      throw new PermanentError("never");
    });
    expect((await deliver(hopeless, fixtures.delivery())).state).toBe("dead");
    const receiver = receiverWith(() => {});
    expect((await deliver(receiver, fixtures.inbound())).state).toBe("unhandled");
    expect((await deliver(receiver, fixtures.unknown())).state).toBe("unhandled");
    const alone = await deliver(receiver, fixtures.delivery({ messageId: "alone" }), { gaps: "wait" });
    expect(alone.state).toBe("waiting");
    expect(await deliver(receiver, "{}")).toMatchObject({ state: "quarantined", record: null });
  });

  it("returns that an event was filtered, with its row if its lane has an order", async () => {
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ secrets: TEST_SECRET, store, filter: () => false }).onAny(() => {});
    const ordered = await deliver(receiver, fixtures.delivery());
    expect(ordered).toMatchObject({ state: "filtered", record: { outcome: "filtered", hasBody: false } });
    expect(await deliver(receiver, fixtures.inbound())).toMatchObject({ state: "filtered", record: null });
  });

  it("returns the stored event", async () => {
    const receiver = receiverWith(() => {});
    const { record } = await deliver(receiver, fixtures.delivery({ sequence: 1, messageId: "msg_9" }));
    expect(record).toMatchObject({ lane: { name: "msg_9", order: "sequence" }, attempts: 1, state: "done" });
  });

  it("says that an event was not handled in time, or not stored at all", async () => {
    const paused = receiverWith(() => {});
    paused.pause();
    await paused.start();
    await expect(deliver(paused, fixtures.delivery(), { timeoutMs: 1 })).rejects.toThrow("not settled within 1 ms");
    await paused.stop();
    const store = memoryStore({ volatile: true });
    const step: typeof store.step = (turn) =>
      turn.accepts.length > 0 ? Promise.reject(new Error("no disk")) : store.step(turn);
    const full = createReceiver({ secrets: TEST_SECRET, store: { ...store, step }, logger: silentLogger });
    full.onAny(() => {});
    await expect(deliver(full, fixtures.delivery())).rejects.toThrow(/not stored; the receiver answered 503/);
  });

  it("names the fix for a wrong secret", async () => {
    const receiver = receiverWith(() => {});
    const delivered = deliver(receiver, fixtures.delivery(), { secret: "another secret of 16 bytes" });
    await expect(delivered).rejects.toThrow(/answered 401.*TEST_SECRET/);
  });
});

describe("signedRequest()", () => {
  it("makes a request that passes verification, and tampered() one that does not (RCV-1)", () => {
    const request = signedRequest(fixtures.inbound());
    expect(verifySignature({ headers: request.headers, body: request.body, secrets: TEST_SECRET })).toMatchObject({
      ok: true,
    });
    for (let bit = 0; bit < request.body.byteLength * 8; bit++) {
      const { headers, body } = tampered(request, bit);
      const result = verifySignature({ headers, body, secrets: TEST_SECRET });
      expect(result).toEqual({ ok: false, code: "signature_mismatch" });
    }
  });

  it("uses bytes as they are", () => {
    const bytes = Uint8Array.of(0xff, 0, 0x7b);
    expect(signedRequest(bytes).body).toEqual(Buffer.from(bytes));
    expect(incomingOf(signedRequest("text")).method).toBe("POST");
  });

  it("is sent unchanged by Fastify's inject(), also when tampered with", async () => {
    const app = Fastify();
    await app.register(fastifyWebhook, { receiver: receiverWith(() => {}), path: "/webhooks" });
    const inject = ({ method, headers, body }: SignedRequest) =>
      app.inject({ method, url: "/webhooks", headers, payload: body });
    const request = signedRequest(fixtures.inbound());
    expect((await inject(request)).statusCode).toBe(200);
    expect((await inject(tampered(request))).statusCode).toBe(401);
    expect((await inject(tampered(tampered(request)))).statusCode).toBe(200);
  });

  it("is sent unchanged by supertest, as a text", async () => {
    const app = express();
    app.all("/webhooks", expressWebhook(receiverWith(() => {})));
    const { headers, body } = signedRequest(fixtures.inbound());
    await supertest(app).post("/webhooks").set(headers).send(String(body)).expect(200);
  });
});
