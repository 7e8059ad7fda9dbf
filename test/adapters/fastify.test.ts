/** The Fastify adapter: the contract, and what is its own. */
import Fastify from "fastify";
import { describe, expect, it, test } from "vitest";
import { fastifyWebhook } from "../../adapters/fastify.ts";
import { adapterContract, type MakeAdapterServer } from "../../src/testing/adapter-contract.ts";
import { bytesOf } from "./serving.ts";

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
    expect(count).toBeGreaterThanOrEqual(33);
  });
});
