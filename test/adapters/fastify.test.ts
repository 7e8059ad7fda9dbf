/** The Fastify adapter: the contract, and what is its own. */
import { errorMonitor } from "node:events";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { fastifyInspector, fastifyVerify, fastifyWebhook, leaveBodiesUnread } from "../../adapters/fastify.ts";
import { adapterContract } from "../contracts/adapter.ts";
import type { MakeAdapterServer } from "../contracts/adapter-bench.ts";
import { uncaughtErrors } from "../support/uncaught.ts";
import { inspectorAt } from "./inspectors.ts";
import { memoryReceiver, recordingLogger, SECRET, signedEvent } from "./receivers.ts";
import { bytesOf } from "./serving.ts";
import { leaveUntaken } from "./untaken.ts";

const makeServer: MakeAdapterServer = async ({ receiver, bodyState }) => {
  const app = Fastify({ forceCloseConnections: true });
  if (bodyState !== "raw") {
    // What a raw-body plugin does: it reads the stream before any parser.
    app.addHook("preParsing", async (request, _reply, payload) => {
      const bytes = await bytesOf(payload);
      if (bodyState === "captured") Object.assign(request, { rawBody: bytes });
      return payload;
    });
  }
  await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
  app.post("/json", (request) => request.body);
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  return { port: Number(new URL(address).port), close: () => app.close() };
};

