/** The raw-body reader on streams that no HTTP server makes. */
import { once } from "node:events";
import { IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { PassThrough, Writable } from "node:stream";
import { setImmediate as nextRound } from "node:timers/promises";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressInspector, expressVerify, expressWebhook } from "../../adapters/express.ts";
import { fastifyWebhook } from "../../adapters/fastify.ts";
import { nextPagesWebhook } from "../../adapters/next.ts";
import { nodeInspector, nodeWebhook } from "../../adapters/node.ts";
import { readNodeBody, sendAnswer as send, type WholeAnswer } from "../../adapters/node-io.ts";
import type { BodyReading, Logger } from "../../src/index.ts";
import { openSocket, requestBytes } from "../contracts/adapter-bench.ts";
import { uncaughtErrors } from "../support/uncaught.ts";
import { inspectorAt } from "./inspectors.ts";
import { memoryReceiver, recordingLogger, SECRET, signedEvent } from "./receivers.ts";
import { serve } from "./serving.ts";

function reading(declaredBytes: number | null = null): BodyReading & { cut: () => void; counted: number[] } {
  const made = {
    maxBytes: 100,
    declaredBytes,
    counted: [] as number[],
    cut: () => {},
    received: (bytes: number) => {
      made.counted.push(bytes);
      return undefined;
    },
    onCut: (cut: () => void) => {
      made.cut = cut;
    },
  };
  return made;
}

describe("readBody()", () => {
  it("reports every chunk as it arrives", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readNodeBody(stream, {}, rules);
    stream.write("abc");
    stream.end("de");
    expect(await body).toEqual({ ok: true, bytes: Buffer.from("abcde") });
    expect(rules.counted).toEqual([3, 2]);
  });

  it("stops at a cut: it lets go of the stream and counts no more", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readNodeBody(stream, {}, rules);
    stream.write("abc");
    await new Promise((resolve) => setImmediate(resolve));
    rules.cut();
    expect(await body).toEqual({ ok: false, reason: "cut" });
    expect(["data", "end", "close", "error"].map((name) => stream.listenerCount(name))).toEqual([0, 0, 0, 0]);
    expect([stream.isPaused(), rules.counted]).toEqual([true, [3]]);
  });

  it("tells who else listens to the stream why it ends at a cut", async () => {
    const stream = new PassThrough();
    const errors: unknown[] = [];
    stream.on("error", (error) => errors.push(error));
    const rules = reading();
    const body = readNodeBody(stream, {}, rules);
    rules.cut();
    await body;
    expect(errors).toEqual([new Error("The read of this body was cut.")]);
  });

  it("takes a cut from within the count of a chunk", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readNodeBody(
      stream,
      {},
      {
        ...rules,
        received: () => {
          rules.cut();
          return undefined;
        },
      },
    );
    stream.write("abc");
    expect(await body).toEqual({ ok: false, reason: "cut" });
  });

  it("reads nothing more while it must wait for its turn", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const turns: (() => void)[] = [];
    const received = (bytes: number) => {
      rules.received(bytes);
      return new Promise<void>((resolve) => turns.push(resolve));
    };
    const body = readNodeBody(stream, {}, { ...rules, received });
    stream.write("abc");
    await nextRound();
    stream.end("de");
    await nextRound();
    expect(rules.counted).toEqual([3]);
    turns[0]?.();
    await nextRound();
    expect(rules.counted).toEqual([3, 2]);
    turns[1]?.();
    expect(await body).toEqual({ ok: true, bytes: Buffer.from("abcde") });
  });

  it("leaves a stream alone that was cut while it waited", async () => {
    const stream = new PassThrough();
    const rules = reading();
    let resume = () => {};
    const received = () =>
      new Promise<void>((resolve) => {
        resume = resolve;
      });
    const body = readNodeBody(stream, {}, { ...rules, received });
    stream.write("abc");
    await nextRound();
    rules.cut();
    resume();
    expect(await body).toEqual({ ok: false, reason: "cut" });
    await nextRound();
    expect(stream.isPaused()).toBe(true);
  });

  it("does nothing at a cut after the end", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readNodeBody(stream, {}, rules);
    stream.end("abc");
    await body;
    expect(() => rules.cut()).not.toThrow();
  });

  it("settles when the stream closes without an end", async () => {
    const stream = new PassThrough();
    const body = readNodeBody(stream, {}, reading());
    stream.destroy();
    expect(await body).toEqual({ ok: false, reason: "truncated" });
  });

  it.each([
    ["too_large", "x".repeat(101), null],
    ["truncated", "abc", 4],
    ["truncated", "abc", 2],
  ])("says %s", async (reason, text, declared) => {
    const stream = new PassThrough();
    const body = readNodeBody(stream, {}, reading(declared));
    stream.end(text);
    expect(await body).toEqual({ ok: false, reason });
  });

  it("knows a stream that someone reads, or has read", async () => {
    const begun = new PassThrough();
    begun.on("data", () => {});
    begun.write("abc");
    await new Promise((resolve) => setImmediate(resolve));
    const ended = new PassThrough();
    ended.resume().end();
    await new Promise((resolve) => ended.once("end", resolve));
    expect(readNodeBody(begun, {}, reading())).toMatchObject({ ok: false, reason: "already_parsed" });
    expect(readNodeBody(ended, { body: {} }, reading())).toMatchObject({ ok: false, reason: "already_parsed" });
  });

  it("says truncated for a stream that is gone", () => {
    expect(readNodeBody(new PassThrough().destroy(), {}, reading())).toEqual({ ok: false, reason: "truncated" });
  });

  it("believes bytes, not text: a text that was bytes once may have lost some", () => {
    const stream = new PassThrough();
    const kept = Buffer.from("abc");
    expect(readNodeBody(stream, { rawBody: "text", body: kept }, reading(3))).toEqual({ ok: true, bytes: kept });
  });
});

