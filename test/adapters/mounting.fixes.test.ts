/** The fix for a body that was read too early is told for the host at hand. */
import { createServer, IncomingMessage } from "node:http";
import { Socket } from "node:net";
import express from "express";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { expressWebhook } from "../../adapters/express.ts";
import { fetchWebhook } from "../../adapters/fetch.ts";
import { parsedBodyFix } from "../../adapters/mounting.ts";
import { nodeWebhook } from "../../adapters/node.ts";
import { memoryReceiver, signedEvent } from "./receivers.ts";
import { bytesOf } from "./serving.ts";

const plain = () => Object.assign(new IncomingMessage(new Socket()), { method: "POST" });

describe("the fix for a body that was read too early", () => {
  const logged = async (handler: (receiver: ReturnType<typeof memoryReceiver>["receiver"]) => unknown) => {
    const { receiver, lines } = memoryReceiver();
    const { body, headers } = signedEvent();
    const app = handler(receiver) as Parameters<typeof supertest>[0];
    const { status } = await supertest(app).post("/").set(headers).serialize(String).send(body.toString());
    expect(status).toBe(500);
    return lines.at(-1)?.message ?? "";
  };

  it("names express.json() and NestJS in an application on Express", async () => {
    const message = await logged((receiver) => express().use(express.json()).use(expressWebhook(receiver)));
    expect(message).toMatch(
      /In Express: .*before express\.json\(\).*captureRawBody.*limit: "256kb".* In NestJS: .*rawBody: true/,
    );
  });

  it("says that a text in rawBody or body is not what was signed", async () => {
    const keep = (name: "rawBody" | "body") => (receiver: Parameters<typeof nodeWebhook>[0]) => {
      const webhook = nodeWebhook(receiver);
      return createServer(async (request, response) => {
        await webhook(Object.assign(request, { [name]: String(await bytesOf(request)) }), response);
      });
    };
    expect(await logged(keep("rawBody"))).toContain("request.rawBody is a string");
    expect(await logged(keep("body"))).toContain("request.body is a string");
  });

  it("names Koa and hapi on a request of node:http", async () => {
    const message = await logged((receiver) => {
      const webhook = nodeWebhook(receiver);
      return createServer(async (request, response) => {
        await bytesOf(request);
        await webhook(request, response);
      });
    });
    expect(message).toMatch(/In Koa: .*koa-bodyparser.*In hapi/);
  });

  it("names the option of a Next.js pages route", () => {
    expect(parsedBodyFix(Object.assign(plain(), { query: {}, cookies: {}, body: {} }))).toContain("bodyParser: false");
  });

  it("names Hono and Elysia for a fetch Request", async () => {
    const { receiver, lines } = memoryReceiver();
    const request = new Request("http://a.example/", { method: "POST", ...signedEvent() });
    await request.text();
    expect((await fetchWebhook(receiver)(request)).status).toBe(500);
    expect(lines.at(-1)?.message).toMatch(/In Hono: .*In Elysia: /);
  });
});
