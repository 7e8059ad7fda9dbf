/** Cases of the adapter contract about requests and answers: methods, headers, connections, and what an answer may say. */
import { StoreError } from "../errors.ts";
import { memoryStore } from "../stores/memory.ts";
import {
  type Bench,
  CONTRACT_SECRET,
  type ContractCase,
  deliveryBytes,
  eventBody,
  signatureOf,
  WEBHOOK_PATH,
} from "./adapter-contract-bench.ts";
import { type HeaderLines, requestBytes, type WireAnswer } from "./adapter-contract-wire.ts";

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

/** JSON, with a true length, for no cache, and without a word of the request or of the code. */
function expectHarmless({ expect }: Bench, answer: WireAnswer, secretWords: readonly string[]): void {
  expect(answer.headers["content-type"]?.startsWith("application/json"), answer.headers["content-type"]).toBe(true);
  expect(typeof JSON.parse(answer.body)).toBe("object");
  expect(answer.body.length < 100, answer.body).toBe(true);
  const text = JSON.stringify(answer);
  for (const word of [...secretWords, "at ", "Error", "node_modules", CONTRACT_SECRET])
    expect(text.includes(word), word).toBe(false);
}

const methodCases: readonly ContractCase[] = [
  {
    name: "answers 405 with Allow to every other method",
    async run(bench) {
      for (const method of ["GET", "DELETE", "PATCH", "OPTIONS"]) {
        const answer = await bench.deliver({ method });
        bench
          .expect([answer.status, answer.headers.allow, JSON.parse(answer.body)], method)
          .toEqual([405, "POST, PUT", { error: "method_not_allowed" }]);
      }
      bench.expect(bench.handled.length).toBe(0);
    },
  },
  {
    name: "answers HEAD with 405 and no body",
    async run(bench) {
      const connection = await bench.connect();
      connection.send(requestBytes({ method: "HEAD", path: WEBHOOK_PATH }));
      bench.expect((await connection.answer({ bodyless: true })).status).toBe(405);
      connection.finish();
      bench.expect(await connection.ended()).toBe("end");
    },
  },
  {
    name: "takes PUT as it takes POST",
    async run(bench) {
      bench.expect((await bench.deliver({ method: "PUT" })).status).toBe(200);
      bench.expect(bench.handled.length).toBe(1);
    },
  },
  {
    name: "takes a path with a query",
    async run(bench) {
      bench.expect((await bench.deliver({ path: `${WEBHOOK_PATH}?tenant=a&x=%00` })).status).toBe(200);
    },
  },
  {
    name: "leaves a sibling JSON route unharmed",
    async run(bench) {
      const connection = await bench.connect();
      const headers = [["Content-Type", "application/json"]] as const;
      const sibling = (body: string) => {
        connection.send(requestBytes({ path: "/json", headers, body: Buffer.from(body) }));
        return connection.answer();
      };
      const parsed = await sibling('{ "a": [1, "é"] }');
      bench.expect([parsed.status, JSON.parse(parsed.body)]).toEqual([200, { a: [1, "é"] }]);
      bench.expect((await sibling('{"a":')).status).toBe(400);
    },
  },
];

const signatureCases: readonly ContractCase[] = [
  {
    name: "accepts what openssl signed, and refuses it with any one bit flipped (RCV-1, RCV-2)",
    async run(bench) {
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
    },
  },
  {
    name: "reads header names in any case (RCV-2)",
    async run(bench) {
      for (const written of [(name: string) => name.toUpperCase(), (name: string) => name.toLowerCase()]) {
        const body = eventBody();
        const signature = signatureOf(body, bench.clock).map(([name, value]) => [written(name), value] as const);
        bench.expect((await bench.deliver({ body, signature })).status).toBe(200);
      }
    },
  },
  {
    name: "refuses two timestamps, in either order (RCV-2)",
    async run(bench) {
      const body = eventBody();
      const valid = signatureOf(body, bench.clock);
      const other = ["x-service-timestamp", `${bench.clock.now() - 1}`] as const;
      bench.expect((await bench.deliver({ body, signature: [other, ...valid] })).status).toBe(401);
      bench.expect((await bench.deliver({ body, signature: [...valid, other] })).status).toBe(401);
      bench.expect(bench.handled.length).toBe(0);
    },
  },
  {
    name: "takes a repeated signature header for a list of candidates (RCV-2)",
    async run(bench) {
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
    },
  },
  {
    name: "refuses an unsigned request before its body is sent (RCV-2)",
    async run(bench) {
      const connection = await bench.connect();
      connection.send(requestBytes({ path: WEBHOOK_PATH, headers: [["Content-Length", "50"]] }));
      const answer = await connection.answer();
      bench.expect([answer.status, answer.body]).toEqual([401, '{"error":"unauthorized"}']);
    },
  },
];

const connectionCases: readonly ContractCase[] = [
  {
    name: "keeps the connection after an answer to a body that was read",
    async run(bench) {
      const connection = await bench.connect();
      const statuses: number[] = [];
      for (const signed of [undefined, Buffer.from("other"), undefined]) {
        connection.send(deliveryBytes(signed === undefined ? {} : { signed }, bench.clock));
        statuses.push((await connection.answer()).status);
      }
      bench.expect(statuses).toEqual([200, 401, 200]);
    },
  },
  {
    name: "answers pipelined requests in their order",
    async run(bench) {
      const connection = await bench.connect();
      const first = deliveryBytes({}, bench.clock);
      const second = deliveryBytes({ signed: Buffer.from("other") }, bench.clock);
      connection.send(Buffer.concat([first, second, deliveryBytes({}, bench.clock)]));
      const statuses = [await connection.answer(), await connection.answer(), await connection.answer()];
      bench.expect(statuses.map(({ status }) => status)).toEqual([200, 401, 200]);
    },
  },
  {
    name: `answers ${PARALLEL} requests at once`,
    async run(bench) {
      const answers = await Promise.all(Array.from({ length: PARALLEL }, () => bench.deliver()));
      bench.expect(answers.filter(({ status }) => status === 200).length).toBe(PARALLEL);
      bench.expect(bench.handled.length).toBe(PARALLEL);
    },
  },
  {
    name: "serves a sender that expects 100-continue",
    async run(bench) {
      const connection = await bench.connect();
      const body = eventBody();
      const bytes = deliveryBytes({ body, headers: [["Expect", "100-continue"]] }, bench.clock);
      connection.send(bytes.subarray(0, bytes.length - body.length));
      bench.expect((await connection.answer()).status).toBe(100);
      connection.send(body);
      bench.expect((await connection.answer()).status).toBe(200);
    },
  },
  {
    name: "survives a sender that is gone before its answer",
    async run(bench) {
      const connection = await bench.connect();
      connection.send(deliveryBytes({}, bench.clock));
      await bench.readingBegan;
      connection.abort();
      bench.expect((await bench.deliver()).status).toBe(200);
    },
  },
];

const contentCases: readonly ContractCase[] = [
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
  {
    name: "says in no answer what was sent, which check failed or where the code is",
    async run(bench) {
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
    },
  },
];

export const answerCases: readonly ContractCase[] = [
  ...methodCases,
  ...signatureCases,
  ...connectionCases,
  ...contentCases,
];