// How a host learns that a Node handler has answered, and what becomes of an answer that cannot be sent.

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Every handler that answers on a Node response. */
const HANDLERS: Readonly<Record<string, (logger: Logger) => Handler>> = {
  "nodeWebhook()": (logger) => nodeWebhook(memoryReceiver({ logger }).receiver),
  "expressWebhook()": (logger) => expressWebhook(memoryReceiver({ logger }).receiver) as unknown as Handler,
  "nextPagesWebhook()": (logger) => nextPagesWebhook(memoryReceiver({ logger }).receiver),
  // Of another secret: it refuses, and answers itself.
  "expressVerify()": (logger) => {
    const verify = expressVerify({ secrets: `${SECRET}-other`, logger });
    return (request, response) => verify(request as never, response as never, () => {});
  },
  "nodeInspector()": (logger) => nodeInspector({ ...inspectorAt<IncomingMessage>("").inspector, logger }),
  "expressInspector()": (logger) => {
    const inspect = expressInspector({ ...inspectorAt<express.Request>("").inspector, logger });
    return (request, response) => {
      const asked = Object.assign(request, { originalUrl: request.url });
      return inspect(asked as never, response as never, () => {});
    };
  },
};

const post = (port: number) => fetch(`http://127.0.0.1:${port}/`, { method: "POST", ...signedEvent() });

async function serving<T>(listener: RequestListener, use: (port: number) => Promise<T>): Promise<T> {
  const server = await serve(listener);
  try {
    return await use(server.port);
  } finally {
    await server.close();
  }
}

describe.each(Object.entries(HANDLERS))("%s", (_name, make) => {
  it("returns a promise that resolves once the answer is sent", async () => {
    const handler = make(recordingLogger().logger);
    const seen: unknown[] = [];
    // As hosts do that answer once the handler is done.
    const answer = await serving(async (request, response) => {
      await handler(request, response);
      seen.push(response.writableFinished);
      if (!response.headersSent) response.writeHead(404).end();
    }, post);
    expect([answer.status === 404, seen]).toEqual([false, [true]]);
  });

  it("resolves when the sender is gone", async () => {
    const handler = make(recordingLogger().logger);
    await serving(
      (request, response) => {
        response.destroy();
        return handler(request, response);
      },
      (port) => post(port).catch(() => {}),
    );
    const request = Object.assign(new IncomingMessage(new Socket()), { method: "GET", url: "/" });
    const response = new ServerResponse(request);
    response.destroy();
    await handler(request, response);
  });

  it("resolves on a response that is only simulated, and never closes", async () => {
    const request = Object.assign(new IncomingMessage(new Socket()), { method: "GET", url: "/", complete: true });
    const response = new ServerResponse(request);
    response.assignSocket(new Writable({ write: (_chunk, _encoding, done) => done() }) as Socket);
    await make(recordingLogger().logger)(request, response);
    expect(response.writableFinished).toBe(true);
  });

  it("leaves an answer alone that something else gave first, and logs once that its own was not sent", async () => {
    const { logger, lines } = recordingLogger();
    const handler = make(logger);
    const answers = await serving(
      async (request, response) => {
        response.writeHead(201, { "content-length": "6" }).write("tea");
        // It is not waited for: what answers instead may wait for this promise.
        await handler(request, response);
        response.end("pot");
      },
      async (port) => [await (await post(port)).text(), await (await post(port)).text()],
    );
    expect(answers).toEqual(["teapot", "teapot"]);
    const told = lines.filter(({ fields }) => fields.code === "already_answered");
    expect(told).toMatchObject([{ level: "error", fields: { status: 201 } }]);
    expect(told[0]?.message).toMatch(/Return or await the promise/);
  });

  it("survives a response that throws, logs why and where, and closes the connection", async () => {
    const uncaught = uncaughtErrors();
    const { logger, lines } = recordingLogger();
    const handler = make(logger);
    const settled: string[] = [];
    await serving(
      async (request, response) => {
        response.writeHead = () => {
          throw new TypeError("of +15550000001");
        };
        await handler(request, response);
        settled.push("resolved");
      },
      (port) => expect(post(port)).rejects.toThrow(),
    );
    expect([settled, uncaught]).toEqual([["resolved"], []]);
    const told = lines.filter(({ fields }) => fields.code === "answer_failed");
    expect(told).toMatchObject([
      { fields: { reason: "an error (TypeError)", at: expect.stringContaining("node-io.test.ts:") } },
    ]);
    expect(JSON.stringify(lines)).not.toContain("+1555");
  });
});

