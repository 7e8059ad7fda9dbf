/** Cases of the adapter contract about bodies: the exact bytes reach the receiver, or the sender learns that they did not. */
import {
  type Bench,
  type ContractCase,
  deliveryBytes,
  eventBody,
  signatureOf,
  WEBHOOK_PATH,
} from "./adapter-contract-bench.ts";
import { requestBytes, type WireAnswer } from "./adapter-contract-wire.ts";

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

/** With the signature over the exact bytes, a 200 says that exactly these bytes arrived. */
async function accepts(bench: Bench, body: Buffer, chunks?: readonly Uint8Array[]): Promise<void> {
  const answer = await bench.deliver(chunks === undefined ? { body } : { body, chunks });
  bench.expect(answer.status, answer.body).toBe(200);
}

function bytewise(body: Uint8Array): Uint8Array[] {
  return Array.from(body, (_byte, index) => body.subarray(index, index + 1));
}

function refusal(answer: WireAnswer): unknown {
  return [answer.status, JSON.parse(answer.body)];
}

export const bodyCases: readonly ContractCase[] = [
  {
    name: "hands on the exact bytes, whatever the Content-Type (RCV-1)",
    async run(bench) {
      for (const type of CONTENT_TYPES) {
        const body = eventBody("häl😀lo & +1=2%20 --x");
        const answer = await bench.deliver({ body, headers: type === undefined ? [] : [["Content-Type", type]] });
        bench.expect(answer.status, `${type}`).toBe(200);
        bench.expect(bench.handled.at(-1)?.equals(body), `${type}`).toBe(true);
      }
    },
  },
  {
    name: "hands on a chunked body (RCV-1)",
    async run(bench) {
      const body = eventBody("chunked");
      await accepts(bench, body, [body.subarray(0, 10), body.subarray(10, 90), body.subarray(90)]);
      bench.expect(bench.handled.length).toBe(1);
    },
  },
  {
    name: "hands on chunks that are split inside a character (RCV-1)",
    async run(bench) {
      const body = eventBody("😀é漢");
      await accepts(bench, body, bytewise(body));
      bench.expect(bench.handled.at(-1)?.equals(body)).toBe(true);
    },
  },
  {
    name: "hands on a body that arrives in several packets (RCV-1)",
    async run(bench) {
      const connection = await bench.connect();
      const bytes = deliveryBytes({ body: eventBody("in parts") }, bench.clock);
      connection.send(bytes.subarray(0, -40));
      await bench.readingBegan;
      connection.send(bytes.subarray(-40));
      bench.expect((await connection.answer()).status).toBe(200);
    },
  },
  {
    name: "hands on a byte order mark and bytes that are no UTF-8, which the receiver keeps (RCV-1, RCV-4)",
    async run(bench) {
      await accepts(bench, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), eventBody()]));
      await accepts(bench, Buffer.from([0xff, 0xfe, 0x00, 0x80]));
      bench.expect(bench.handled.length).toBe(0);
    },
  },
  {
    name: "refuses other bytes that decode to the same text (RCV-1)",
    async run(bench) {
      const body = Buffer.from([0x22, 0xff, 0x22]);
      const answer = await bench.deliver({ body, signed: Buffer.from([0x22, 0xfe, 0x22]) });
      bench.expect(refusal(answer)).toEqual([401, { error: "unauthorized" }]);
    },
  },
  {
    name: "hands on an empty body, with and without a Content-Length (RCV-1)",
    async run(bench) {
      await accepts(bench, Buffer.alloc(0));
      await accepts(bench, Buffer.alloc(0), []);
      const connection = await bench.connect();
      connection.send(requestBytes({ path: WEBHOOK_PATH, headers: signatureOf(Buffer.alloc(0), bench.clock) }));
      bench.expect((await connection.answer()).status).toBe(200);
    },
  },
  {
    name: "takes a body of exactly the limit",
    async run(bench) {
      const body = Buffer.concat([eventBody(), Buffer.alloc(LIMIT_BYTES, " ")]).subarray(0, LIMIT_BYTES);
      await accepts(bench, body);
      await accepts(bench, body, [body.subarray(0, 65_536), body.subarray(65_536)]);
      bench.expect(bench.handled.at(0)?.length).toBe(LIMIT_BYTES);
    },
  },
  {
    name: "answers 413 to a declared length over the limit before the body is sent, and ends cleanly",
    async run(bench) {
      const connection = await bench.connect();
      const headers = [...signatureOf(Buffer.alloc(0), bench.clock), ["Content-Length", `${LIMIT_BYTES + 1}`] as const];
      connection.send(requestBytes({ path: WEBHOOK_PATH, headers }));
      bench.expect(refusal(await connection.answer())).toEqual([413, { error: "body_too_large" }]);
      connection.finish();
      bench.expect(await connection.ended()).toBe("end");
    },
  },
  {
    name: "tells the sender that the connection ends with each refusal that leaves a body unread",
    async run(bench) {
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
      // A proxy that keeps connections would otherwise send the next delivery behind what is left of the body.
      await accepts(bench, eventBody("next"));
    },
  },
  {
    name: "lets the sender of a large body read its 413",
    async run(bench) {
      const answer = await bench.deliver({ body: Buffer.alloc(LIMIT_BYTES + 10_000, "x") });
      bench.expect(refusal(answer)).toEqual([413, { error: "body_too_large" }]);
    },
  },
  {
    name: "answers 413 to a chunked body over the limit",
    async run(bench) {
      const chunks = Array.from({ length: 9 }, () => Buffer.alloc(32_768, "x"));
      const answer = await bench.deliver({ chunks });
      bench.expect(refusal(answer)).toEqual([413, { error: "body_too_large" }]);
    },
  },
  {
    name: "answers 415 to a compressed body",
    async run(bench) {
      const answer = await bench.deliver({
        headers: [
          ["Content-Encoding", "gzip"],
          ["Content-Type", "application/json"],
        ],
      });
      bench.expect(refusal(answer)).toEqual([415, { error: "unsupported_content_encoding" }]);
    },
  },
  {
    name: "takes nothing of a body that is aborted, and serves the next request (RCV-3)",
    async run(bench) {
      const connection = await bench.connect();
      connection.send(deliveryBytes({ body: eventBody("aborted") }, bench.clock).subarray(0, -5));
      await bench.readingBegan;
      connection.abort();
      await accepts(bench, eventBody("next"));
      bench.expect(bench.handled.length).toBe(1);
    },
  },
  {
    name: "takes nothing of a body that ends short of its Content-Length (RCV-3)",
    async run(bench) {
      const connection = await bench.connect();
      // All of an event's bytes, and a signature that fits them: only the length tells that something is missing.
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
    },
  },
  {
    name: "cuts a body that comes too slowly, and answers 503",
    async run(bench) {
      const connection = await bench.connect();
      connection.send(deliveryBytes({ body: eventBody("slow") }, bench.clock).subarray(0, -5));
      await bench.readingBegan;
      await bench.clock.advance(11_000);
      const answer = await connection.answer();
      bench.expect(answer.status).toBe(503);
      bench.expect(bench.handled.length).toBe(0);
    },
  },
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
    name: "takes the bytes that the application kept (RCV-1)",
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
