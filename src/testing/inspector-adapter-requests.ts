/** Cases of the inspector's adapter contract about what reaches it and what it answers at once. */
import type { InspectorAnswer, InspectorRequest, JsonReading } from "../inspector/http.ts";
import { readHeader } from "../signature/headers.ts";
import type { WireConnection } from "./adapter-contract-wire.ts";
import {
  bytesOf,
  INSPECTOR_PATH,
  type InspectorBench,
  type InspectorCase,
  jsonPost,
  textAnswer,
} from "./inspector-adapter-bench.ts";

const MAX_BYTES = 1_024;
const HEADERS = {
  "content-security-policy": "default-src 'none'",
  "cache-control": "no-store",
  "x-frame-options": "DENY",
};
const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_byte, index) => index);

/** Answers with what was read: `ok {"a":1}`, `too_large`, `invalid`, `empty`. */
async function tellBody(request: InspectorRequest): Promise<InspectorAnswer> {
  const reading = await request.readJson(MAX_BYTES);
  return reading.ok ? textAnswer(200, `ok ${JSON.stringify(reading.value)}`) : textAnswer(400, reading.reason);
}

async function told({ ask }: InspectorBench, text: string | Uint8Array): Promise<string> {
  return (await ask(jsonPost(text))).body;
}

async function answersOneMore({ expect }: InspectorBench, connection: WireConnection): Promise<void> {
  connection.send(bytesOf({}));
  expect((await connection.answer()).status).toBe(200);
}

const pageCases: readonly InspectorCase[] = [
  {
    name: "tells that the connection ends with an answer that leaves a body unread",
    async run({ expect, connect }) {
      const connection = await connect();
      connection.send(bytesOf({ method: "POST", headers: [["Content-Length", "100000"]] }));
      expect((await connection.answer()).headers.connection).toBe("close");
    },
  },
  {
    name: "answers with the inspector's status, headers and text",
    make: () => () => ({ ...textAnswer(203, "päge"), headers: { ...textAnswer(203, "päge").headers, ...HEADERS } }),
    async run({ expect, ask }) {
      const { status, headers, body } = await ask();
      expect([status, body, headers["content-length"]]).toEqual([203, "päge", "5"]);
      for (const [name, value] of Object.entries(HEADERS)) expect(headers[name], name).toBe(value);
    },
  },
  {
    name: "answers with the exact bytes of a file",
    make: () => () => ({
      status: 200,
      headers: { "content-type": "application/octet-stream", "content-length": "256" },
      body: EVERY_BYTE,
    }),
    async run({ expect, connect }) {
      const connection = await connect();
      connection.send(bytesOf({ path: `${INSPECTOR_PATH}/main.js` }));
      await connection.arrived(EVERY_BYTE);
      expect((await connection.answer()).headers["content-length"]).toBe("256");
    },
  },
  {
    name: "answers that a file is as it was, without a body",
    make: () => () => ({ status: 304, headers: { etag: '"1"' }, body: "" }),
    async run({ expect, connect }) {
      const connection = await connect();
      connection.send(bytesOf({ headers: [["If-None-Match", '"1"']] }));
      const { status, headers } = await connection.answer({ bodyless: true });
      expect([status, headers.etag]).toEqual([304, '"1"']);
    },
  },
  {
    name: "hands on method, path, query and headers as they came",
    async run({ expect, ask, seen }) {
      const path = `${INSPECTOR_PATH}/api/events/7?after=%2F1&x=a+b`;
      await ask({
        path,
        headers: [
          ["X-Oncehook", "1"],
          ["Origin", "http://a.example"],
          ["Cookie", "a=b; c=d"],
        ],
      });
      const values = ["x-oncehook", "origin", "cookie", "host"].map((name) => readHeader(seen[0]?.headers ?? {}, name));
      expect([seen[0]?.method, seen[0]?.url]).toEqual(["GET", path]);
      expect(values).toEqual(["1", "http://a.example", "a=b; c=d", "127.0.0.1"]);
    },
  },
  {
    name: "hands on every method",
    async run({ expect, ask, seen }) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
        expect((await ask({ method })).status, method).toBe(200);
      expect(seen.map(({ method }) => method)).toEqual(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
    },
  },
  {
    name: "answers HEAD without a body",
    async run({ expect, connect }) {
      const connection = await connect();
      connection.send(bytesOf({ method: "HEAD" }));
      const { status, headers } = await connection.answer({ bodyless: true });
      expect([status, headers["content-length"]]).toEqual([200, "4"]);
      connection.finish();
      expect(await connection.ended()).toBe("end");
    },
  },
  {
    name: "leaves paths beside the inspector's to the application",
    async run({ expect, ask, seen }) {
      expect((await ask({ path: "/other" })).body).toBe("other");
      for (const path of ["/inspectors", "/", "/other/inspector"]) await ask({ path });
      expect(seen.length).toBe(0);
    },
  },
  {
    name: "takes the path itself, with and without a slash and a query",
    async run({ expect, ask, seen }) {
      const paths = ["", "/", "?a=b", "/?a=b"].map((rest) => `${INSPECTOR_PATH}${rest}`);
      for (const path of paths) await ask({ path });
      expect(seen.map(({ url }) => url)).toEqual(paths);
    },
  },
  {
    name: "decides nothing about a path that climbs",
    make: () => () => textAnswer(404, "no such file"),
    async run({ expect, ask, seen }) {
      for (const rest of ["/../package.json", "/%2e%2e/package.json", "/..%2fpackage.json", "//etc/passwd", "/%00"]) {
        const { status } = await ask({ path: `${INSPECTOR_PATH}${rest}` });
        expect(status, rest).toBe(404);
      }
      expect(seen.every(({ url }) => url.startsWith(`${INSPECTOR_PATH}/`))).toBe(true);
    },
  },
];

