/** Every adapter with every preset, on memory and SQLite (on Postgres: test/stores/postgres/sources.test.ts); and verification alone. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import express from "express";
import Fastify from "fastify";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { expressVerify } from "../../adapters/express.ts";
import { fastifyVerify } from "../../adapters/fastify.ts";
import { fetchVerify } from "../../adapters/fetch.ts";
import { stripe } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { fixtures, signedRequest, TEST_SECRETS, tampered } from "../../src/tools/testing/index.ts";
import { serve } from "./serving.ts";
import { sourceCases } from "./source-cases.ts";

const folder = mkdtempSync(join(tmpdir(), "oncehook-sources-"));

afterAll(() => rmSync(folder, { recursive: true }));

describe("in memory", () => sourceCases(() => memoryStore({ volatile: true })));

describe("in a file of SQLite", () => sourceCases(() => sqliteStore(join(folder, "inbox.db")) as never));

describe("verification without an inbox", () => {
  const source = stripe({ secrets: TEST_SECRETS.stripe });
  const good = signedRequest(fixtures.stripe(), { source: "stripe" });

  it("sets the event on an Express request", async () => {
    const app = express().post("/webhooks", expressVerify({ source }), (request, response) => {
      response.status(request.webhookEvent === undefined ? 200 : 500).json(request.sourceEvent);
    });
    const { port, close } = await serve(app);
    onTestFinished(close);
    const url = `http://127.0.0.1:${port}/webhooks`;
    expect(await (await fetch(url, good)).json()).toEqual(fixtures.stripe());
    expect((await fetch(url, tampered(good))).status).toBe(401);
  });

  it("sets the event on a Fastify request", async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
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
