/** Bytes of bodies and places of deliveries are given back once, to the byte, however a request ends and wherever it fails on its way. */
import { createHmac } from "node:crypto";
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { readRequestBody } from "../../adapters/fetch.ts";
import { readNodeBody } from "../../adapters/node-io.ts";
import { type BodyReading, type BodyResult, createReceiver, type InboxStore, openInbox } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { BodyBudget, RequestVerifier, type UnverifiedWebhook } from "../../src/receiver/body-limits.ts";
import { defineSource, github } from "../../src/sources/index.ts";
import type { SourceEvents, WebhookSource } from "../../src/sources/source.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { deferred, idleTurns } from "./bench.ts";

const MIB = 1024 * 1024;
const ROOM = 64 * MIB;
const WAITING = 16 * MIB;
/** What a chunk takes besides its bytes. */
const CHUNK = 1024;
const SECRET = "a secret of github, 0123456789abcdef";
const OTHER = "another secret of github, 0123456789";
const PIECE = Buffer.from(`{"text":"${"x".repeat(40_000)}"}`);
const PIECES = 4;
const BODY = Buffer.concat([
  Buffer.from("["),
  ...Array(PIECES - 1).fill(Buffer.concat([PIECE, Buffer.from(",")])),
  PIECE,
]);
const signed = (body: Uint8Array, secret = SECRET) => ({
  "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
});

interface Held extends Pick<BodyReading, "received"> {
  release(): unknown;
}

/** Fails unless all but `held` bytes of the room are free: a body that takes them all reads on, and with one byte more it must wait. */
async function expectFree(begin: () => Held | Promise<Held>, held = 0): Promise<void> {
  const mustWait = async (bytes: number) => {
    const [oldest, filler, last] = [await begin(), await begin(), await begin()];
    filler.received(ROOM - 2 * CHUNK - 100_000 - held);
    const turn = last.received(bytes);
    for (const one of [oldest, filler, last]) await one.release();
    return turn !== undefined;
  };
  expect([await mustWait(100_000), await mustWait(100_001)]).toEqual([false, true]);
}

/** The same of the room for complete bodies that wait for secrets. */
function expectNoneWaits(budget: BodyBudget): void {
  const bodies = [WAITING - 1, 1, 1].map((bytes) => {
    const one = budget.begin(ROOM, null);
    one.received(bytes);
    one.finish();
    return one;
  });
  const answers = bodies.map((one) => {
    const waits = budget.wait(one);
    return { waits, end: () => waits && budget.waited(one) };
  });
  for (const { end } of answers) end();
  for (const one of bodies) one.release();
  expect(answers.map(({ waits }) => waits)).toEqual([true, true, false]);
}

function scene(make: () => WebhookSource<SourceEvents> = () => github({ secrets: SECRET })) {
  const clock = createFakeClock();
  const budget = new BodyBudget(clock);
  const source = make().connect("entry", { clock, logger: silentLogger });
  const verifier = new RequestVerifier(source, clock, budget);
  const verify = (incoming: Partial<UnverifiedWebhook>) => {
    const readBody = (reading: BodyReading): BodyResult => {
      reading.received(BODY.length);
      return { ok: true, bytes: BODY };
    };
    return verifier.verify({ headers: signed(BODY), readBody, ...incoming }, { isRead: false });
  };
  const isWhole = async (held = 0) => {
    await expectFree(() => budget.begin(2 * ROOM, null), held);
    expectNoneWaits(budget);
  };
  return { clock, budget, source, verify, isWhole };
}

/** A body that comes piece by piece, as a host passes it on. */
interface Sender {
  send(piece: Uint8Array): unknown;
  end(): unknown;
  fail(): unknown;
  stop(): unknown;
  readBody(reading: BodyReading): Promise<BodyResult> | BodyResult;
}

