/** Bounds under load: slots, the memory of bodies, slow senders, and how much is logged. */
import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type Answer, type BodyReading, type BodyResult, createReceiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { defineSource } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { incomingOf } from "../../src/tools/testing/index.ts";
import { deferred, idleTurns, memoryBench, sqliteBench, until } from "./bench.ts";
import { inbound } from "./events.ts";

const MIB = 1024 * 1024;
const body = inbound();

/** Delivers a body that comes in chunks, by hand. */
function slowly(bench: ReturnType<typeof memoryBench>) {
  const result = deferred<BodyResult>();
  const reading = deferred<BodyReading>();
  let isCut = false;
  const answer: Promise<Answer> = bench.deliver(body, {
    readBody(given) {
      given.onCut(() => {
        isCut = true;
        result.resolve({ ok: false, reason: "cut" });
      });
      reading.resolve(given);
      return result.promise;
    },
  });
  return {
    answer,
    started: reading.promise,
    /** As an adapter that does not wait for its turn. */
    send: async (bytes: number) => void (await reading.promise).received(bytes),
    finish: () => result.resolve({ ok: true, bytes: Buffer.from(body) }),
    isCut: () => isCut,
  };
}

describe("slots", () => {
  it("are 256: the next verified body gets 503, and an unverified one its 401 (RCV-4)", async () => {
    const { deliver, store, receiver } = sqliteBench();
    await deliver(body);
    const gate = deferred();
    store.faults.gate = gate.promise;
    const held = Array.from({ length: 256 }, (_, index) => deliver(inbound({ messageId: `m ${index}` })));
    await idleTurns();
    expect((await deliver(inbound({ messageId: "one more" }))).status).toBe(503);
    expect((await deliver(body, { unsigned: true })).status).toBe(401);
    expect(receiver.counters).toEqual({
      "slot:service:current": 257,
      "refused:busy": 1,
      "refused:missing_signature": 1,
    });
    gate.resolve();
    for (const answer of await Promise.all(held)) expect(answer.status).toBe(200);
    expect((await deliver(inbound({ messageId: "one more" }))).status).toBe(200);
  });

  it("are held by no sender who is still sending", async () => {
    const bench = memoryBench();
    bench.receiver.onAny(() => {});
    const slow = Array.from({ length: 1_000 }, () => slowly(bench));
    await Promise.all(slow.map(({ started }) => started));
    expect((await bench.deliver(body)).status).toBe(200);
    for (const { finish } of slow) finish();
    const answers = await Promise.all(slow.map(({ answer }) => answer));
    // All at once they are more than the slots; who got none is told to retry.
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(5);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
  });
});

describe("the byte budget of 64 MiB", () => {
  it("cuts the unfinished body that has stalled for longest when it is full, with 503", async () => {
    const bench = memoryBench({ maxBodyBytes: MIB });
    bench.receiver.onAny(() => {});
    const stalled = slowly(bench);
    await stalled.send(MIB - 100_000);
    await bench.clock.advance(900);
    const others = Array.from({ length: 63 }, () => slowly(bench));
    for (const other of others) await other.send(MIB - 2_000);
    await bench.clock.advance(10);
    expect(stalled.isCut()).toBe(false);
    await others[0]?.send(300_000);
    expect(stalled.isCut()).toBe(true);
    expect(others.filter((other) => other.isCut())).toEqual([]);
    expect(await stalled.answer).toMatchObject({ status: 503, close: true });
    expect(bench.receiver.counters).toEqual({ "refused:cut": 1 });
    for (const other of others) other.finish();
    await Promise.all(others.map(({ answer }) => answer));
    expect((await bench.deliver(body)).status).toBe(200);
  });

  it("is freed by every ending, so that nothing leaks", async () => {
    const bench = memoryBench({ maxBodyBytes: MIB });
    bench.receiver.onAny(() => {});
    for (let round = 0; round < 200; round++) {
      const one = slowly(bench);
      await one.send(MIB);
      one.finish();
      await one.answer;
      // A chunk that an adapter reports late must not stay in the sum.
      await one.send(MIB);
    }
    const last = slowly(bench);
    await last.send(MIB);
    expect(last.isCut()).toBe(false);
    last.finish();
    expect((await last.answer).status).toBe(200);
  });

  it("never cuts a body that is complete and in work", async () => {
    const bench = memoryBench({ maxBodyBytes: MIB });
    const work = deferred();
    bench.receiver.onAny(() => work.promise);
    const first = slowly(bench);
    await first.send(MIB);
    first.finish();
    await idleTurns();
    const others = Array.from({ length: 64 }, () => slowly(bench));
    for (const other of others) await other.send(MIB);
    await bench.clock.advance(1_000);
    await others[0]?.send(1);
    expect(first.isCut()).toBe(false);
    expect(others.filter((other) => other.isCut()).length).toBeGreaterThan(0);
    work.resolve();
    for (const other of others) other.finish();
    expect((await first.answer).status).toBe(200);
  });
});

