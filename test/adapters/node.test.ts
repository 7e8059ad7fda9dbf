/** The node:http adapter: the contract, and what is its own. */
import type { IncomingMessage, RequestListener } from "node:http";
import { describe, expect, it, test } from "vitest";
import { nodeWebhook } from "../../adapters/node.ts";
import { adapterContract, type MakeAdapterServer } from "../../src/testing/adapter-contract.ts";
import { bytesOf, serve } from "./serving.ts";

const jsonRoute: RequestListener = async (request, response) => {
  const text = (await bytesOf(request)).toString();
  try {
    response.setHeader("content-type", "application/json").end(JSON.stringify(JSON.parse(text)));
  } catch {
    response.writeHead(400).end();
  }
};

const makeServer: MakeAdapterServer = ({ receiver, bodyState }) => {
  const webhook = nodeWebhook(receiver);
  const prepare = async (request: IncomingMessage & { body?: unknown; rawBody?: unknown }) => {
    const bytes = await bytesOf(request);
    request.body = JSON.parse(bytes.toString());
    if (bodyState === "captured") request.rawBody = bytes;
  };
  return serve(async (request, response) => {
    if (request.url === "/json") return jsonRoute(request, response);
    if (bodyState !== "raw") await prepare(request);
    webhook(request, response);
  });
};

describe("nodeWebhook()", () => {
  const count = adapterContract({ test, expect, makeServer });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(33);
  });
});