const SENDERS: Readonly<Record<string, () => Sender>> = {
  "a Node stream": () => {
    const stream = new PassThrough();
    stream.on("error", () => {});
    return {
      send: (piece) => stream.destroyed || stream.write(piece),
      end: () => stream.end(),
      fail: () => stream.destroy(new Error("the sender is gone")),
      stop: () => stream.destroy(),
      readBody: (reading) => readNodeBody(stream, {}, reading),
    };
  },
  "a fetch request": () => {
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start(given) {
        controller = given;
      },
    });
    const request = new Request("http://localhost/", { method: "POST", body, duplex: "half" } as RequestInit);
    let isOver = false;
    const last = (act: () => unknown) => () => {
      isOver = true;
      act();
    };
    return {
      send: (piece) => isOver || controller.enqueue(piece),
      end: last(() => controller.close()),
      fail: last(() => controller.error(new Error("the sender is gone"))),
      stop: last(() => controller.error(new Error("the host has stopped"))),
      readBody: (reading) => readRequestBody(request, reading),
    };
  },
};

type Ending = (sender: Sender, all: ReturnType<typeof scene>) => unknown;
const ENDINGS: readonly (readonly [what: string, reason: string, end: Ending])[] = [
  ["fails", "truncated", (sender) => sender.fail()],
  ["stops", "truncated", (sender) => sender.stop()],
  ["ends before its length", "truncated", (sender) => sender.end()],
  ["is too slow", "cut", (_sender, { clock }) => clock.advance(11_000)],
  ["is too large", "too_large", (sender) => sender.send(Buffer.alloc(MIB + 1))],
];

describe.each(Object.entries(SENDERS))("the bytes of %s", (_, make) => {
  it.each(ENDINGS)("are given back when it %s, after any number of pieces", async (_what, reason, end) => {
    for (let pieces = 0; pieces < PIECES; pieces++) {
      const all = scene(() => github({ secrets: SECRET, maxBodyBytes: MIB }));
      const sender = make();
      const headers = { ...signed(BODY), "content-length": `${BODY.length}` };
      const verified = all.verify({ headers, readBody: (reading) => sender.readBody(reading) });
      for (let piece = 0; piece < pieces; piece++) {
        sender.send(PIECE);
        await idleTurns(3);
      }
      await all.isWhole(pieces * (PIECE.length + CHUNK));
      await end(sender, all);
      expect(await verified).toMatchObject({ ok: false, reason });
      await all.isWhole();
      sender.send(PIECE);
      await idleTurns(3);
      await all.isWhole();
    }
  });

  it("are held until it is released, without what its pieces took, and given back once", async () => {
    const all = scene();
    const sender = make();
    const verified = all.verify({ readBody: (reading) => sender.readBody(reading) });
    for (let at = 0; at < BODY.length; at += 50_000) sender.send(BODY.subarray(at, at + 50_000));
    sender.end();
    const result = await verified;
    if (!result.ok) throw new Error(result.reason);
    await all.isWhole(BODY.length);
    for (let time = 0; time < 3; time++) {
      result.reading.release();
      await all.isWhole();
    }
  });
});