describe("fastifyWebhook()", () => {
  const count = adapterContract({ test, expect, makeServer });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(34);
  });

  const inject = (app: FastifyInstance, { body, headers } = signedEvent(), url = "/webhooks") =>
    app.inject({ method: "POST", url, headers, payload: body });

  it("works with inject(), a prefix and Fastify's own request for tenant", async () => {
    const { receiver, handled } = memoryReceiver();
    const seen: unknown[] = [];
    const app = Fastify();
    const tenant = (request: { routeOptions: { url?: string | undefined } }) =>
      void seen.push(request.routeOptions.url) as undefined;
    await app.register(fastifyWebhook, { receiver, path: "/webhooks", prefix: "/api", tenant });
    expect((await inject(app, signedEvent(), "/api/webhooks")).statusCode).toBe(200);
    expect([handled, seen]).toEqual([["message.inbound"], ["/api/webhooks"]]);
  });

  it("answers 500 itself when the tenant option throws", async () => {
    const { receiver, lines } = memoryReceiver();
    const tenant = () => {
      throw new TypeError("of +15550000001");
    };
    const app = Fastify();
    await app.register(fastifyWebhook, { receiver, path: "/webhooks", tenant });
    const answer = await inject(app);
    expect([answer.statusCode, answer.json()]).toEqual([500, { error: "misconfigured" }]);
    expect(lines.at(-1)?.fields).toMatchObject({ reason: "TypeError" });
  });

  it.each(["none", "asynchronous"])("leaves no timer behind an inject() with %s onSend hook", async (hook) => {
    const { receiver } = memoryReceiver();
    const app = Fastify();
    if (hook === "asynchronous") app.addHook("onSend", async (_request, _reply, payload) => payload);
    await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const before = timers();
    for (let count = 0; count < 10; count++) await inject(app);
    // Some of other tests, which share the process, may come or go meanwhile.
    expect(timers() - before).toBeLessThan(5);
    await app.close();
  });

  it.each(["none", "asynchronous"])(
    "lets go of a sender that takes no answers, with %s onSend hook",
    { tags: "full" },
    async (hook) => {
      const { receiver } = memoryReceiver();
      const app = Fastify({ forceCloseConnections: true });
      if (hook === "asynchronous") app.addHook("onSend", async (_request, _reply, payload) => payload);
      await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
      const address = await app.listen({ port: 0, host: "127.0.0.1" });
      const sender = await leaveUntaken(app.server, Number(new URL(address).port));
      expect(sender.socket.timeout).toBe(10_000);
      sender.close();
      await app.close();
    },
  );

  it("has a limit of its own, not Fastify's bodyLimit", async () => {
    const { receiver } = memoryReceiver();
    const app = Fastify({ bodyLimit: 10 });
    await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
    expect((await inject(app)).statusCode).toBe(200);
  });

  it("keeps its parser to itself even when someone wraps it as fastify-plugin does", async () => {
    const { receiver } = memoryReceiver();
    const app = Fastify();
    const wrapped = Object.assign((scope: FastifyInstance) => fastifyWebhook(scope, { receiver, path: "/webhooks" }), {
      [Symbol.for("skip-override")]: true,
    });
    await app.register(wrapped);
    app.post("/json", (request) => request.body);
    const json = await app.inject({ method: "POST", url: "/json", payload: { a: 1 } });
    const text = await app.inject({ method: "POST", url: "/json", headers: { "content-type": "a/b" }, payload: "x" });
    expect([json.json(), text.statusCode, (await inject(app)).statusCode]).toEqual([{ a: 1 }, 415, 200]);
  });

  it("does not mind what parsers the application has", async () => {
    const { receiver } = memoryReceiver();
    const app = Fastify();
    for (const type of ["*", "application/octet-stream"]) {
      app.addContentTypeParser(type, { parseAs: "string" }, (_request, _body, done) => done(null, "parsed"));
    }
    await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
    expect((await inject(app)).statusCode).toBe(200);
  });

  it("reads the stream that a preParsing hook put in the request's place", async () => {
    const { receiver } = memoryReceiver();
    const app = Fastify();
    app.addHook("preParsing", async (_request, _reply, payload) => Readable.from([await bytesOf(payload)]));
    await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
    expect((await inject(app)).statusCode).toBe(200);
  });

  it("answers 405 to QUERY too, with and without a Content-Type", async () => {
    const { receiver } = memoryReceiver();
    const app = Fastify();
    await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
    const statuses = [{}, { "content-type": "a/b" }].map(async (headers) => {
      const answer = await app.inject({ method: "QUERY", url: "/webhooks", headers });
      return answer.statusCode;
    });
    expect(await Promise.all(statuses)).toEqual([405, 405]);
  });

  it("runs the hooks of the surrounding scope, onResponse for every answer", async () => {
    const { receiver, handled } = memoryReceiver();
    const seen: unknown[] = [];
    const app = Fastify();
    app.addHook("onRequest", async (request, reply) => {
      if (request.headers["x-blocked"] !== undefined) await reply.code(403).send({});
    });
    app.addHook("preHandler", async () => void seen.push("preHandler"));
    app.addHook("onSend", async (_request, reply) => void seen.push(`onSend ${reply.statusCode}`));
    app.addHook("onResponse", async (_request, reply) => void seen.push(`onResponse ${reply.statusCode}`));
    await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
    const { body, headers } = signedEvent();
    await inject(app, { body, headers });
    await inject(app, { body, headers: {} });
    await inject(app, { body, headers: { ...headers, "x-blocked": "1" } });
    expect(seen).toEqual([
      "preHandler",
      "onSend 200",
      "onResponse 200",
      "preHandler",
      "onResponse 401",
      "onSend 403",
      "onResponse 403",
    ]);
    expect(handled.length).toBe(1);
  });
});

