/** The table of answers and the order of the checks, through `receiver.handle`. */
import { describe, expect, it } from "vitest";
import {
  type Answer,
  type BodyResult,
  type DeliveryReport,
  PermanentError,
  SetupError,
  StoreError,
} from "../../src/index.ts";
import { type Bench, makeBench, memoryBench, SECRET, sqliteBench, until, type Wish } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const LARGE = 256 * 1024;
const body = inbound();

function failing(reason: Exclude<BodyResult, { ok: true }>["reason"]): Wish {
  return { readBody: () => ({ ok: false, reason }) };
}

/** Of the deliveries from now on: what became of them and how they were answered. */
function heard<Tx>({ receiver }: Bench<Tx>): [DeliveryReport["outcome"], number][] {
  const reports: [DeliveryReport["outcome"], number][] = [];
  receiver.instrument({ delivery: () => ({ ended: ({ outcome, status }) => reports.push([outcome, status]) }) });
  return reports;
}

describe("receiver.handle(): answers", () => {
  it("answers 200 to accepted, duplicate, late, unknown and quarantined deliveries (RCV-4, RCV-11)", async () => {
    const bench = sqliteBench({ gapWait: "eager" });
    const { deliver, receiver } = bench;
    const reports = heard(bench);
    await receiver.onAny(() => {}).start();
    const outcomes = [
      await deliver(outbound("delivery")),
      await deliver(outbound("delivery")),
      await until(async () => (await receiver.inbox.stats()).counters.handled === 1),
      await deliver(outbound("queued")),
      await deliver('{"eventType":"message.new"}'),
      await deliver("not json"),
    ];
    expect(outcomes.map((answer) => answer && [answer.status, answer.body])).toEqual([
      [200, '{"outcome":"accepted"}'],
      [200, '{"outcome":"duplicate"}'],
      undefined,
      [200, '{"outcome":"late"}'],
      [200, '{"outcome":"accepted"}'],
      [200, '{"outcome":"quarantined"}'],
    ]);
    const told = ["accepted", "duplicate", "late", "accepted", "quarantined"];
    expect(reports).toEqual(told.map((outcome) => [outcome, 200]));
  });

  it("gives each refusal one fixed answer, without a reason, a payload or a stack (RCV-2)", async () => {
    const answers: Record<string, Answer> = {};
    const bench = sqliteBench();
    answers.method = await bench.deliver(body, { method: "GET" });
    answers.encoding = await bench.deliver(body, { headers: { "content-encoding": "gzip" } });
    answers.declaredTooLarge = await bench.deliver(body, { headers: { "content-length": `${LARGE + 1}` } });
    answers.noHeaders = await bench.deliver(body, { unsigned: true });
    answers.mismatch = await bench.deliver(body, { secret: "some-other-secret-of-32-bytes-xx" });
    answers.tooLarge = await bench.deliver(body, failing("too_large"));
    answers.truncated = await bench.deliver(body, failing("truncated"));
    answers.cut = await bench.deliver(body, failing("cut"));
    answers.alreadyParsed = await bench.deliver(body, failing("already_parsed"));
    bench.store.faults.step = new StoreError("store_unavailable", "The disk at /secret/place is gone.");
    answers.storeFailed = await bench.deliver(body);
    const closed = sqliteBench();
    closed.store.faults.open = new SetupError("inbox_too_new", "The inbox at /secret/place is too new.");
    answers.misconfigured = await closed.deliver(body);
    const strict = sqliteBench({ quarantine: "reject" });
    answers.rejected = await strict.deliver("not json");
    expect(answers).toMatchSnapshot();
  });

  it.each([
    ["missing signature", { headers: { "x-service-signature": undefined } }],
    ["missing timestamp", { headers: { "x-service-timestamp": undefined } }],
    ["malformed timestamp", { headers: { "x-service-timestamp": "soon" } }],
    ["two timestamps", { headers: { "x-service-timestamp": ["1760000000000", "1760000000000"] } }],
    ["malformed signature", { headers: { "x-service-signature": "zz" } }],
    ["too old", { at: 1_760_000_000_000 - 5_400_001 }],
    ["in the future", { at: 1_760_000_000_000 + 300_001 }],
    ["unsigned", { unsigned: true }],
  ] satisfies [string, Wish][])("answers %s with the one 401, body unread (RCV-2)", async (_, wish) => {
    const { deliver, store } = sqliteBench();
    const answer = await deliver(body, { ...wish, readBody: () => expect.fail("the body was read") });
    expect(answer).toMatchObject({ status: 401, body: '{"error":"unauthorized"}', close: true });
    expect(store.faults.turns).toEqual([]);
  });

  it.each([" Identity ", "identity", ""])("takes the content encoding %j", async (encoding) => {
    const { deliver } = sqliteBench();
    expect((await deliver(body, { headers: { "content-encoding": encoding } })).status).toBe(200);
  });

  it.each(["", "-1", "1e9", "12, 12", "9".repeat(16)])(
    "leaves the meaningless length %j to the reader",
    async (text) => {
      const { deliver } = sqliteBench();
      const readBody: Wish["readBody"] = (reading) => {
        expect(reading.declaredBytes).toBeNull();
        return { ok: true, bytes: Buffer.from(body) };
      };
      expect((await deliver(body, { headers: { "content-length": text }, readBody })).status).toBe(200);
    },
  );

  it("tells the reader the limit and the declared length", async () => {
    const { deliver } = memoryBench({ maxBodyBytes: 1024 });
    const readBody: Wish["readBody"] = (reading) => {
      expect([reading.maxBytes, reading.declaredBytes]).toEqual([1024, 1024]);
      return { ok: false, reason: "truncated" };
    };
    expect((await deliver(body, { headers: { "content-length": "1024" }, readBody })).status).toBe(400);
  });

  it("answers a reader that throws with 503, and frees what it held", async () => {
    const { deliver } = sqliteBench();
    const readBody: Wish["readBody"] = (reading) => {
      reading.received(1000);
      throw new Error("The socket is gone.");
    };
    for (let turn = 0; turn < 300; turn++) expect((await deliver(body, { readBody })).status).toBe(503);
    expect((await deliver(body)).status).toBe(200);
  });

  it("never rejects, even when the logger throws", async () => {
    const broken = () => {
      throw new Error("The log is full.");
    };
    const logger = { debug: broken, info: broken, warn: broken, error: broken };
    const { deliver } = makeBench(memoryBench().store, { logger });
    expect((await deliver(body, { unsigned: true })).status).toBe(401);
  });

  it("logs the fix of the host when the body was parsed before it, or a general one", async () => {
    const { deliver, log } = sqliteBench();
    await deliver(body, failing("already_parsed"));
    await deliver(body, { readBody: () => ({ ok: false, reason: "already_parsed", fix: "In Koa: …" }) });
    expect(log.map(({ level, fields }) => [level, fields.code])).toEqual(
      Array(2).fill(["error", "raw_body_unavailable"]),
    );
    expect(log.map(({ message }) => message)).toEqual([
      expect.stringMatching(/bytes are gone\. Mount the receiver before/),
      expect.stringMatching(/bytes are gone\. In Koa: …$/),
    ]);
  });
});

