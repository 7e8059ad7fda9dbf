/** The inspector behind `node:http` and HTTP/2: the contract, and what is its own. */
import { once } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import { Socket } from "node:net";
import { Writable } from "node:stream";
import { setImmediate as nextRound } from "node:timers/promises";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { endStream, jsonLeft } from "../../adapters/inspector-io.ts";
import { nodeInspector } from "../../adapters/node.ts";
import { sendStream } from "../../adapters/node-inspector.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { readHeader } from "../../src/sources/headers.ts";
import type { Mountable } from "../../src/tools/inspector/index.ts";
import type { MakeInspectorServer } from "../contracts/adapter-bench.ts";
import { openSocket, requestBytes } from "../contracts/adapter-bench.ts";
import { inspectorAdapterContract } from "../contracts/inspector-adapter.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { inspectorAt } from "./inspectors.ts";
import { bytesOf, serve } from "./serving.ts";

type Prepared = IncomingMessage & { body?: unknown; rawBody?: unknown };

const makeServer: MakeInspectorServer<IncomingMessage> = ({ inspector, bodyState }) => {
  const inspect = nodeInspector(inspector);
  return serve(async (request: Prepared, response) => {
    const { pathname } = new URL(request.url ?? "", "http://a.example");
    const isIts = /^\/inspector(?:\/|\?|$)/.test(request.url ?? "");
    if (!isIts) return void response.writeHead(pathname === "/other" ? 200 : 404).end(pathname.slice(1));
    if (bodyState !== "raw" && request.method === "POST") {
      const bytes = await bytesOf(request);
      if (bodyState === "captured") request.rawBody = bytes;
      else request.body = JSON.parse(bytes.toString());
    }
    inspect(request, response);
  });
};

describe("nodeInspector()", () => {
  const count = inspectorAdapterContract({ test, expect, makeServer });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(23);
  });

  it("leaves an answer alone that something else gave first, and ends its own stream", async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const iterator: AsyncIterator<string> = {
      next: () => new Promise<never>(() => {}),
      async return() {
        end();
        return { done: true, value: undefined };
      },
    };
    const body = { [Symbol.asyncIterator]: () => iterator };
    const inspector: Mountable<IncomingMessage> = {
      path: "",
      logger: silentLogger,
      handle: async () => ({ status: 200, headers: {}, body }),
    };
    const inspect = nodeInspector(inspector);
    const server = await serve((request, response) => {
      response.writeHead(418).write("tea");
      inspect(request, response);
      setImmediate(() => response.end("pot"));
    });
    const answer = await fetch(`http://127.0.0.1:${server.port}/`);
    expect([answer.status, await answer.text()]).toEqual([418, "teapot"]);
    await ended;
    await server.close();
  });

  it("hands on each Host that was sent, so that none hides behind another", async () => {
    const { inspector, seen } = inspectorAt<IncomingMessage>("");
    const inspect = nodeInspector(inspector);
    const server = await serve((request, response) => {
      // As a middleware does where a proxy passes the Host on under another name.
      if (request.headers["x-host"] !== undefined) request.headers.host = `${request.headers["x-host"]}`;
      inspect(request, response);
    });
    const hosts = [
      "Host: a.example\r\nhost: b.example",
      "Host: a.example\r\nHost: a.example",
      "Host: b.example\r\nX-Host: a.example",
      "X-Named-After: host\r\nHost: a.example",
    ];
    for (const host of hosts) {
      const connection = await openSocket(server.port);
      connection.send(Buffer.from(`GET / HTTP/1.1\r\n${host}\r\n\r\n`));
      await connection.answer();
      connection.finish();
    }
    expect(seen.map(({ headers }) => readHeader(headers, "host"))).toEqual([
      "a.example, b.example",
      "a.example",
      "a.example",
      "a.example",
    ]);
    await server.close();
  });

  it("tells of a sender who was gone before it was asked", async () => {
    const { inspector, seen } = inspectorAt<IncomingMessage>("");
    const inspect = nodeInspector(inspector);
    const gone = new Promise<void>((resolve) => {
      void serve(async (request, response) => {
        response.destroy();
        await once(response, "close");
        inspect(request, response);
        resolve();
      }).then(({ port }) => fetch(`http://127.0.0.1:${port}/`).catch(() => {}));
    });
    await gone;
    expect(seen[0]?.signal.aborted).toBe(true);
  });
});