describe("an answer that is not written", () => {
  it.each([
    [
      "a status message beyond Latin-1",
      (response: ServerResponse) => (response.statusMessage = "✓"),
      "ERR_INVALID_CHAR",
    ],
    ["an end that throws", (response: ServerResponse) => (response.end = fails), "RangeError"],
  ])("is logged with its reason: %s", async (_what, prepare, reason) => {
    const uncaught = uncaughtErrors();
    const { receiver, lines } = memoryReceiver();
    const webhook = nodeWebhook(receiver);
    await serving(
      (request, response) => {
        prepare(response);
        return webhook(request, response);
      },
      (port) => expect(post(port)).rejects.toThrow(),
    );
    expect(lines.at(-1)?.fields.reason).toContain(reason);
    expect(uncaught).toEqual([]);
  });

  it("closes the connection when the end throws that comes after a body nobody read", async () => {
    const uncaught = uncaughtErrors();
    const { receiver, lines } = memoryReceiver();
    const webhook = nodeWebhook(receiver);
    await serving(
      (request, response) => {
        response.end = fails;
        return webhook(request, response);
      },
      async (port) => {
        const connection = await openSocket(port);
        connection.send(requestBytes({ headers: [["Content-Length", "5"]] }));
        expect((await connection.answer()).status).toBe(401);
        connection.send("12345");
        await connection.ended();
        connection.close();
      },
    );
    expect(lines.at(-1)?.fields).toMatchObject({ code: "answer_failed", reason: "an error (RangeError)" });
    expect(uncaught).toEqual([]);
  });

  it("names NestJS to an application on Express, and Koa to one on node:http", async () => {
    const { receiver, lines } = memoryReceiver();
    const webhook = expressWebhook(receiver);
    const app = express().post("/", async (request, response) => {
      response.status(201).write("answered");
      await webhook(request, response);
      response.end();
    });
    await serving(app, async (port) => (await post(port)).text());
    const plain = nodeWebhook(receiver);
    let settled: Promise<void> | undefined;
    await serving((request, response) => {
      response.end();
      settled = plain(request, response);
    }, post);
    await settled;
    const told = lines.filter(({ fields }) => fields.code === "already_answered").map(({ message }) => message);
    expect(told).toEqual([expect.stringContaining("In NestJS"), expect.stringContaining("In Koa")]);
  });

  it("does not end the process in Fastify", async () => {
    const uncaught = uncaughtErrors();
    const { default: Fastify } = await import("fastify");
    const { receiver, lines } = memoryReceiver();
    const app = Fastify({ forceCloseConnections: true });
    app.addHook("onRequest", async (_request, reply) => {
      reply.raw.writeHead = fails;
    });
    await app.register(fastifyWebhook, { receiver, path: "/" });
    const address = await app.listen({ port: 0, host: "127.0.0.1" });
    await expect(post(Number(new URL(address).port))).rejects.toThrow();
    await app.close();
    expect(lines.at(-1)?.fields).toMatchObject({ code: "answer_failed", reason: "an error (RangeError)" });
    expect(uncaught).toEqual([]);
  });
});

function fails(): never {
  throw new RangeError("of a listener");
}