describe("receiver.handle(): the order of checks", () => {
  /** Each request breaks this check and all later ones; the answer tells which was first. */
  const steps: readonly [string, Wish, number][] = [
    ["method", { method: "GET" }, 405],
    ["encoding", { headers: { "content-encoding": "br" } }, 415],
    ["declared length", { headers: { "content-length": `${LARGE + 1}` } }, 413],
    ["headers", { headers: { "x-service-signature": "short" } }, 401],
    ["age", { at: 1_600_000_000_000 }, 401],
    ["read", failing("too_large"), 413],
  ];

  it.each(steps.map(([name], index) => [name, index] as const))("checks %s before what follows", async (_, index) => {
    const broken = steps.slice(index).map(([, wish]) => wish);
    const wish: Wish = Object.assign({}, ...broken.toReversed());
    const headers = Object.assign({}, ...broken.map((one) => one.headers).toReversed());
    const { deliver, receiver, store, log } = sqliteBench();
    const answer = await deliver("not json", { ...wish, headers, secret: "some-other-secret-of-32-bytes-xx" });
    expect(answer.status).toBe(steps[index]?.[2]);
    expect(Object.keys(receiver.counters)).toHaveLength(1);
    expect(log).toHaveLength(1);
    expect(store.faults.turns).toEqual([]);
  });

  it("checks the signature before it parses, and parses before it writes", async () => {
    const { deliver, receiver, store } = sqliteBench({ quarantine: "reject" });
    expect((await deliver("not json", { secret: "some-other-secret-of-32-bytes-xx" })).status).toBe(401);
    expect((await deliver("not json")).status).toBe(400);
    expect(store.faults.turns).toEqual([]);
    const refused = { "refused:signature_mismatch": 1, "refused:invalid_event": 1 };
    expect(receiver.counters).toEqual({ ...refused, "slot:service:current": 1 });
  });

  it("does not open the inbox for a request that is not verified", async () => {
    const { deliver, store } = sqliteBench();
    store.faults.open = new SetupError("inbox_too_new", "too new");
    expect((await deliver(body, { unsigned: true })).status).toBe(401);
    expect((await deliver(body, { secret: "some-other-secret-of-32-bytes-xx" })).status).toBe(401);
    expect((await deliver(body, { secret: SECRET })).status).toBe(500);
  });
});

describe("receiver.handle(): what whoever watches hears of the answers", () => {
  it("hears of an answer that waited for the handlers how they ended", async () => {
    const bench = sqliteBench({ ack: "handled" });
    const reports = heard(bench);
    bench.receiver.on("message.queued", () => {});
    bench.receiver.on("message.sent", () => {
      throw new PermanentError("There is no such order.");
    });
    await bench.deliver(outbound("queued"));
    await bench.deliver(outbound("sent"));
    expect(reports).toEqual([
      ["handled", 200],
      ["dead", 200],
    ]);
  });

  it("hears that others were refused or failed", async () => {
    const bench = memoryBench({ quarantine: "reject" });
    const reports = heard(bench);
    await bench.deliver(body, { unsigned: true });
    await bench.deliver("not json");
    await bench.deliver(body, failing("already_parsed"));
    bench.store.faults.step = new StoreError("store_unavailable", "The disk is gone.");
    await bench.deliver(body);
    expect(reports).toEqual([
      ["refused", 401],
      ["refused", 400],
      ["failed", 500],
      ["failed", 503],
    ]);
  });
});
