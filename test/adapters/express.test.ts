/** The Express adapter and its inspector on Express 5 and 4: the contracts, and what is their own. */
import type { RequestListener } from "node:http";
import type { RequestHandler } from "express";
import express5, { type Request } from "express";
// @ts-expect-error express 4 is an alias without types of its own; those of Express 5 fit what is used here.
import express4 from "express4";
import supertest from "supertest";
import { describe, expect, it, test } from "vitest";
import { captureRawBody, expressInspector, expressVerify, expressWebhook } from "../../adapters/express.ts";
import type { FastifyInspectorOptions } from "../../adapters/fastify.ts";
import { nodeInspector } from "../../adapters/node.ts";
import { signPayload } from "../../src/index.ts";
import { createInspector } from "../../src/tools/inspector/index.ts";
import { adapterContract } from "../contracts/adapter.ts";
import type { MakeAdapterServer, MakeInspectorServer } from "../contracts/adapter-bench.ts";
import { openSocket, requestBytes } from "../contracts/adapter-bench.ts";
import { inspectorAdapterContract } from "../contracts/inspector-adapter.ts";
import { inspectorAt } from "./inspectors.ts";
import { memoryReceiver, recordingLogger, SECRET, signedEvent } from "./receivers.ts";
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
    expect(count).toBeGreaterThanOrEqual(34);
  });

  const post = (app: ReturnType<typeof express>, { body, headers } = signedEvent()) =>
    supertest(app).post("/webhooks").set(headers).serialize(String).send(body.toString());

  it("takes the bytes of express.raw()", async () => {
    const { receiver, handled } = memoryReceiver();
    const app = express().use(express.raw({ type: "*/*" }));
    app.all("/webhooks", expressWebhook(receiver));
    expect([(await post(app)).status, handled]).toEqual([200, ["message.inbound"]]);
  });

  it("works behind express.json() for a type that it leaves unread", async () => {
    const { receiver } = memoryReceiver();
    const app = express().use(express.json());
    app.all("/webhooks", expressWebhook(receiver));
    const { body, headers } = signedEvent();
    expect((await post(app, { body, headers: { ...headers, "content-type": "text/plain" } })).status).toBe(200);
  });

  it("works in a router, with express's own request for tenant", async () => {
    const seen: string[] = [];
    const { receiver } = memoryReceiver();
    const router = express.Router();
    router.all("/", expressWebhook(receiver, { tenant: (request) => void seen.push(request.baseUrl) as undefined }));
    const app = express().use("/webhooks", router);
    expect([(await post(app)).status, seen]).toEqual([200, ["/webhooks"]]);
  });

  describe("expressVerify()", () => {
    const verified = (options: Partial<Parameters<typeof expressVerify>[0]> = {}) => {
      const app = express();
      app.post("/webhooks", expressVerify({ secrets: SECRET, ...options }), (request, response) => {
        const { webhookEvent, rawBody } = request as typeof request & { rawBody: Buffer };
        response.json([webhookEvent?.eventType, rawBody.length]);
      });
      return app;
    };

    it("sets the event and the bytes and goes on (RCV-1)", async () => {
      const event = signedEvent();
      const answer = await post(verified(), event);
      expect([answer.status, answer.body]).toEqual([200, ["message.inbound", event.body.length]]);
    });

    it("answers what it refuses itself (RCV-2)", async () => {
      const { body, headers } = signedEvent();
      const old = { ...headers, "x-service-timestamp": "1600000000000" };
      const forged = { ...headers, "x-service-signature": "0".repeat(64) };
      const refused = [
        await post(verified(), { body, headers: old }),
        await post(verified(), { body, headers: forged }),
        await post(verified({ maxBodyBytes: 1024 }), { body: Buffer.concat([body, Buffer.alloc(1024, " ")]), headers }),
        await post(verified(), { body, headers: { ...headers, "content-encoding": "gzip" } }),
      ];
      expect(refused.map(({ status, body }) => [status, body])).toEqual([
        [401, { error: "unauthorized" }],
        [401, { error: "unauthorized" }],
        [413, { error: "body_too_large" }],
        [415, { error: "unsupported_content_encoding" }],
      ]);
    });

    it("refuses an unsigned request before its body is sent (RCV-2)", async () => {
      const server = await serve(verified());
      const connection = await openSocket(server.port);
      connection.send(requestBytes({ headers: [["Content-Length", "50"]] }));
      expect((await connection.answer()).status).toBe(401);
      await server.close();
    });

    it("answers 400 to a signed body that is no event, and 500 to one that was parsed", async () => {
      const body = Buffer.from("[]");
      const headers = { ...signPayload({ body, secret: SECRET }), "content-type": "application/json" };
      expect((await post(verified(), { body, headers })).body).toEqual({ error: "invalid_event" });
      const parsed = express().use(express.json()).use(verified());
      expect((await post(parsed)).body).toEqual({ error: "raw_body_unavailable" });
    });

    it("answers 500 when the tenant option throws, and logs no more than the kind of error", async () => {
      const { logger, lines } = recordingLogger();
      const tenant = () => {
        throw new TypeError("of +15550000001");
      };
      const answer = await post(verified({ tenant, logger }));
      expect([answer.status, answer.body]).toEqual([500, { error: "misconfigured" }]);
      expect(lines).toMatchObject([{ level: "error", fields: { code: "invalid_option" } }]);
      expect(lines[0]?.message).toMatch(/"tenant" of expressVerify\(\).*TypeError/);
      expect(JSON.stringify(lines)).not.toContain("+1555");
    });
  });
});

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