describe("the bytes of a complete body", () => {
  /** Secrets that are read one after the other; the last one again and again. A function is called. */
  const provided = (...secrets: readonly (string | (() => Promise<string>))[]) => {
    let reads = 0;
    return github({
      secrets: async () => {
        const next = secrets[Math.min(reads++, secrets.length - 1)];
        return typeof next === "function" ? next() : next;
      },
    });
  };
  type Reader = UnverifiedWebhook["readBody"];
  const down = () => Promise.reject(new Error("the vault is sealed"));
  const never = () => new Promise<never>(() => {});
  const broken = defineSource({
    ...{ preset: "acme", lastRetryMs: 0, place: () => ({ type: "a", id: "" }) },
    parse: () => ({ ok: false, code: "never" }),
    verify: () => {
      throw new TypeError("a bug");
    },
  });
  /** Secrets were read before the request comes: only others, which are read after it, can say no. */
  const readBefore = async (make: () => WebhookSource<SourceEvents>) => {
    const all = scene(make);
    await all.source.keyrings.read({});
    await all.clock.advance(1);
    return all;
  };
  const endOf = (verified: ReturnType<ReturnType<typeof scene>["verify"]>) =>
    verified.then(
      (result) => {
        if (!result.ok) return result.reason;
        result.reading.release();
        return "ok";
      },
      (error: { code?: string; name: string }) => error.code ?? error.name,
    );

  it.each<readonly [string, string, WebhookSource<SourceEvents>, Reader | null]>([
    ["matches", "ok", github({ secrets: SECRET }), null],
    ["matches what a function returns", "ok", provided(SECRET), null],
    ["matches no secret", "signature_mismatch", github({ secrets: OTHER }), null],
    ["comes while secrets cannot be read", "keyring_unavailable", provided(down), null],
    ["meets a bug of its source", "source_failed", broken({ secrets: SECRET }), null],
    [
      "cannot be read by a host that throws",
      "Error",
      provided(SECRET),
      (reading) => {
        reading.received(5_000);
        throw new Error("no");
      },
    ],
    [
      "cannot be read by a host that rejects",
      "Error",
      provided(SECRET),
      async (reading) => {
        reading.received(5_000);
        return down();
      },
    ],
  ])("are given back when it %s", async (_, end, source, readBody) => {
    const all = scene(() => source);
    const ended = await endOf(all.verify(readBody === null ? {} : { readBody }));
    expect(ended).toBe(end);
    await all.isWhole();
  });

  it.each<readonly [string, string, WebhookSource<SourceEvents>, number | "stop"]>([
    ["matches a fresher secret", "ok", provided(OTHER, SECRET), 2_000],
    ["matches no fresher secret", "signature_mismatch", provided(OTHER), 2_000],
    ["waits for secrets that cannot be read", "keyring_unavailable", provided(OTHER, down), 2_000],
    ["waits for secrets in vain", "keyring_unavailable", provided(OTHER, never), 9_000],
    ["waits for secrets while its receiver is stopped", "keyring_unavailable", provided(OTHER, never), "stop"],
  ])("are given back when it %s", async (_, end, source, wait) => {
    const all = await readBefore(() => source);
    const ended = endOf(all.verify({}));
    await idleTurns();
    await expectFree(() => all.budget.begin(2 * ROOM, null), BODY.length);
    if (wait === "stop") all.source.keyrings.close();
    else await all.clock.advance(wait);
    expect(await ended).toBe(end);
    await all.isWhole();
  });

  it("are refused where those that wait hold all, and what waits then is the same", async () => {
    const all = await readBefore(() => provided(OTHER, SECRET));
    const waiting = all.budget.begin(ROOM, null);
    waiting.received(WAITING);
    waiting.finish();
    expect(all.budget.wait(waiting)).toBe(true);
    await expect(all.verify({})).rejects.toThrow("Too many requests wait");
    // The secrets are read all the same.
    await all.clock.advance(3_000);
    all.budget.waited(waiting);
    waiting.release();
    await all.isWhole();
  });

  it("count once where its reader reports another piece while it waits for secrets", async () => {
    const all = await readBefore(() => provided(OTHER, SECRET));
    let reading!: BodyReading;
    const ended = endOf(
      all.verify({
        readBody(given) {
          reading = given;
          given.received(BODY.length);
          return { ok: true, bytes: BODY };
        },
      }),
    );
    await idleTurns();
    reading.received(5_000);
    await all.clock.advance(2_000);
    expect(await ended).toBe("ok");
    await all.isWhole();
  });
});

