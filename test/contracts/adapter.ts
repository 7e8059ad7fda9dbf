/** The contract that every adapter keeps, as a suite: over real HTTP on loopback, with raw sockets. */
import { StoreError } from "../../src/errors.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import {
  type AdapterBench,
  type AdapterCase,
  type AdapterSuiteOptions,
  CONTRACT_SECRET,
  deliveryBytes,
  eventBody,
  type HeaderLines,
  type MakeAdapterServer,
  requestBytes,
  runCase,
  signatureOf,
  WEBHOOK_PATH,
  type WireAnswer,
} from "./adapter-bench.ts";
import { it } from "./store-bench.ts";

// Requests and answers: methods, headers, connections, and what an answer may reveal.

/** Made with `openssl dgst -sha256 -hmac`, over the timestamp, a dot and the body. */
const OPENSSL = {
  timestamp: "1760000000000",
  signature: "814571da4b61e017b4316f938b9875943f1f19bd1ee374d4c4bcc9c8bf5ee09d",
  body: '{"eventType":"message.queued","direction":"outbound","occurredAt":1760000000000,"apiClientId":"client_openssl","messageId":"msg_openssl","sequence":1,"data":{"messageId":"msg_openssl","externalReference":"order-1","sendFrom":"+15550000001","to":"+15550000002","status":"QUEUED","error":null}}',
};

const PARALLEL = 64;

function headerValue(lines: HeaderLines, name: string): string {
  return lines.find(([key]) => key.toLowerCase() === name)?.[1] ?? "";
}

function storeThatFails() {
  const fails = () => Promise.reject(new StoreError("store_unavailable", "The disk is gone."));
  return { ...memoryStore({ volatile: true }), step: fails };
}

/** A short JSON answer that reveals nothing of the request or of the code. */
function expectHarmless({ expect }: AdapterBench, answer: WireAnswer, secretWords: readonly string[]): void {
  expect(answer.headers["content-type"]?.startsWith("application/json"), answer.headers["content-type"]).toBe(true);
  expect(typeof JSON.parse(answer.body)).toBe("object");
  expect(answer.body.length < 100, answer.body).toBe(true);
  const text = JSON.stringify(answer);
  for (const word of [...secretWords, "at ", "Error", "node_modules", CONTRACT_SECRET])
    expect(text.includes(word), word).toBe(false);
}

const methodCases: readonly AdapterCase[] = [
  it("answers 405 with Allow to every other method", async (bench) => {
    for (const method of ["GET", "DELETE", "PATCH", "OPTIONS"]) {
      const answer = await bench.deliver({ method });
      bench
        .expect([answer.status, answer.headers.allow, JSON.parse(answer.body)], method)
        .toEqual([405, "POST, PUT", { error: "method_not_allowed" }]);
    }
    bench.expect(bench.handled.length).toBe(0);
  }),
  it("answers HEAD with 405 and no body", async (bench) => {
    const connection = await bench.connect(requestBytes({ method: "HEAD", path: WEBHOOK_PATH }));
    bench.expect((await connection.answer({ bodyless: true })).status).toBe(405);
    connection.finish();
    bench.expect(await connection.ended()).toBe("end");
  }),
  it("accepts PUT like POST", async (bench) => {
    bench.expect((await bench.deliver({ method: "PUT" })).status).toBe(200);
    bench.expect(bench.handled.length).toBe(1);
  }),
  it("accepts a path with a query", async (bench) => {
    bench.expect((await bench.deliver({ path: `${WEBHOOK_PATH}?tenant=a&x=%00` })).status).toBe(200);
  }),
  it("does not affect a sibling JSON route", async (bench) => {
    const connection = await bench.connect();
    const headers = [["Content-Type", "application/json"]] as const;
    const sibling = (body: string) => {
      connection.send(requestBytes({ path: "/json", headers, body: Buffer.from(body) }));
      return connection.answer();
    };
    const parsed = await sibling('{ "a": [1, "é"] }');
    bench.expect([parsed.status, JSON.parse(parsed.body)]).toEqual([200, { a: [1, "é"] }]);
    bench.expect((await sibling('{"a":')).status).toBe(400);
  }),
];