describe("a host's own objects in place of Node's request and response", () => {
  const wrapped: readonly [string, (request: IncomingMessage, response: ServerResponse) => [unknown, unknown]][] = [
    [
      "In Koa",
      (req, res) => [
        { req, res, method: "POST", headers: {} },
        { req, res },
      ],
    ],
    ["In Koa", (req, res) => [{ req, res }, undefined]],
    ["In Fastify", (request, response) => [{ raw: request }, { raw: response }]],
    ["In hapi", (req, res) => [{ raw: { req, res } }, { abandon: Symbol("abandon") }]],
    ["In h3", (req, res) => [{ node: { req, res } }, undefined]],
  ];

  it.each(wrapped)("are a mistake in the set-up: 500, and %s the fix", async (fix, wrap) => {
    const { receiver, lines } = memoryReceiver();
    const webhook = nodeWebhook(receiver) as (request: unknown, response: unknown) => Promise<void>;
    const statuses = await serving(
      (request, response) => webhook(...wrap(request, response)),
      async (port) => [(await post(port)).status, (await post(port)).status],
    );
    expect(statuses).toEqual([500, 500]);
    expect(lines).toMatchObject([{ level: "error", fields: { code: "wrong_arguments" } }]);
    expect(lines[0]?.message).toContain(fix);
  });

  it("are reported to the host where nothing can be answered", () => {
    const { receiver } = memoryReceiver();
    const webhook = nodeWebhook(receiver) as (...given: unknown[]) => Promise<void>;
    expect(() => webhook(new Request("http://a.example"))).toThrow(/oncehook\/fetch/);
    expect(() => webhook({})).toThrow(/hook\(request, response\)/);
  });

  it("are named for nodeInspector() too", async () => {
    const { logger, lines } = recordingLogger();
    const inspect = nodeInspector({ ...inspectorAt<IncomingMessage>("").inspector, logger }) as unknown as Handler;
    const { status } = await serving(
      (request, response) => inspect({ raw: request } as never, { raw: response } as never),
      post,
    );
    expect([status, lines[0]?.message]).toEqual([500, expect.stringContaining("nodeInspector()")]);
  });
});

// Answers on Node responses that something else has to do with too.

const ANSWER = { status: 200, headers: { "content-length": "6" }, body: "second", close: false };
const REFUSAL = { ...ANSWER, status: 413, close: true };

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const sendAnswer = (answer: WholeAnswer, request: IncomingMessage, response: ServerResponse) =>
  send(answer, request, response, () => {});

/** What a server has of requests that one connection sends at once. */
async function exchanges(...requests: readonly Buffer[]) {
  const begun: Exchange[] = [];
  const { port, close } = await serve((request, response) => void begun.push({ request, response }));
  const connection = await openSocket(port);
  onTestFinished(() => {
    connection.close();
    return close();
  });
  connection.send(Buffer.concat(requests));
  while (begun.length < requests.length) await nextRound();
  return { begun, connection };
}

async function exchange(sent: Buffer) {
  const { begun, connection } = await exchanges(sent);
  const [only] = begun;
  if (only === undefined) throw new Error("The server saw no request.");
  return { ...only, connection };
}

const GET = requestBytes({ method: "GET" });

describe("sendAnswer()", () => {
  it("does nothing for a sender who is gone: no log shall say that it was answered", async () => {
    const { request, response } = await exchange(GET);
    const closed = once(response, "close");
    response.destroy();
    await closed;
    sendAnswer(ANSWER, request, response);
    expect(response.headersSent).toBe(false);
  });

  it("answers a request whose turn on its connection has not come", async () => {
    const { begun, connection } = await exchanges(GET, GET);
    const [first, second] = begun;
    if (first === undefined || second === undefined) throw new Error("The server saw no two requests.");
    expect(() => sendAnswer(ANSWER, second.request, second.response)).not.toThrow();
    const answer = { ...ANSWER, headers: { "content-length": "5" }, body: "first" };
    sendAnswer(answer, first.request, first.response);
    expect([await connection.answer(), await connection.answer()]).toMatchObject([
      { body: "first" },
      { body: "second" },
    ]);
  });

  it.each([
    [65_535, false],
    [65_536, true],
  ])("of a body that nobody reads takes 64 KiB at most: with %d bytes it has ended: %s", async (bytes, hasEnded) => {
    const { request, response } = await exchange(requestBytes({ headers: [["Content-Length", "1000000"]] }));
    sendAnswer(REFUSAL, request, response);
    request.emit("data", Buffer.alloc(bytes));
    expect(response.writableEnded).toBe(hasEnded);
  });
});