describe("the places of a receiver", () => {
  const MOST = 256;

  type Call = "open" | "admit" | "step";

  /** A receiver of one source, on a durable store that passes call number `nth` of `call` to `meet`. */
  function receiving(
    call: Call,
    nth: number,
    meet: (work: () => Promise<unknown>, stop: () => void) => Promise<unknown>,
  ) {
    const volatile: InboxStore<never> = memoryStore({ volatile: true });
    const inner = { ...volatile, capabilities: { ...volatile.capabilities, durable: true } };
    const work = inner[call] as (...given: readonly unknown[]) => Promise<unknown>;
    let [calls, gate] = [0, Promise.resolve()];
    const stop = () => void receiver.stop();
    const meeting = (...given: readonly unknown[]) =>
      ++calls === nth ? meet(() => work(...given), stop) : work(...given);
    const store = { ...inner, [call]: meeting } as InboxStore<never>;
    const step: typeof store.step = (turn) => gate.then(() => store.step(turn));
    const source = github({ secrets: SECRET });
    const receiver = createReceiver({ store: { ...store, step }, source, logger: silentLogger });
    receiver.onAny(() => {});
    onTestFinished(() => receiver.stop());
    const deliver = async (text: string) => {
      const bytes = Buffer.from(text);
      const readBody = (reading: BodyReading): BodyResult => {
        reading.received(bytes.length);
        return { ok: true, bytes };
      };
      return (await receiver.handle({ method: "POST", headers: signed(bytes), readBody })).status;
    };
    /** A body in progress, until it is released. */
    const begin = async (): Promise<Held> => {
      const [reading, result] = [deferred<BodyReading>(), deferred<BodyResult>()];
      const readBody = (given: BodyReading) => {
        reading.resolve(given);
        return result.promise;
      };
      const answer = receiver.handle({ method: "POST", headers: signed(BODY), readBody });
      const release = () => {
        result.resolve({ ok: false, reason: "truncated" });
        return answer;
      };
      const given = await reading.promise;
      return { received: (bytes) => given.received(bytes), release };
    };
    const hold = (until: Promise<void>) => {
      gate = until;
    };
    return { receiver, inner, deliver, begin, hold, isMet: () => calls >= nth };
  }

  const CALLS: readonly (readonly [Call, number])[] = [
    ["open", 1],
    ["admit", 1],
    ["step", 1],
    ["step", 2],
    ["step", 3],
  ];

  it.each(CALLS)("and its bytes are all there after %s failed, call %i", async (call, nth) => {
    const { deliver, begin, hold, isMet } = receiving(call, nth, () =>
      Promise.reject(new Error("the disk is on fire")),
    );
    const statuses: number[] = [];
    for (const text of ["{}", "[]", '{"a":1}', "not json", "{}"]) statuses.push(await deliver(text));
    expect([isMet(), statuses.filter((status) => status === 503).length]).toEqual([true, 1]);
    await expectFree(begin);
    const gate = deferred();
    hold(gate.promise);
    const held = Array.from({ length: MOST }, (_, index) => deliver(`{"n":${index}}`));
    await idleTurns();
    expect(await deliver('{"n":"one more"}')).toBe(503);
    gate.resolve();
    expect(await Promise.all(held)).toEqual(Array(MOST).fill(200));
  });

  it.each(CALLS)(
    "hold nothing that is answered with 200 and not stored when it is stopped at %s, call %i",
    async (call, nth) => {
      const { receiver, inner, deliver, isMet } = receiving(call, nth, (work, stop) => {
        stop();
        return work();
      });
      const texts = Array.from({ length: 6 }, (_, index) => `{"n":${index}}`);
      const statuses: number[] = [];
      for (const text of texts) statuses.push(await deliver(text));
      await receiver.stop();
      expect(isMet()).toBe(true);
      const inbox = await openInbox({ store: inner });
      const { items } = await inbox.find({ order: "oldest" });
      const bodies = await inbox.bodies(items.map(({ id }) => id));
      const stored = [...bodies.values()].map(({ raw }) => Buffer.from(raw).toString());
      await inbox.close();
      expect(new Set([200, 503, ...statuses])).toEqual(new Set([200, 503]));
      expect(stored).toEqual(texts.filter((_, index) => statuses[index] === 200));
    },
  );
});