const signatureCases: readonly AdapterCase[] = [
  it("accepts what openssl signed, and refuses it with any one bit flipped (RCV-1, RCV-2)", async (bench) => {
    const signature: HeaderLines = [
      ["X-Service-Timestamp", OPENSSL.timestamp],
      ["X-Service-Signature", OPENSSL.signature],
    ];
    const body = Buffer.from(OPENSSL.body);
    for (const at of [0, 100, body.length - 1]) {
      const altered = Buffer.from(body);
      altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
      bench.expect((await bench.deliver({ body: altered, signature })).status, `bit in byte ${at}`).toBe(401);
    }
    bench.expect((await bench.deliver({ body, signature })).status).toBe(200);
    bench.expect(bench.handled.length).toBe(1);
  }),
  it("reads header names in any case (RCV-2)", async (bench) => {
    for (const written of [(name: string) => name.toUpperCase(), (name: string) => name.toLowerCase()]) {
      const body = eventBody();
      const signature = signatureOf(body, bench.clock).map(([name, value]) => [written(name), value] as const);
      bench.expect((await bench.deliver({ body, signature })).status).toBe(200);
    }
  }),
  it("refuses two timestamps, in either order (RCV-2)", async (bench) => {
    const body = eventBody();
    const valid = signatureOf(body, bench.clock);
    const other = ["x-service-timestamp", `${bench.clock.now() - 1}`] as const;
    bench.expect((await bench.deliver({ body, signature: [other, ...valid] })).status).toBe(401);
    bench.expect((await bench.deliver({ body, signature: [...valid, other] })).status).toBe(401);
    bench.expect(bench.handled.length).toBe(0);
  }),
  it("treats a repeated signature header as a list of candidates (RCV-2)", async (bench) => {
    const wrong = ["X-SERVICE-SIGNATURE", "0".repeat(64)] as const;
    for (const first of [true, false]) {
      const body = eventBody();
      const valid = signatureOf(body, bench.clock);
      const signature = first ? [wrong, ...valid] : [...valid, wrong];
      bench.expect((await bench.deliver({ body, signature })).status).toBe(200);
    }
    bench
      .expect((await bench.deliver({ signature: [wrong, wrong, ["X-Service-Timestamp", OPENSSL.timestamp]] })).status)
      .toBe(401);
  }),
  it("refuses an unsigned request before its body is sent (RCV-2)", async (bench) => {
    const connection = await bench.connect(requestBytes({ path: WEBHOOK_PATH, headers: [["Content-Length", "50"]] }));
    const answer = await connection.answer();
    bench.expect([answer.status, answer.body]).toEqual([401, '{"error":"unauthorized"}']);
  }),
];

const connectionCases: readonly AdapterCase[] = [
  it("keeps the connection after an answer to a body that was read", async (bench) => {
    const connection = await bench.connect();
    const statuses: number[] = [];
    for (const signed of [undefined, Buffer.from("other"), undefined]) {
      connection.send(deliveryBytes(signed === undefined ? {} : { signed }, bench.clock));
      statuses.push((await connection.answer()).status);
    }
    bench.expect(statuses).toEqual([200, 401, 200]);
  }),
  it("answers pipelined requests in their order", async (bench) => {
    const connection = await bench.connect();
    const first = deliveryBytes({}, bench.clock);
    const second = deliveryBytes({ signed: Buffer.from("other") }, bench.clock);
    connection.send(Buffer.concat([first, second, deliveryBytes({}, bench.clock)]));
    const statuses = [await connection.answer(), await connection.answer(), await connection.answer()];
    bench.expect(statuses.map(({ status }) => status)).toEqual([200, 401, 200]);
  }),
  it(`answers ${PARALLEL} requests at once`, async (bench) => {
    const answers = await Promise.all(Array.from({ length: PARALLEL }, () => bench.deliver()));
    bench.expect(answers.filter(({ status }) => status === 200).length).toBe(PARALLEL);
    bench.expect(bench.handled.length).toBe(PARALLEL);
  }),
  it("serves a sender that expects 100-continue", async (bench) => {
    const connection = await bench.connect();
    const body = eventBody();
    const bytes = deliveryBytes({ body, headers: [["Expect", "100-continue"]] }, bench.clock);
    connection.send(bytes.subarray(0, bytes.length - body.length));
    bench.expect((await connection.answer()).status).toBe(100);
    connection.send(body);
    bench.expect((await connection.answer()).status).toBe(200);
  }),
  it("survives a sender that leaves before its answer", async (bench) => {
    const connection = await bench.connect(deliveryBytes({}, bench.clock));
    await bench.readingBegan;
    connection.abort();
    bench.expect((await bench.deliver()).status).toBe(200);
  }),
];