const bodyCases: readonly InspectorCase[] = (["raw", "parsed", "captured"] as const).map((bodyState) => ({
  name: `reads JSON whose body was ${bodyState === "raw" ? "left alone" : bodyState}`,
  bodyState,
  make: () => tellBody,
  async run(bench) {
    bench.expect(await told(bench, '{ "a": [1, "é😀"] }')).toBe('ok {"a":[1,"é😀"]}');
    bench.expect(await told(bench, "{}")).toBe("ok {}");
    bench.expect(await told(bench, JSON.stringify({ a: "x".repeat(MAX_BYTES) }))).toBe("too_large");
    bench
      .expect(await told(bench, JSON.stringify({ a: "x".repeat(MAX_BYTES - 8) })))
      .toBe(`ok ${JSON.stringify({ a: "x".repeat(MAX_BYTES - 8) })}`);
  },
}));

function leavingCase(): InspectorCase {
  let reading: Promise<JsonReading>;
  return {
    name: "calls a body invalid whose sender goes away",
    make() {
      let tell: (reading: JsonReading) => void = () => {};
      reading = new Promise((resolve) => {
        tell = resolve;
      });
      return async (request) => {
        tell(await request.readJson(MAX_BYTES));
        return textAnswer(200, "nobody reads this");
      };
    },
    async run({ expect, connect }) {
      const connection = await connect();
      const request = bytesOf(jsonPost('{"a":"a long text"}'));
      connection.send(request.subarray(0, request.length - 5));
      connection.finish();
      expect(await reading).toEqual({ ok: false, reason: "invalid" });
    },
  };
}

const unreadCases: readonly InspectorCase[] = [
  {
    name: "reads a chunked body",
    make: () => tellBody,
    async run({ expect, ask }) {
      const { body: _none, ...post } = jsonPost("");
      const chunks = ['{"a"', ":", "1}"].map((text) => Buffer.from(text));
      expect((await ask({ ...post, chunks })).body).toBe('ok {"a":1}');
    },
  },
  {
    name: "calls what is no JSON invalid, and nothing at all empty",
    make: () => tellBody,
    async run(bench) {
      bench.expect(await told(bench, "")).toBe("empty");
      for (const text of ['{"a":', "no", Buffer.from([0x22, 0xff, 0x22])])
        bench.expect(await told(bench, text), `${text}`).toBe("invalid");
    },
  },
  leavingCase(),
  {
    name: "answers somebody who may not before the body is sent",
    make: () => () => textAnswer(401, "unauthorized"),
    async run({ expect, connect }) {
      const connection = await connect();
      connection.send(bytesOf({ method: "POST", headers: [["Content-Length", "50"]] }));
      const { status, body } = await connection.answer();
      expect([status, body]).toEqual([401, "unauthorized"]);
    },
  },
  {
    name: "answers a body that is much too large, and the next request",
    make: () => tellBody,
    async run(bench) {
      bench.expect(await told(bench, Buffer.alloc(300_000, " "))).toBe("too_large");
      bench.expect(await told(bench, "[]")).toBe("ok []");
    },
  },
  {
    name: "keeps the connection after a body that was read",
    make: () => (request) => (request.method === "POST" ? tellBody(request) : textAnswer(200, "page")),
    async run(bench) {
      const connection = await bench.connect();
      connection.send(bytesOf(jsonPost("[1]")));
      bench.expect((await connection.answer()).body).toBe("ok [1]");
      await answersOneMore(bench, connection);
    },
  },
];

export const requestCases: readonly InspectorCase[] = [...pageCases, ...bodyCases, ...unreadCases];
