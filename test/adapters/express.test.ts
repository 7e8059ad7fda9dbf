/** The Express adapter on Express 5 and 4: the contract, and what is its own. */
import type { RequestHandler } from "express";
import express5 from "express";
// @ts-expect-error express 4 is an alias without types of its own; those of Express 5 fit what is used here.
import express4 from "express4";
import { describe, expect, it, test } from "vitest";
import { captureRawBody, expressWebhook } from "../../adapters/express.ts";
import { adapterContract, type MakeAdapterServer } from "../../src/testing/adapter-contract.ts";
import { serve } from "./serving.ts";

const echo: RequestHandler = (request, response) => void response.json(request.body);

describe.each([
  ["5", express5],
  ["4", express4 as typeof express5],
])("expressWebhook() on Express %s", (_version, express) => {
  const makeServer: MakeAdapterServer = ({ receiver, bodyState }) => {
    const app = express();
    app.set("env", "test");
    if (bodyState === "parsed") app.use(express.json());
    if (bodyState === "captured") app.use(express.json({ verify: captureRawBody }));
    app.all("/webhooks", expressWebhook(receiver));
    if (bodyState === "raw") app.use(express.json());
    app.post("/json", echo);
    return serve(app);
  };
  const count = adapterContract({ test, expect, makeServer });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(33);
  });
});
