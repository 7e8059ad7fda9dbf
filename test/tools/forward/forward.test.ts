/** Forwarding itself, with engines of a few lines: what they are given, and what counts as acknowledged. */
import { createHash } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, eventIdentity, parseEvent } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { stripe } from "../../../src/sources/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { type ForwardedMessage, forward, type Publish, type Publisher } from "../../../src/tools/forward/index.ts";
import { fixtures, incomingOf, signedRequest, TEST_SECRETS } from "../../../src/tools/testing/index.ts";
import { deferred, idleTurns, MINUTE, sqliteBench, until } from "../../receiver/bench.ts";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** An engine that acknowledges everything and keeps what it got. */
function recording(): { publish: Publish; got: ForwardedMessage[] } {
  const got: ForwardedMessage[] = [];
  return { got, publish: async (message) => void got.push(message) };
}

function forwarding(publisher: Publish | Publisher, options: Parameters<typeof sqliteBench>[0] = {}) {
  const bench = sqliteBench({ gapWait: "eager", ...options });
  const handler = forward(publisher);
  bench.receiver.onAny(handler).onLate(handler);
  return bench;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

describe("forward()", () => {
  it("publishes the exact bytes with identity, lane key and headers", async () => {
    const engine = recording();
    const { deliver, receiver } = forwarding(engine.publish);
    const body = ` ${JSON.stringify(fixtures.queued({ data: { note: "ü \\u00fc" } }))}\n`;
    await deliver(body, { headers: { traceparent: TRACE } });
    await receiver.drain();
    const [message] = engine.got;
    expect(Buffer.from(message!.body).toString()).toBe(body);
    const parsed = parseEvent(Buffer.from(body));
    expect(message!.id).toBe(parsed.ok && eventIdentity(parsed.event, Buffer.from(body)));
    expect(message!.key).toBe(sha256(JSON.stringify(["service", "apc_1", "msg_000001"])));
    expect(message!.headers).toEqual({
      "oncehook-event-type": "message.queued",
      "oncehook-source": "service",
      "oncehook-tenant": "apc_1",
      "oncehook-lane": "msg_000001",
      "oncehook-sequence": "1",
      "oncehook-attempt": "1",
      traceparent: TRACE,
    });
    expect(message).toMatchObject({ sequence: 1, source: "service", tenant: "apc_1", lane: "msg_000001", ownId: null });
  });

  it("gives all events of another source's lane one key, and each the id that handlers see", async () => {
    const engine = recording();
    const receiver = createReceiver({
      store: memoryStore({ volatile: true }),
      source: stripe({ secrets: TEST_SECRETS.stripe }),
      logger: silentLogger,
    });
    onTestFinished(() => receiver.stop());
    const identities: string[] = [];
    const handler = forward(engine.publish);
    receiver
      .onAny((_event, ctx) => void identities.push(ctx.identity))
      .onAny(handler)
      .onLate(handler);
    for (const id of ["evt_1", "evt_2"])
      await receiver.handle(incomingOf(signedRequest(fixtures.stripe({ id }), { source: "stripe" })));
    await receiver.drain();
    expect(engine.got.map(({ id }) => id)).toEqual(identities);
    expect(new Set(identities).size).toBe(2);
    expect(new Set(engine.got.map(({ key }) => key)).size).toBe(1);
    expect(engine.got.map(({ source, lane, ownId }) => [source, lane, ownId])).toEqual([
      ["stripe", expect.any(String), "evt_1"],
      ["stripe", expect.any(String), "evt_2"],
    ]);
    expect(engine.got[1]?.headers).toMatchObject({ "oncehook-source": "stripe", "oncehook-own-id": "evt_2" });
  });

  it("gives all events of a message one key, and each an id of its own (EVT-12)", async () => {
    const engine = recording();
    const { deliver, receiver } = forwarding(engine.publish);
    const others = [fixtures.queued({ messageId: "msg_2" }), fixtures.queued({ apiClientId: "apc_2" })];
    const inbound = fixtures.inbound({ messageId: "msg_000001" });
    for (const event of [fixtures.queued(), fixtures.sent(), ...others, inbound]) await deliver(JSON.stringify(event));
    await receiver.drain();
    const { got } = engine;
    expect(new Set(got.map(({ id }) => id)).size).toBe(5);
    expect(new Set(got.map(({ key }) => key)).size).toBe(4);
    const own = got.filter(({ lane }) => lane === "msg_000001");
    expect(own.filter(({ tenant }) => tenant === "apc_1").map(({ sequence }) => sequence)).toEqual([1, 2]);
  });

  it("writes an event type from outside as printable ASCII", async () => {
    const engine = recording();
    const { deliver, receiver } = forwarding(engine.publish);
    await deliver(JSON.stringify(fixtures.unknown({ eventType: "a b\r\nx-evil: 1%é" })));
    await receiver.drain();
    expect(engine.got[0]?.headers["oncehook-event-type"]).toBe("a%20b%0D%0Ax-evil:%201%25%C3%A9");
  });

  it("says what is late, replayed and missing (RCV-7)", async () => {
    const engine = recording();
    const { deliver, receiver } = forwarding(engine.publish);
    await deliver(JSON.stringify(fixtures.delivery()));
    await receiver.drain();
    await deliver(JSON.stringify(fixtures.sent()));
    await receiver.drain();
    const lane = await receiver.inbox.lane({
      source: "service",
      tenant: "apc_1",
      name: "msg_000001",
      order: "sequence",
    });
    const sent = lane?.events.find(({ sequence }) => sequence === 2);
    await receiver.inbox.replay(sent!.id, { by: "test" });
    await receiver.drain();
    const said = engine.got.map(({ headers }) => [
      headers["oncehook-sequence"],
      headers["oncehook-missing"],
      headers["oncehook-late"],
      headers["oncehook-replay"],
    ]);
    expect(said).toEqual([
      ["3", "1-2", undefined, undefined],
      ["2", undefined, "true", undefined],
      ["2", undefined, "true", "true"],
    ]);
    expect(engine.got[2]?.id).toBe(engine.got[1]?.id);
  });

  it("completes an event only when the engine has acknowledged it (RCV-3)", async () => {
    const acknowledged = deferred();
    const { deliver, receiver } = forwarding(() => acknowledged.promise);
    await deliver(JSON.stringify(fixtures.queued()));
    const drained = receiver.drain();
    await idleTurns();
    const counted = async () => {
      const { gauges, counters } = await receiver.inbox.stats();
      return [gauges.pending, counters.handled];
    };
    expect(await counted()).toEqual([1, 0]);
    acknowledged.resolve();
    await drained;
    expect(await counted()).toEqual([0, 1]);
  });

  it("tries again with the same id what the engine refused, and lets the message's next event wait (RCV-7)", async () => {
    const got: string[][] = [];
    let isDown = true;
    const publish: Publish = async ({ id, sequence, headers }) => {
      got.push([id, `${sequence}`, headers["oncehook-attempt"] ?? ""]);
      if (isDown) throw new Error("The engine is down.");
    };
    const { deliver, receiver, clock } = forwarding(publish);
    for (const event of [fixtures.queued(), fixtures.sent()]) await deliver(JSON.stringify(event));
    await receiver.drain();
    isDown = false;
    await clock.advance(MINUTE);
    await receiver.drain();
    const numbers = got.map(([, sequence, attempt]) => [sequence, attempt]);
    expect(numbers).toEqual([
      ["1", "1"],
      ["1", "2"],
      ["2", "1"],
    ]);
    expect(got[1]?.[0]).toBe(got[0]?.[0]);
  });

  it("gives up an engine that never answers when the handler's time is over, and tries again", async () => {
    const signals: AbortSignal[] = [];
    const publish: Publish = ({ signal }) => {
      signals.push(signal);
      return signals.length === 1 ? new Promise(() => {}) : Promise.resolve();
    };
    const { deliver, receiver, clock } = forwarding(publish, { handlerTimeoutMs: 5_000 });
    await receiver.start();
    await deliver(JSON.stringify(fixtures.queued()));
    await until(() => signals.length === 1);
    await clock.advance(5_000);
    expect(signals[0]?.aborted).toBe(true);
    await until(async () => {
      await clock.advance(1_000);
      return signals.length === 2;
    });
    await until(async () => (await receiver.inbox.stats()).gauges.pending === 0);
  });

  it("is not deceived by a function that returns nothing to wait for", async () => {
    const publish = (() => true) as unknown as Publish;
    const { deliver, receiver } = forwarding(publish);
    await deliver(JSON.stringify(fixtures.queued()));
    await receiver.drain();
    const lane = await receiver.inbox.lane({
      source: "service",
      tenant: "apc_1",
      name: "msg_000001",
      order: "sequence",
    });
    const [event] = lane?.events ?? [];
    expect(event?.state).toBe("pending");
    expect(event?.error).toContain("must return a promise");
  });

  it.each([undefined, null, "url", {}, { publish: 1 }])("refuses %j for a publisher", (value) => {
    expect(() => forward(value as unknown as Publish)).toThrow(/publisher.*must be a function/);
  });
});

describe("forward() with an engine that can be checked", () => {
  it("looks at it once, before the first message, and logs each weakness once", async () => {
    const calls: string[] = [];
    const publisher: Publisher = {
      publish: async () => void calls.push("publish"),
      check: async () => {
        calls.push("check");
        return ["It is weak."];
      },
    };
    const { deliver, receiver, log } = forwarding(publisher);
    for (const event of [fixtures.queued(), fixtures.sent()]) await deliver(JSON.stringify(event));
    await receiver.drain();
    expect(calls).toEqual(["check", "publish", "publish"]);
    const warnings = log.filter(({ fields }) => fields.code === "engine_setup");
    expect(warnings.map(({ message }) => message)).toEqual(["It is weak."]);
  });

  it("looks again after a failed check and after a failed message", async () => {
    const calls: string[] = [];
    const failing = new Set(["check 1", "publish 1"]);
    const counted = (what: string) => {
      const name = `${what} ${calls.filter((call) => call.startsWith(what)).length + 1}`;
      calls.push(name);
      if (failing.has(name)) throw new Error(name);
    };
    const { deliver, receiver, clock, log } = forwarding({
      publish: async () => counted("publish"),
      check: async () => {
        counted("check");
        return ["It is weak."];
      },
    });
    await deliver(JSON.stringify(fixtures.queued()));
    for (let round = 0; round < 3; round++) {
      await receiver.drain();
      await clock.advance(MINUTE);
    }
    expect(calls).toEqual(["check 1", "check 2", "publish 1", "check 3", "publish 2"]);
    expect(log.filter(({ fields }) => fields.code === "engine_setup")).toHaveLength(1);
  });

  it("is not held up for ever by a check that never ends", async () => {
    let checks = 0;
    const engine = recording();
    const check = () => (++checks === 1 ? new Promise<never>(() => {}) : Promise.resolve([]));
    const { deliver, receiver, clock } = forwarding({ ...engine, check }, { handlerTimeoutMs: 5_000 });
    await receiver.start();
    await deliver(JSON.stringify(fixtures.queued()));
    await until(() => checks === 1);
    await until(async () => {
      await clock.advance(1_000);
      return engine.got.length === 1;
    });
    expect(checks).toBe(2);
  });
});
