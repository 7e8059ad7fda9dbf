/** The contract that every adapter of the inspector keeps, as a suite: over real HTTP on loopback, with raw sockets. */

import { readHeader } from "../../src/sources/headers.ts";
import type { InspectorAnswer, InspectorRequest, JsonReading } from "../../src/tools/inspector/http.ts";
import {
  type AdapterSuiteOptions,
  bytesOf,
  INSPECTOR_PATH,
  type InspectorBench,
  type InspectorCase,
  jsonPost,
  type MakeInspectorServer,
  runInspectorCase,
  textAnswer,
  type WireConnection,
} from "./adapter-bench.ts";
import { it } from "./store-bench.ts";

// Requests that reach the inspector, and answers without a stream.

const MAX_BYTES = 1_024;
const HEADERS = {
  "content-security-policy": "default-src 'none'",
  "cache-control": "no-store",
  "x-frame-options": "DENY",
};
const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_byte, index) => index);

/** Answers with the result of reading the body: `ok {"a":1}`, `too_large`, `invalid`, `empty`. */
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
  it("sends Connection: close with an answer that leaves a body unread", async ({ expect, connect }) => {
    const connection = await connect(bytesOf({ method: "POST", headers: [["Content-Length", "100000"]] }));
    expect((await connection.answer()).headers.connection).toBe("close");
  }),
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
      const connection = await connect(bytesOf({ path: `${INSPECTOR_PATH}/main.js` }));
      await connection.arrived(EVERY_BYTE);
      expect((await connection.answer()).headers["content-length"]).toBe("256");
    },
  },
  {
    name: "answers 304 for an unchanged file, without a body",
    make: () => () => ({ status: 304, headers: { etag: '"1"' }, body: "" }),
    async run({ expect, connect }) {
      const connection = await connect(bytesOf({ headers: [["If-None-Match", '"1"']] }));
      const { status, headers } = await connection.answer({ bodyless: true });
      expect([status, headers.etag]).toEqual([304, '"1"']);
    },
  },
  it("passes on method, path, query and headers unchanged", async ({ expect, ask, seen }) => {
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
  }),
  it("passes on every method", async ({ expect, ask, seen }) => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
      expect((await ask({ method })).status, method).toBe(200);
    expect(seen.map(({ method }) => method)).toEqual(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
  }),
  it("answers HEAD without a body", async ({ expect, connect }) => {
    const connection = await connect(bytesOf({ method: "HEAD" }));
    const { status, headers } = await connection.answer({ bodyless: true });
    expect([status, headers["content-length"]]).toEqual([200, "4"]);
    connection.finish();
    expect(await connection.ended()).toBe("end");
  }),
  it("leaves paths outside the inspector's to the application", async ({ expect, ask, seen }) => {
    expect((await ask({ path: "/other" })).body).toBe("other");
    for (const path of ["/inspectors", "/", "/other/inspector"]) await ask({ path });
    expect(seen.length).toBe(0);
  }),
  it("serves the path itself, with and without a slash and a query", async ({ expect, ask, seen }) => {
    const paths = ["", "/", "?a=b", "/?a=b"].map((rest) => `${INSPECTOR_PATH}${rest}`);
    for (const path of paths) await ask({ path });
    expect(seen.map(({ url }) => url)).toEqual(paths);
  }),
  {
    name: "passes on a path with dot segments without deciding about it",
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
    name: "reports a body whose sender leaves as invalid",
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

const oddBodyCases: readonly InspectorCase[] = [
  it("reads a chunked body", async ({ expect, ask }: InspectorBench) => {
    const { body: _none, ...post } = jsonPost("");
    const chunks = ['{"a"', ":", "1}"].map((text) => Buffer.from(text));
    expect((await ask({ ...post, chunks })).body).toBe('ok {"a":1}');
  }),
  it("reports a body that is not JSON as invalid, and an empty one as empty", async (bench: InspectorBench) => {
    bench.expect(await told(bench, "")).toBe("empty");
    for (const text of ['{"a":', "no", Buffer.from([0x22, 0xff, 0x22])])
      bench.expect(await told(bench, text), `${text}`).toBe("invalid");
  }),
  it("answers a body that is much too large, and the next request", async (bench: InspectorBench) => {
    bench.expect(await told(bench, Buffer.alloc(300_000, " "))).toBe("too_large");
    bench.expect(await told(bench, "[]")).toBe("ok []");
  }),
].map((one) => ({ ...one, make: () => tellBody }));

const unreadCases: readonly InspectorCase[] = [
  leavingCase(),
  {
    name: "answers an unauthorized client before the body is sent",
    make: () => () => textAnswer(401, "unauthorized"),
    async run({ expect, connect }) {
      const connection = await connect(bytesOf({ method: "POST", headers: [["Content-Length", "50"]] }));
      const { status, body } = await connection.answer();
      expect([status, body]).toEqual([401, "unauthorized"]);
    },
  },
  {
    name: "keeps the connection after a body that was read",
    make: () => (request) => (request.method === "POST" ? tellBody(request) : textAnswer(200, "page")),
    async run(bench) {
      const connection = await bench.connect(bytesOf(jsonPost("[1]")));
      bench.expect((await connection.answer()).body).toBe("ok [1]");
      await answersOneMore(bench, connection);
    },
  },
];

const requestCases: readonly InspectorCase[] = [...pageCases, ...bodyCases, ...oddBodyCases, ...unreadCases];

// Streams, and clients that go away.

const LINES = { "content-type": "application/x-ndjson", "cache-control": "no-store" };
const CHUNK = `data: ${"x".repeat(64 * 1_024)}\n\n`;
/** The most chunks that sockets and frameworks may buffer while nobody reads. */
const MOST_BUFFERED_CHUNKS = 400;

/** A stream that counts its chunks and reports its end. */
class Watched implements AsyncIterable<string> {
  made = 0;
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  readonly #next: (made: number) => Promise<IteratorResult<string, undefined>>;

  constructor(next: (made: number) => Promise<IteratorResult<string, undefined>>) {
    this.#next = next;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  answer(): InspectorAnswer {
    return { status: 200, headers: LINES, body: this };
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return {
      next: () => {
        this.made += 1;
        return this.#next(this.made);
      },
      return: async () => {
        this.#end();
        return { done: true, value: undefined };
      },
    };
  }
}

const chunk = (value: string) => Promise.resolve({ done: false as const, value });
const end = () => Promise.resolve({ done: true as const, value: undefined });
const never = () => new Promise<never>(() => {});

/** A case with a stream of its own for each run. */
function streamCase(
  name: string,
  next: (made: number) => Promise<IteratorResult<string, undefined>>,
  run: (bench: Parameters<InspectorCase["run"]>[0], stream: Watched) => Promise<void>,
): InspectorCase {
  let stream = new Watched(next);
  return {
    name,
    make() {
      stream = new Watched(next);
      return () => stream.answer();
    },
    run: (bench) => run(bench, stream),
  };
}

/** Resolves when the inspector learns that the client has left. */
function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal === undefined || signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

const streamCases: readonly InspectorCase[] = [
  streamCase(
    "sends a stream to its end",
    (made) => (made <= 3 ? chunk(`${made} é\n`) : end()),
    async ({ expect, ask }) => {
      const { status, headers, body } = await ask();
      expect([status, headers["content-type"], body]).toEqual([200, "application/x-ndjson", "1 é\n2 é\n3 é\n"]);
    },
  ),
  streamCase(
    "sends the headers before the first chunk, and ends the stream if the client leaves then",
    never,
    async ({ connect, seen }, stream) => {
      const connection = await connect(bytesOf({}));
      await connection.arrived("application/x-ndjson");
      connection.abort();
      await Promise.all([stream.ended, aborted(seen[0]?.signal)]);
    },
  ),
  streamCase(
    "sends each chunk at once, and ends the stream when the client leaves",
    (made) => (made === 1 ? chunk("data: first\n\n") : never()),
    async ({ connect, seen }, stream) => {
      const connection = await connect(bytesOf({}));
      await connection.arrived("data: first\n\n");
      connection.close();
      await Promise.all([stream.ended, aborted(seen[0]?.signal)]);
    },
  ),
  streamCase(
    "produces no more chunks than the client reads",
    () => new Promise((resolve) => setImmediate(() => resolve({ done: false, value: CHUNK }))),
    async ({ expect, connect, ask }, stream) => {
      const connection = await connect();
      connection.pause();
      connection.send(bytesOf({}));
      let before = -1;
      // Other requests meanwhile give a stream that does not wait enough time to go on.
      while (stream.made !== before && stream.made < MOST_BUFFERED_CHUNKS) {
        before = stream.made;
        for (let i = 0; i < 20; i++) await ask({ path: "/other" });
      }
      expect(stream.made < MOST_BUFFERED_CHUNKS, `${stream.made} chunks`).toBe(true);
      connection.abort();
      await stream.ended;
    },
  ),
  streamCase(
    "breaks the connection when the stream fails, so that no client takes it as complete",
    (made) => (made === 1 ? chunk("data: first\n\n") : Promise.reject(new Error("the disk is gone"))),
    async ({ expect, connect, ask }) => {
      const connection = await connect(bytesOf({}));
      const answer = await connection.answer().catch(() => "broken off");
      expect(answer).toBe("broken off");
      expect((await ask({ path: "/other" })).status).toBe(200);
    },
  ),
  streamCase("does not begin a stream for HEAD", never, async ({ expect, ask }, stream) => {
    const { status, headers } = await ask({ method: "HEAD" });
    await stream.ended;
    expect([status, headers["content-type"], stream.made]).toEqual([200, "application/x-ndjson", 0]);
  }),
  {
    name: "tells the inspector when the client leaves before the answer",
    make: () => async (request) => {
      if (request.method === "GET") await aborted(request.signal);
      return textAnswer(200, "answered");
    },
    async run({ expect, connect, ask, seen }) {
      const connection = await connect(bytesOf({}));
      expect((await ask({ method: "OPTIONS" })).body).toBe("answered");
      connection.abort();
      await aborted(seen.find(({ method }) => method === "GET")?.signal);
      expect((await ask({ method: "OPTIONS" })).body).toBe("answered");
    },
  },
  it("does not treat a complete answer as a client that left", async ({ expect, ask, seen }) => {
    await ask();
    await ask();
    expect(seen[0]?.signal.aborted).toBe(false);
  }),
];

export type InspectorAdapterContractOptions<Native> = AdapterSuiteOptions<MakeInspectorServer<Native>>;

/**
 * Registers the cases that every adapter of the inspector must pass. The suite knows no framework: `makeServer` supplies it.
 *
 * @returns how many cases were registered
 * @example
 * inspectorAdapterContract({ test, expect, makeServer: async ({ inspector }) => serve(createServer(nodeInspector(inspector))) });
 */
export function inspectorAdapterContract<Native>({
  test,
  expect,
  makeServer,
  bodyStates = ["raw", "parsed", "captured"],
}: InspectorAdapterContractOptions<Native>): number {
  const cases = [...requestCases, ...streamCases].filter(({ bodyState = "raw" }) => bodyStates.includes(bodyState));
  for (const one of cases) test(one.name, () => runInspectorCase(one, makeServer, expect));
  return cases.length;
}
