/** The inspector behind Express 5 and 4: the contract, and what is its own. */
import type { RequestListener } from "node:http";
import express5, { type Request } from "express";
// @ts-expect-error express 4 is an alias without types of its own; those of Express 5 fit what is used here.
import express4 from "express4";
import supertest from "supertest";
import { describe, expect, it, test } from "vitest";
import { captureRawBody, expressInspector } from "../../adapters/express.ts";
import type { FastifyInspectorOptions } from "../../adapters/fastify.ts";
import { nodeInspector } from "../../adapters/node.ts";
import { createInspector } from "../../src/inspector/index.ts";
import type { MakeInspectorServer } from "../contracts/adapter-bench.ts";
import { inspectorAdapterContract } from "../contracts/inspector-adapter.ts";
import { inspectorAt } from "./inspectors.ts";
import { memoryReceiver } from "./receivers.ts";
import { serve } from "./serving.ts";

describe.each([
  ["5", express5],
  ["4", express4 as typeof express5],
])("expressInspector() on Express %s", (_version, express) => {
  const makeServer: MakeInspectorServer<Request> = ({ inspector, bodyState }) => {
    const app = express();
    if (bodyState === "parsed") app.use(express.json());
    if (bodyState === "captured") app.use(express.json({ verify: captureRawBody }));
    app.use(expressInspector(inspector));
    app.get("/other", (_request, response) => void response.send("other"));
    return serve(app);
  };
  const count = inspectorAdapterContract({ test, expect, makeServer });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(23);
  });

  it("is mounted below a path, and in a router, with the path that browsers ask for", async () => {
    const { inspector, seen } = inspectorAt<Request>("/admin/inspector");
    const router = express.Router().use("/inspector", expressInspector(inspector));
    const app = express().use("/admin", router);
    await supertest(app).get("/admin/inspector/api/overview?a=b").expect(200);
    await supertest(app).get("/admin/inspector").expect(200);
    expect(seen.map(({ url }) => url)).toEqual(["/admin/inspector/api/overview?a=b", "/admin/inspector"]);
  });

  it("gives authorize Express's own request", async () => {
    const { inspector, seen } = inspectorAt<Request>("/inspector");
    const app = express().use((request, _response, next) => {
      Object.assign(request, { user: "ada" });
      next();
    });
    app.use(expressInspector(inspector));
    await supertest(app).get("/inspector/").expect(200);
    expect([seen[0]?.native.get("host")?.split(":")[0], seen[0]?.native]).toMatchObject(["127.0.0.1", { user: "ada" }]);
  });

  it("serves the whole site at the root", async () => {
    const { inspector, seen } = inspectorAt<Request>("");
    const app = express().use(expressInspector(inspector));
    for (const path of ["/", "/api/overview", "/?a=b"]) await supertest(app).get(path).expect(200);
    expect(seen.length).toBe(3);
  });

  it("takes no text for JSON that another parser left", async () => {
    const { inspector } = inspectorAt<Request>("/inspector", async (request) => (await request.readJson(100)).ok);
    const app = express().use(express.text({ type: "*/*" }), expressInspector(inspector));
    const { text } = await supertest(app).post("/inspector/api/events").set("content-type", "a/b").send("{}");
    expect(text).toBe("false");
  });
});

describe("the types", () => {
  it("let authorize have Express's request, and no other framework's", async () => {
    const { receiver } = memoryReceiver();
    const inspector = createInspector<Request>({
      inbox: receiver.inbox,
      authorize: (request) => request.get("x-user") === "ada" && { access: "read", by: "ada" },
      origins: ["http://127.0.0.1"],
    });
    // @ts-expect-error its authorize would get another framework's request.
    const other: FastifyInspectorOptions = { inspector };
    // @ts-expect-error a request of node:http has no get().
    const listener: RequestListener = nodeInspector(inspector);
    expect([typeof listener, other.inspector]).toEqual(["function", inspector]);
    const app = express5().use(expressInspector(inspector));
    const get = (user: string) =>
      supertest(app).get("/inspector/api/history").set({ host: "127.0.0.1", "x-user": user });
    expect([(await get("ada")).status, (await get("eve")).status]).toEqual([200, 401]);
    inspector.close();
  });
});