describe("nodeInspector() on HTTP/2", () => {
  it("answers, reads JSON, sends a stream and ends it with its reader", async () => {
    const hosts = new Set<string | undefined>();
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const inspector: Mountable<IncomingMessage> = {
      path: "",
      logger: silentLogger,
      async handle({ method, url, headers, readJson, signal }) {
        hosts.add(readHeader(headers, "host"));
        if (method === "POST") {
          const reading = await readJson(100);
          return { status: 200, headers: { "content-type": "text/plain" }, body: JSON.stringify(reading) };
        }
        return { status: 200, headers: {}, body: url === "/fails" ? failing() : untilAborted(signal, end) };
      },
    };
    const inspect = nodeInspector(inspector);
    const server = createHttp2Server((request, response) =>
      inspect(request as unknown as IncomingMessage, response as unknown as ServerResponse),
    );
    const port = await listenOnLoopback(server);
    const host = `127.0.0.1:${port}`;
    const session = connect(`http://${host}`);
    const post = session.request({ ":method": "POST", ":path": "/" });
    post.end('{"a":1}');
    expect((await bytesOf(post)).toString()).toBe('{"ok":true,"value":{"a":1}}');
    const large = session.request({ ":method": "POST", ":path": "/" });
    large.end(" ".repeat(200));
    expect((await bytesOf(large)).toString()).toBe('{"ok":false,"reason":"too_large"}');
    const stream = session.request({ ":path": "/stream" });
    const [chunk] = await once(stream, "data");
    expect(`${chunk}`).toBe("first");
    stream.close();
    await ended;
    const broken = session.request({ ":path": "/fails" });
    await expect(bytesOf(broken)).rejects.toThrow();
    expect([...hosts]).toEqual([host]);
    hosts.clear();
    const doubtful = session.request({ ":method": "POST", ":path": "/", ":authority": host, host: "b.example" });
    doubtful.end("{}");
    await bytesOf(doubtful);
    expect([...hosts].map((all) => all?.split(", ").sort())).toEqual([[host, "b.example"]]);
    session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  it("tells of a sender who was gone before it was asked", async () => {
    const { inspector, seen } = inspectorAt<IncomingMessage>("");
    const inspect = nodeInspector(inspector);
    const server = createHttp2Server();
    const session = connect(`http://127.0.0.1:${await listenOnLoopback(server)}`);
    const asked = once(server, "request");
    const sender = session.request({ ":path": "/" });
    const [request, response] = await asked;
    const gone = once(response.stream, "close");
    sender.close();
    await gone;
    inspect(request, response);
    expect(seen[0]?.signal.aborted).toBe(true);
    session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});

async function* untilAborted(signal: AbortSignal, ended: () => void): AsyncGenerator<string> {
  try {
    yield "first";
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  } finally {
    ended();
  }
}

async function* failing(): AsyncGenerator<string> {
  yield "first";
  throw new Error("the disk is gone");
}

// Streams to a Node response: over real HTTP, with what an iterator sees of them.

/** More than a response takes without asking its writer to wait. */
const LARGE = "x".repeat(64 * 1_024);

/** A response that is asked for, and who asked. */
async function asked() {
  const { server, port, close } = await serve(() => {});
  onTestFinished(close);
  const connection = await openSocket(port);
  const request = once(server, "request");
  connection.send(requestBytes({ method: "GET" }));
  const [, response] = (await request) as [unknown, ServerResponse];
  return { connection, response };
}

/** Whether it has settled, after as many rounds as what has nothing to wait for can need. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), someRounds().then(() => false)]);
}

async function someRounds(): Promise<void> {
  for (let round = 0; round < 20; round++) await nextRound();
}

/** Sends until all that lies between them is full. */
async function untilFull(response: ServerResponse) {
  let made = 0;
  let hasEnded = false;
  const chunks = async function* () {
    try {
      for (; ; made++) yield LARGE;
    } finally {
      hasEnded = true;
    }
  };
  const sent = sendStream(chunks(), response);
  for (let before = -1; before < made; ) {
    before = made;
    await someRounds();
  }
  expect(response.writableNeedDrain).toBe(true);
  return { sent, hasEnded: () => hasEnded };
}

describe("sendStream()", () => {
  it("goes on whenever more can be written, and leaves neither listeners nor a time-out behind", async () => {
    const { connection, response } = await asked();
    const listeners: unknown[][] = [];
    const chunks = async function* () {
      for (let count = 0; count < 5; count++) {
        const names = ["drain", "close", "timeout"];
        listeners.push([...names.map((name) => response.listenerCount(name)), response.socket?.timeout ?? 0]);
        yield LARGE;
      }
    };
    const sent = sendStream(chunks(), response);
    const { body } = await connection.answer();
    await sent;
    expect(body.length).toBe(5 * LARGE.length);
    expect(new Set(listeners.map(String)).size, listeners.join(" ")).toBe(1);
    expect(listeners[0]?.slice(2)).toEqual([0, 0]);
    connection.close();
  });

  it("goes on through a socket that knows no time-outs, as simulated ones", async () => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    let bytes = 0;
    const slow = new Writable({
      write(chunk: Uint8Array, _encoding, done) {
        bytes += chunk.length;
        setImmediate(done);
      },
    });
    response.assignSocket(slow as Socket);
    // A server does.
    slow.on("drain", () => response.emit("drain"));
    const chunks = async function* () {
      for (let count = 0; count < 5; count++) yield LARGE;
    };
    const finished = once(response, "finish");
    await sendStream(chunks(), response);
    await finished;
    expect(bytes).toBeGreaterThan(5 * LARGE.length);
  });

  it("lets go of a reader who takes nothing for 10 s, and ends what it reads from", async () => {
    const { connection, response } = await asked();
    connection.pause();
    const { sent, hasEnded } = await untilFull(response);
    const { socket } = response;
    expect(socket?.timeout).toBe(10_000);
    const closed = once(response, "close");
    // Its time is up.
    socket?.emit("timeout");
    await closed;
    expect([await isSettled(sent), hasEnded(), socket?.destroyed]).toEqual([true, true, true]);
  });

  it("lets go of a reader who does not take what came before the end", async () => {
    const { connection, response } = await asked();
    connection.pause();
    response.write("x".repeat(16 * 1_024 * 1_024));
    await sendStream((async function* () {})(), response);
    const { socket } = response;
    expect(socket?.timeout).toBe(10_000);
    const closed = once(response, "close");
    socket?.emit("timeout");
    await closed;
    expect(socket?.destroyed).toBe(true);
  });

  it("writes nothing more once its reader is gone", async () => {
    const { connection, response } = await asked();
    let make = (_chunk: IteratorResult<string>) => {};
    const chunk = new Promise<IteratorResult<string>>((resolve) => {
      make = resolve;
    });
    const sent = sendStream({ [Symbol.asyncIterator]: () => ({ next: () => chunk }) }, response);
    const closed = once(response, "close");
    connection.abort();
    await closed;
    make({ done: false, value: "too late" });
    expect(await isSettled(sent)).toBe(true);
  });
});

describe("jsonLeft()", () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;

  it.each([
    ["a text", "{}"],
    ["what cannot be written as JSON", circular],
  ])("does not believe %s", (_what, value) => {
    expect(jsonLeft(value, 100)).toEqual({ ok: false, reason: "invalid" });
  });

  it.each([null, undefined])("takes %s, which parsers leave for none, for an empty one", (value) => {
    expect(jsonLeft(value, 100)).toEqual({ ok: false, reason: "empty" });
  });
});

// The end of a stream that nobody reads any more.

const next = () => new Promise<never>(() => {});

describe("endStream()", () => {
  it("passes over an iterator that cannot be ended", () => {
    expect(() => endStream({ next })).not.toThrow();
  });
});