describe("slow senders", () => {
  it("are cut after 10 s, however much they send", async () => {
    const bench = memoryBench();
    const sender = slowly(bench);
    for (let second = 0; second < 10; second++) {
      await sender.send(2_000);
      await bench.clock.advance(1_000);
      expect(sender.isCut()).toBe(false);
    }
    await bench.clock.advance(500);
    expect((await sender.answer).status).toBe(503);
  });

  it("are cut also when the adapter was not yet ready to be told", async () => {
    const bench = memoryBench();
    const answer = bench.deliver(body, {
      async readBody(reading) {
        await bench.clock.advance(20_000);
        return await new Promise<BodyResult>((resolve) => {
          reading.onCut(() => resolve({ ok: false, reason: "cut" }));
        });
      },
    });
    expect((await answer).status).toBe(503);
  });

  it("leave no timer behind when all is read", async () => {
    const bench = memoryBench();
    bench.receiver.onAny(() => {});
    await bench.deliver(body);
    await bench.clock.advance(500);
    const sender = slowly(bench);
    await sender.started;
    await bench.clock.advance(11_000);
    expect((await sender.answer).status).toBe(503);
  });
});

describe("a large body", () => {
  const secrets = { current: Array.from({ length: 8 }, (_, n) => `secret ${n} of 0123456789abcdef`) };
  /** A source that notes with how many keys each body was tried, and between which turns of the event loop. */
  function watched(code = "signature_mismatch") {
    const tries: number[] = [];
    const source = defineSource({
      preset: "acme",
      maxBodyBytes: 8 * MIB,
      lastRetryMs: 0,
      verify(_head, bytes, keys) {
        tries.push(keys.length);
        const key = keys.find((each) => Buffer.from(each.hmac("sha256", "who")).equals(bytes.subarray(0, 32)));
        return key === undefined ? { ok: false, code } : { ok: true, key, signedAt: null };
      },
      parse: () => ({ ok: true, event: {} }),
      place: (_event, { digest }) => ({ type: "thing", id: digest() }),
    })({ secrets });
    const receiver = createReceiver({ source, store: memoryStore({ volatile: true }), logger: silentLogger });
    const send = (bytes: number, secret = "") => {
      const who = createHmac("sha256", secret).update("who").digest();
      const body = Buffer.concat([who, Buffer.alloc(bytes - who.length)]);
      return receiver.handle(incomingOf({ method: "POST", headers: {}, body }));
    };
    return { tries, send };
  }

  it("is tried with as many keys at a time as 2 MiB allow, and others are served in between", async () => {
    const { tries, send } = watched();
    expect((await send(MIB / 4)).status).toBe(401);
    expect(tries.splice(0)).toEqual([8]);
    expect((await send(MIB)).status).toBe(401);
    expect(tries.splice(0)).toEqual([2, 2, 2, 2]);
    const refused = send(3 * MIB);
    const seen: number[] = [];
    for (let turn = 0; turn < 4; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(tries.length);
    }
    expect(new Set(seen).size).toBe(4);
    expect((await refused).status).toBe(401);
    expect(tries).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  });

  it.each(["signature_mismatch", "wrong_token"])(
    "is accepted under the last key, after %s of the others",
    async (code) => {
      const { send } = watched(code);
      expect((await send(3 * MIB, secrets.current[7])).status).toBe(200);
      expect((await send(3 * MIB, "another")).status).toBe(401);
    },
  );
});

describe("logs of refused requests", () => {
  it("are 10 a second, and say how many were left out", async () => {
    const { deliver, log, clock, receiver } = memoryBench();
    for (let index = 0; index < 100; index++) await deliver(body, { unsigned: true });
    expect(log).toHaveLength(10);
    await clock.advance(1_000);
    await deliver(body, { unsigned: true });
    expect(log).toHaveLength(11);
    expect(log[10]?.fields).toEqual({ code: "missing_signature", status: 401, leftOut: 90 });
    expect(receiver.counters).toEqual({ "refused:missing_signature": 101 });
  });

  it("hide neither failures of the store nor each other's", async () => {
    const { deliver, codes, store } = memoryBench();
    for (let index = 0; index < 100; index++) await deliver(body, { unsigned: true });
    store.faults.open = new Error("down");
    expect((await deliver(body)).status).toBe(503);
    expect(codes().at(-1)).toBe("Error");
  });

  it("are as few when bodies come parsed, before anything is verified", async () => {
    const { deliver, log, receiver } = memoryBench();
    const readBody = () => ({ ok: false, reason: "already_parsed" }) as const;
    for (let index = 0; index < 100; index++) await deliver(body, { readBody });
    expect(log).toHaveLength(10);
    await until(() => receiver.counters["refused:already_parsed"] === 100);
  });
});
