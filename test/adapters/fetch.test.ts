/** The fetch adapter: the contract, and what is its own. */
import { describe, expect, it, test } from "vitest";
import { fetchWebhook } from "../../adapters/fetch.ts";
import { adapterContract, type MakeAdapterServer } from "../../src/testing/adapter-contract.ts";
import { bridge } from "./fetch-bridge.ts";
import { serve } from "./serving.ts";

const makeServer: MakeAdapterServer = ({ receiver, bodyState }) => {
  const webhook = fetchWebhook(receiver);
  const route = async (request: Request) => {
    if (new URL(request.url).pathname === "/json") {
      return request.json().then(
        (body) => Response.json(body),
        () => new Response(null, { status: 400 }),
      );
    }
    if (bodyState === "parsed") await request.json();
    return webhook(request);
  };
  return serve(bridge(route));
};

describe("fetchWebhook()", () => {
  const count = adapterContract({ test, expect, makeServer, bodyStates: ["raw", "parsed"] });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(32);
  });
});
