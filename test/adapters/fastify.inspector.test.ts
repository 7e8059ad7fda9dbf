/** The inspector behind Fastify: the contract, and what is its own. */
import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import Fastify, { type FastifyRequest } from "fastify";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { expressInspector } from "../../adapters/express.ts";
import { type FastifyInspectorOptions, fastifyInspector } from "../../adapters/fastify.ts";
import { createInspector } from "../../src/tools/inspector/index.ts";
import type { MakeInspectorServer } from "../contracts/adapter-bench.ts";
import { inspectorAdapterContract } from "../contracts/inspector-adapter.ts";
import { inspectorAt } from "./inspectors.ts";
import { memoryReceiver } from "./receivers.ts";
import { bytesOf } from "./serving.ts";

const makeServer: MakeInspectorServer<FastifyRequest> = async ({ inspector, bodyState }) => {
  const app = Fastify({ forceCloseConnections: true });
  if (bodyState === "captured") {
    // What a raw-body plugin does: it reads the stream before any parser.
    app.addHook("preParsing", async (request, _reply, payload) => {
      Object.assign(request, { rawBody: await bytesOf(payload) });
      return payload;
    });
  }
  await app.register(fastifyInspector, { inspector });
  app.get("/other", () => "other");
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  return { port: Number(new URL(address).port), close: () => app.close() };
};

describe("fastifyInspector()", () => {
  const count = inspectorAdapterContract({ test, expect, makeServer });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(23);
  });

  it("is registered below a prefix that its path begins with, and at the root", async () => {
    for (const [prefix, path] of [
      ["/admin", "/admin/inspector"],
      ["/admin", "/admin"],
      ["", ""],
    ] as const) {
      const { inspector, seen } = inspectorAt<FastifyRequest>(path);
      const app = Fastify();
      await app.register(fastifyInspector, { inspector, prefix });
      const urls = [path || "/", `${path}/api/overview?a=b`];
      for (const url of urls) expect((await app.inject(url)).body, url).toBe("here");
      expect(seen.map(({ url }) => url)).toEqual(urls);
    }
  });

  it("refuses a prefix that browsers would not find it below, and options that it does not have", async () => {
    const { inspector } = inspectorAt<FastifyRequest>("/inspector");
    const elsewhere = Fastify();
    elsewhere.register(fastifyInspector, { inspector, prefix: "/admin" });
    await expect(async () => elsewhere.ready()).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining('"/inspector" is not below the prefix "/admin"'),
    });
    const misspelt = Fastify();
    misspelt.register(fastifyInspector, { inspector, path: "/x" } as FastifyInspectorOptions);
    await expect(async () => misspelt.ready()).rejects.toThrow(/fastifyInspector\(\) has no option "path"/);
  });

  it("gives authorize Fastify's own request, with its Content-Type", async () => {
    const { inspector, seen } = inspectorAt<FastifyRequest>("/inspector");
    const app = Fastify();
    app.decorateRequest("user", "ada");
    await app.register(fastifyInspector, { inspector });
    await app.inject({ method: "POST", url: "/inspector/api/events", payload: {} });
    expect([seen[0]?.native.routeOptions.url, seen[0]?.native]).toMatchObject(["/inspector/*", { user: "ada" }]);
    expect([seen[0]?.headers, seen[0]?.native.headers]).toMatchObject([
      { "content-type": "application/json" },
      { "content-type": "application/json" },
    ]);
  });

  it("answers a body that it read also where there is no connection, as in inject()", async () => {
    const { inspector } = inspectorAt<FastifyRequest>("/inspector", async ({ readJson }) => {
      const reading = await readJson(100);
      return reading.ok ? JSON.stringify(reading.value) : reading.reason;
    });
    const app = Fastify();
    await app.register(fastifyInspector, { inspector });
    const { body, headers } = await app.inject({ method: "POST", url: "/inspector/api/events", payload: { a: 1 } });
    expect([body, headers.connection]).toEqual(['{"a":1}', "keep-alive"]);
  });

  it("leaves the application's parsers as they are", async () => {
    const { inspector } = inspectorAt<FastifyRequest>("/inspector");
    const app = Fastify();
    await app.register(fastifyInspector, { inspector });
    app.post("/json", (request) => request.body);
    expect((await app.inject({ method: "POST", url: "/json", payload: { a: 1 } })).json()).toEqual({ a: 1 });
    const text = { method: "POST", url: "/json", headers: { "content-type": "a/b" }, payload: "x" } as const;
    expect((await app.inject(text)).statusCode).toBe(415);
  });

  it("runs the hooks of the surrounding scope", async () => {
    const { inspector, seen } = inspectorAt<FastifyRequest>("/inspector");
    const app = Fastify();
    const statuses: number[] = [];
    app.addHook("onRequest", async (request, reply) => {
      if (request.headers["x-blocked"] !== undefined) await reply.code(403).send({});
    });
    app.addHook("onResponse", async (_request, reply) => void statuses.push(reply.statusCode));
    await app.register(fastifyInspector, { inspector });
    await app.inject({ url: "/inspector/", headers: { "x-blocked": "1" } });
    await app.inject("/inspector/");
    expect([statuses, seen.length]).toEqual([[403, 200], 1]);
  });

  it("runs onSend for an answer that is whole", async () => {
    const { inspector } = inspectorAt<FastifyRequest>("/inspector");
    const app = Fastify({ forceCloseConnections: true });
    app.addHook("onSend", async (_request, reply) => void reply.header("x-sent", "1"));
    await app.register(fastifyInspector, { inspector });
    const address = await app.listen({ port: 0, host: "127.0.0.1" });
    const answer = await fetch(`${address}/inspector/`);
    await app.close();
    expect([await answer.text(), answer.headers.get("x-sent")]).toEqual(["here", "1"]);
  });
});

describe("the documented set-up", () => {
  it("closes though somebody has the page open", async () => {
    const { receiver } = memoryReceiver();
    const inspector = createInspector<FastifyRequest>({
      ...{ inbox: receiver.inbox, authorize: () => "read" },
      origins: ["http://localhost"],
    });
    const app = Fastify();
    await app.register(fastifyInspector, { inspector });
    app.addHook("onClose", () => inspector.close());
    const address = new URL(await app.listen({ port: 0, host: "127.0.0.1" }));
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const request = get({
      ...{ agent, host: "127.0.0.1", port: address.port },
      ...{ path: "/inspector/api/overview", headers: { host: "localhost" } },
    });
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    expect([answer.statusCode, JSON.parse(`${await bytesOf(answer)}`)]).toMatchObject([200, { access: "read" }]);
    const from = performance.now();
    await app.close();
    expect(performance.now() - from).toBeLessThan(1_000);
  });
});

describe("the types", () => {
  it("let authorize have Fastify's request, and no other framework's", async () => {
    const { receiver } = memoryReceiver();
    const inspector = createInspector<FastifyRequest>({
      inbox: receiver.inbox,
      authorize: async (request) => (request.headers["x-user"] === "ada" && request.routeOptions.url ? "read" : false),
      origins: ["http://localhost"],
    });
    // @ts-expect-error its authorize would get another framework's request.
    expect(expressInspector(inspector)).toBeTypeOf("function");
    const app = Fastify();
    await app.register(fastifyInspector, { inspector });
    const get = (user: string) =>
      app.inject({ url: "/inspector/api/history", headers: { host: "localhost", "x-user": user } });
    expect([(await get("ada")).statusCode, (await get("eve")).statusCode]).toEqual([200, 401]);
    inspector.close();
  });
});
