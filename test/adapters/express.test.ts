/** The Express adapter on Express 5 and 4: the contract, and what is its own. */
import type { RequestHandler } from "express";
import express5 from "express";
// @ts-expect-error express 4 is an alias without types of its own; those of Express 5 fit what is used here.
import express4 from "express4";
import supertest from "supertest";
import { describe, expect, it, test } from "vitest";
import { captureRawBody, expressVerify, expressWebhook } from "../../adapters/express.ts";
import { signPayload } from "../../src/index.ts";
import { adapterContract } from "../contracts/adapter.ts";
import type { MakeAdapterServer } from "../contracts/adapter-bench.ts";
import { openSocket, requestBytes } from "../contracts/adapter-bench.ts";
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