const contentCases: readonly AdapterCase[] = [
  {
    name: "answers 503 with Retry-After while the store fails (RCV-3, RCV-4)",
    store: storeThatFails,
    async run(bench) {
      const answer = await bench.deliver();
      bench.expect([answer.status, JSON.parse(answer.body)]).toEqual([503, { error: "unavailable" }]);
      bench.expect(Number(answer.headers["retry-after"]) > 0).toBe(true);
      expectHarmless(bench, answer, ["disk"]);
    },
  },
  it("does not reveal in an answer what was sent, which check failed or where the code is", async (bench) => {
    const word = "unmistakable";
    const body = eventBody(word);
    const valid = signatureOf(body, bench.clock);
    const old: HeaderLines = [
      ["X-Service-Timestamp", "1600000000000"],
      ["X-Service-Signature", headerValue(valid, "x-service-signature")],
    ];
    const requests = [
      { body },
      { body, signed: Buffer.from("other") },
      { body, signature: [] },
      { body, signature: old },
    ];
    const answers: WireAnswer[] = [];
    for (const request of requests) answers.push(await bench.deliver(request));
    for (const answer of answers) expectHarmless(bench, answer, [word, "msg_", "+1555"]);
    bench.expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 401]);
    bench.expect(new Set(answers.slice(1).map((answer) => answer.body)).size).toBe(1);
  }),
];

const answerCases: readonly AdapterCase[] = [...methodCases, ...signatureCases, ...connectionCases, ...contentCases];

// Bodies: the exact bytes reach the receiver, or the sender learns that they did not.

const LIMIT_BYTES = 262_144;

const CONTENT_TYPES: readonly (string | undefined)[] = [
  "application/json",
  "application/json; charset=utf-8",
  "application/json; charset=utf-16le",
  "text/plain",
  "text/plain; charset=latin1",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/octet-stream",
  "application/vnd.service+json",
  "no media type at all;;",
  undefined,
];

/** The signature covers the exact bytes, so a 200 proves that exactly these bytes arrived. */
async function accepts(bench: AdapterBench, body: Buffer, chunks?: readonly Uint8Array[]): Promise<void> {
  const answer = await bench.deliver(chunks === undefined ? { body } : { body, chunks });
  bench.expect(answer.status, answer.body).toBe(200);
}

function bytewise(body: Uint8Array): Uint8Array[] {
  return Array.from(body, (_byte, index) => body.subarray(index, index + 1));
}

function refusal(answer: WireAnswer): unknown {
  return [answer.status, JSON.parse(answer.body)];
}

