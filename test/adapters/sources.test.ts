/** Every adapter with every preset: a signed request is accepted, a changed one is not, other methods get their 405. */
import express from "express";
import Fastify from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { expressVerify, expressWebhook } from "../../adapters/express.ts";
import { fastifyVerify, fastifyWebhook } from "../../adapters/fastify.ts";
import { fetchVerify, fetchWebhook } from "../../adapters/fetch.ts";
import type { WebhookReceiver } from "../../adapters/mounting.ts";
import { type NextReceiver, nextWebhook } from "../../adapters/next.ts";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver } from "../../src/index.ts";
import { github, shopify, standardWebhooks, stripe } from "../../src/presets/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import {
  fixtures,
  type SignedRequest,
  type SignedSource,
  signedRequest,
  TEST_SECRETS,
  tampered,
} from "../../src/testing/index.ts";
import { serve } from "./serving.ts";

type Post = (request: SignedRequest | { readonly method: "GET" }) => Promise<number>;

const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

const overHttp =
  (url: string): Post =>
  async (request) =>
    (await fetch(url, request)).status;

async function served(listener: Parameters<typeof serve>[0]): Promise<Post> {
  const { port, close } = await serve(listener);
  cleanUps.push(close);
  return overHttp(`http://127.0.0.1:${port}/webhooks`);
}

const ADAPTERS: readonly (readonly [string, (receiver: WebhookReceiver & NextReceiver) => Promise<Post>])[] = [
  ["Express", (receiver) => served(express().all("/webhooks", expressWebhook(receiver)))],
  [
    "Fastify",
    async (receiver) => {
      const app = Fastify();
      cleanUps.push(() => app.close());
      await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
      return overHttp(`${await app.listen({ port: 0, host: "127.0.0.1" })}/webhooks`);
    },
  ],
  ["node:http", (receiver) => served(nodeWebhook(receiver))],
  [
    "fetch",
    async (receiver) => {
      const handle = fetchWebhook(receiver);
      return async (request) => (await handle(new Request("http://localhost/webhooks", request))).status;
    },
  ],
  [
    "Next.js",
    async (receiver) => {
      const routes = nextWebhook(receiver, { drain: "off" });
      return async (request) =>
        (await routes[request.method](new Request("http://localhost/webhooks", request))).status;
    },
  ],
];

const SOURCES = {
  stripe: stripe({ secrets: TEST_SECRETS.stripe }),
  github: github({ secrets: TEST_SECRETS.github }),
  shopify: shopify({ secrets: TEST_SECRETS.shopify }),
  "standard-webhooks": standardWebhooks({ secrets: TEST_SECRETS["standard-webhooks"] }),
};

const CONTENT: Readonly<Record<SignedSource, () => object>> = {
  stripe: fixtures.stripe,
  github: fixtures.github,
  shopify: fixtures.shopify,
  "standard-webhooks": fixtures.standardWebhooks,
};

describe.each(ADAPTERS)("%s", (_, mount) => {
  it.each(Object.keys(SOURCES) as SignedSource[])("receives %s", async (source) => {
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), sources: SOURCES });
    cleanUps.push(() => receiver.stop());
    const seen: unknown[] = [];
    for (const name of Object.keys(SOURCES) as SignedSource[])
      receiver.source(name).onAny((event: unknown) => void seen.push(event));
    await receiver.start();
    const post = await mount(receiver.source(source) as unknown as WebhookReceiver & NextReceiver);
    const request = signedRequest(CONTENT[source](), { source });
    expect(await post(request)).toBe(200);
    expect(await post(request)).toBe(200);
    expect(await post(tampered(request))).toBe(401);
    expect(await post({ method: "GET" })).toBe(405);
    await expect.poll(() => seen).toEqual([CONTENT[source]()]);
  });
});

describe("verification without an inbox", () => {
  const source = SOURCES.stripe;
  const good = signedRequest(fixtures.stripe(), { source: "stripe" });

  it("sets the event on an Express request", async () => {
    const app = express().post("/webhooks", expressVerify({ source }), (request, response) => {
      response.status(request.webhookEvent === undefined ? 200 : 500).json(request.sourceEvent);
    });
    const { port, close } = await serve(app);
    cleanUps.push(close);
    const url = `http://127.0.0.1:${port}/webhooks`;
    expect(await (await fetch(url, good)).json()).toEqual(fixtures.stripe());
    expect((await fetch(url, tampered(good))).status).toBe(401);
  });

  it("sets the event on a Fastify request", async () => {
    const app = Fastify();
    cleanUps.push(() => app.close());
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_request, _payload, done) => done(null));
    app.post("/webhooks", { preHandler: fastifyVerify({ source }) }, async (request) => request.sourceEvent);
    const answer = await app.inject({ method: "POST", url: "/webhooks", headers: good.headers, payload: good.body });
    expect(answer.json()).toEqual(fixtures.stripe());
  });

  it("returns the typed event of a fetch request", async () => {
    const verify = fetchVerify({ source });
    const verified = await verify(new Request("http://localhost/", good));
    expect(verified.ok && verified.event.type).toBe("invoice.paid");
    expect((await verify(new Request("http://localhost/", tampered(good)))).ok).toBe(false);
    expect(() => fetchVerify({ source, secrets: "x" } as never)).toThrow(/secrets/);
  });
});