describe("fastifyVerify()", () => {
  const verified = () => {
    const app = Fastify();
    app.register(async (scope) => {
      leaveBodiesUnread(scope);
      const preHandler = fastifyVerify({ secrets: SECRET });
      scope.post("/webhooks", { preHandler }, (request) => [
        request.webhookEvent?.eventType,
        request.body instanceof Uint8Array,
      ]);
    });
    app.post("/json", (request) => request.body);
    return app;
  };
  const post = (body: Buffer, headers: Record<string, string>) =>
    verified().inject({ method: "POST", url: "/webhooks", headers, payload: body });

  it("sets the event, leaves the bytes and goes on (RCV-1)", async () => {
    const { body, headers } = signedEvent();
    const answer = await post(body, headers);
    expect([answer.statusCode, answer.json()]).toEqual([200, ["message.inbound", true]]);
  });

  it("answers what it refuses itself, and the handler does not run (RCV-2)", async () => {
    const { body, headers } = signedEvent();
    const forged = await post(body, { ...headers, "x-service-signature": "0".repeat(64) });
    const unsigned = await post(body, {});
    for (const answer of [forged, unsigned]) {
      expect([answer.statusCode, answer.json()]).toEqual([401, { error: "unauthorized" }]);
    }
  });

  it("leaves other scopes their parsers", async () => {
    const answer = await verified().inject({ method: "POST", url: "/json", payload: { a: 1 } });
    expect(answer.json()).toEqual({ a: 1 });
  });

  it("answers 500 where the body was parsed, because nobody called leaveBodiesUnread, and logs that", async () => {
    const { logger, lines } = recordingLogger();
    const app = Fastify();
    app.post("/webhooks", { preHandler: fastifyVerify({ secrets: SECRET, logger }) }, () => "never");
    const answer = await inject500(app);
    expect([answer.statusCode, answer.json()]).toEqual([500, { error: "raw_body_unavailable" }]);
    expect(lines.at(-1)).toMatchObject({ level: "error", fields: { code: "raw_body_unavailable" } });
    expect(lines.at(-1)?.message).toContain("leaveBodiesUnread(scope)");
  });
});

function inject500(app: FastifyInstance) {
  const { body, headers } = signedEvent();
  return app.inject({ method: "POST", url: "/webhooks", headers, payload: body });
}

const { headers } = signedEvent();

/** Resolves once each request to `path` was answered, and what stood in its place has failed. */
async function statusesBehindGunzip(mount: (app: FastifyInstance) => unknown, requests: readonly RequestInit[]) {
  const ends: Promise<unknown>[] = [];
  const app = Fastify({ forceCloseConnections: true });
  onTestFinished(() => app.close());
  app.addHook("preParsing", async (_request, _reply, payload) => {
    const unzipped = payload.pipe(createGunzip());
    ends.push(new Promise((resolve) => unzipped.once(errorMonitor, resolve)));
    return unzipped;
  });
  await mount(app);
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  const statuses: number[] = [];
  for (const request of requests) {
    const { status } = await fetch(`${address}/webhooks`, { method: "POST", body: "not compressed", ...request });
    statuses.push(status);
  }
  await Promise.all(ends);
  return statuses;
}

it("fastifyWebhook() answers what it refuses before the body, whatever becomes of the stream (RCV-2)", async () => {
  const { receiver } = memoryReceiver({ maxBodyBytes: 1_024 });
  const errors = uncaughtErrors();
  const statuses = await statusesBehindGunzip(
    (app) => app.register(fastifyWebhook, { receiver, path: "/webhooks" }),
    [
      {},
      { method: "PATCH" },
      { headers: { ...headers, "content-encoding": "gzip" } },
      { headers, body: "not compressed".repeat(100) },
    ],
  );
  expect([statuses, errors]).toEqual([[401, 405, 415, 413], []]);
});

it("fastifyVerify() does (RCV-2)", async () => {
  const errors = uncaughtErrors();
  const statuses = await statusesBehindGunzip(
    (app) =>
      app.register(async (scope) => {
        leaveBodiesUnread(scope);
        scope.post("/webhooks", { preHandler: fastifyVerify({ secrets: SECRET }) }, () => "never");
      }),
    [{}],
  );
  expect([statuses, errors]).toEqual([[401], []]);
});

it("fastifyInspector() does", async () => {
  const errors = uncaughtErrors();
  const { inspector } = inspectorAt<FastifyRequest>("/webhooks");
  const statuses = await statusesBehindGunzip((app) => app.register(fastifyInspector, { inspector }), [{}]);
  expect([statuses, errors]).toEqual([[200], []]);
});