const bodyCases: readonly AdapterCase[] = [
  it("passes on the exact bytes, whatever the Content-Type (RCV-1)", async (bench) => {
    for (const type of CONTENT_TYPES) {
      const body = eventBody("häl😀lo & +1=2%20 --x");
      const answer = await bench.deliver({ body, headers: type === undefined ? [] : [["Content-Type", type]] });
      bench.expect(answer.status, `${type}`).toBe(200);
      bench.expect(bench.handled.at(-1)?.equals(body), `${type}`).toBe(true);
    }
  }),
  it("passes on a chunked body (RCV-1)", async (bench) => {
    const body = eventBody("chunked");
    await accepts(bench, body, [body.subarray(0, 10), body.subarray(10, 90), body.subarray(90)]);
    bench.expect(bench.handled.length).toBe(1);
  }),
  it("passes on chunks that are split inside a character (RCV-1)", async (bench) => {
    const body = eventBody("😀é漢");
    await accepts(bench, body, bytewise(body));
    bench.expect(bench.handled.at(-1)?.equals(body)).toBe(true);
  }),
  it("passes on a body that arrives in several packets (RCV-1)", async (bench) => {
    const connection = await bench.connect();
    const bytes = deliveryBytes({ body: eventBody("in parts") }, bench.clock);
    connection.send(bytes.subarray(0, -40));
    await bench.readingBegan;
    connection.send(bytes.subarray(-40));
    bench.expect((await connection.answer()).status).toBe(200);
  }),
  it("passes on a byte order mark and bytes that are not UTF-8, which the receiver keeps (RCV-1, RCV-4)", async (bench) => {
    await accepts(bench, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), eventBody()]));
    await accepts(bench, Buffer.from([0xff, 0xfe, 0x00, 0x80]));
    bench.expect(bench.handled.length).toBe(0);
  }),
  it("refuses other bytes that decode to the same text (RCV-1)", async (bench) => {
    const body = Buffer.from([0x22, 0xff, 0x22]);
    const answer = await bench.deliver({ body, signed: Buffer.from([0x22, 0xfe, 0x22]) });
    bench.expect(refusal(answer)).toEqual([401, { error: "unauthorized" }]);
  }),
  it("passes on an empty body, with and without a Content-Length (RCV-1)", async (bench) => {
    await accepts(bench, Buffer.alloc(0));
    await accepts(bench, Buffer.alloc(0), []);
    const connection = await bench.connect(
      requestBytes({ path: WEBHOOK_PATH, headers: signatureOf(Buffer.alloc(0), bench.clock) }),
    );
    bench.expect((await connection.answer()).status).toBe(200);
  }),
  it("accepts a body of exactly the limit", async (bench) => {
    const body = Buffer.concat([eventBody(), Buffer.alloc(LIMIT_BYTES, " ")]).subarray(0, LIMIT_BYTES);
    await accepts(bench, body);
    await accepts(bench, body, [body.subarray(0, 65_536), body.subarray(65_536)]);
    bench.expect(bench.handled.at(0)?.length).toBe(LIMIT_BYTES);
  }),
  it("answers 413 to a declared length over the limit before the body is sent, and ends cleanly", async (bench) => {
    const connection = await bench.connect();
    const headers = [...signatureOf(Buffer.alloc(0), bench.clock), ["Content-Length", `${LIMIT_BYTES + 1}`] as const];
    connection.send(requestBytes({ path: WEBHOOK_PATH, headers }));
    bench.expect(refusal(await connection.answer())).toEqual([413, { error: "body_too_large" }]);
    connection.finish();
    bench.expect(await connection.ended()).toBe("end");
  }),
  it("sends Connection: close with each refusal that leaves a body unread", async (bench) => {
    const large = Array.from({ length: 32 }, () => Buffer.alloc(32_768, "x"));
    const unread = [
      { chunks: large, signed: Buffer.from("other") },
      { chunks: large, signature: [] },
      { body: Buffer.alloc(LIMIT_BYTES + 1) },
      { headers: [["Content-Encoding", "gzip"]] },
      { method: "PATCH" },
    ] as const;
    const answers = [];
    for (const delivery of unread) answers.push(await bench.deliver(delivery));
    bench
      .expect(answers.map(({ status, headers }) => [status, headers.connection]))
      .toEqual([413, 401, 413, 415, 405].map((status) => [status, "close"]));
    // Otherwise a proxy that keeps connections would send the next delivery behind the rest of the body.
    await accepts(bench, eventBody("next"));
  }),
  it("lets the sender of a large body read its 413", async (bench) => {
    const answer = await bench.deliver({ body: Buffer.alloc(LIMIT_BYTES + 10_000, "x") });
    bench.expect(refusal(answer)).toEqual([413, { error: "body_too_large" }]);
  }),
  it("answers 413 to a chunked body over the limit", async (bench) => {
    const chunks = Array.from({ length: 9 }, () => Buffer.alloc(32_768, "x"));
    const answer = await bench.deliver({ chunks });
    bench.expect(refusal(answer)).toEqual([413, { error: "body_too_large" }]);
  }),
  it("answers 415 to a compressed body", async (bench) => {
    const answer = await bench.deliver({
      headers: [
        ["Content-Encoding", "gzip"],
        ["Content-Type", "application/json"],
      ],
    });
    bench.expect(refusal(answer)).toEqual([415, { error: "unsupported_content_encoding" }]);
  }),
  it("ignores an aborted body, and serves the next request (RCV-3)", async (bench) => {
    const connection = await bench.connect(deliveryBytes({ body: eventBody("aborted") }, bench.clock).subarray(0, -5));
    await bench.readingBegan;
    connection.abort();
    await accepts(bench, eventBody("next"));
    bench.expect(bench.handled.length).toBe(1);
  }),
  it("ignores a body that is shorter than its Content-Length (RCV-3)", async (bench) => {
    const connection = await bench.connect();
    // A whole event with a valid signature: only the length shows that a byte is missing.
    const body = eventBody("short");
    const headers = [...signatureOf(body, bench.clock), ["Content-Length", `${body.length + 1}`] as const];
    connection.send(Buffer.concat([requestBytes({ path: WEBHOOK_PATH, headers }), body]));
    await bench.readingBegan;
    connection.finish();
    const status = await connection.answer().then(
      (answer) => answer.status,
      () => "no answer",
    );
    bench.expect(status === 400 || status === "no answer", `${status}`).toBe(true);
    bench.expect(bench.handled.length).toBe(0);
  }),
  it("stops reading a body that arrives too slowly, and answers 503", async (bench) => {
    const connection = await bench.connect(deliveryBytes({ body: eventBody("slow") }, bench.clock).subarray(0, -5));
    await bench.readingBegan;
    await bench.clock.advance(11_000);
    const answer = await connection.answer();
    bench.expect(answer.status).toBe(503);
    bench.expect(bench.handled.length).toBe(0);
  }),
  {
    name: "answers 500 when the application parsed the body and kept no bytes",
    bodyState: "parsed",
    async run(bench) {
      const answer = await bench.deliver({ headers: [["Content-Type", "application/json"]] });
      bench.expect(refusal(answer)).toEqual([500, { error: "raw_body_unavailable" }]);
      bench.expect(bench.handled.length).toBe(0);
    },
  },
  {
    name: "uses the bytes that the application kept (RCV-1)",
    bodyState: "captured",
    async run(bench) {
      const body = eventBody("kept é");
      const headers = [["Content-Type", "application/json"]] as const;
      bench.expect((await bench.deliver({ body, headers })).status).toBe(200);
      bench.expect(bench.handled.at(-1)?.equals(body)).toBe(true);
      const forged = await bench.deliver({ body: eventBody(), signed: body, headers });
      bench.expect(forged.status).toBe(401);
    },
  },
];

export type AdapterContractOptions = AdapterSuiteOptions<MakeAdapterServer>;

/**
 * Registers the cases that every adapter must pass. The suite knows no framework: `makeServer` supplies it.
 *
 * @returns how many cases were registered
 * @example
 * adapterContract({ test, expect, makeServer: async ({ receiver }) => serve(createServer(nodeWebhook(receiver))) });
 */
export function adapterContract({
  test,
  expect,
  makeServer,
  bodyStates = ["raw", "parsed", "captured"],
}: AdapterContractOptions): number {
  const cases = [...bodyCases, ...answerCases].filter(({ bodyState = "raw" }) => bodyStates.includes(bodyState));
  for (const one of cases) test(one.name, () => runCase(one, makeServer, expect));
  return cases.length;
}
