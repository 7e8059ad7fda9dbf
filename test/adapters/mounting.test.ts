/** What no adapter can be mounted with: options that it does not have, and anything in place of a receiver. */
import Fastify from "fastify";
import { describe, expect, it } from "vitest";
import { expressVerify, expressWebhook } from "../../adapters/express.ts";
import { type FastifyWebhookOptions, fastifyVerify, fastifyWebhook } from "../../adapters/fastify.ts";
import { fetchVerify, fetchWebhook } from "../../adapters/fetch.ts";
import { drainRoute, nextPagesWebhook, nextWebhook } from "../../adapters/next.ts";
import { nodeWebhook } from "../../adapters/node.ts";
import { SetupError } from "../../src/index.ts";
import { memoryReceiver, SECRET, signedEvent } from "./receivers.ts";

const { receiver } = memoryReceiver();
const tenant = () => undefined;
/** As JavaScript, or a spread object, passes them: the types of the adapters refuse the literals. */
const misspelt = <Options extends object>(options: object, right: Options): Options => ({ ...right, ...options });

const registered = (options: object) => {
  const app = Fastify();
  app.register(fastifyWebhook, misspelt<FastifyWebhookOptions>(options, { receiver, path: "/webhooks" }));
  return app;
};

describe("an option that an adapter does not have", () => {
  it.each([
    ["nodeWebhook()", "tenant", () => nodeWebhook(receiver, misspelt({ tennant: tenant }, {}))],
    ["expressWebhook()", "tenant", () => expressWebhook(receiver, misspelt({ tennant: tenant }, {}))],
    ["fetchWebhook()", "route", () => fetchWebhook(receiver, misspelt({ rout: "sms" }, {}))],
    ["nextWebhook()", "drain", () => nextWebhook(receiver, misspelt({ drian: "off" }, {}))],
    ["nextPagesWebhook()", "tenant", () => nextPagesWebhook(receiver, misspelt({ tennant: tenant }, {}))],
    ["drainRoute()", "budgetMs", () => drainRoute(receiver, misspelt({ budgetMss: 1 }, { secret: SECRET }))],
    ["expressVerify()", "tenant", () => expressVerify(misspelt({ tennant: tenant }, { secrets: SECRET }))],
    ["fastifyVerify()", "maxBodyBytes", () => fastifyVerify(misspelt({ maxBodyByte: 1024 }, { secrets: SECRET }))],
    ["fetchVerify()", "toleranceMs", () => fetchVerify(misspelt({ tolerancMs: 1000 }, { secrets: SECRET }))],
  ])("is refused by %s, which names the likely one", (owner, likely, make) => {
    expect(make).toThrow(SetupError);
    expect(make).toThrow(owner);
    expect(make).toThrow(`Did you mean "${likely}"?`);
  });

  it("is refused by fastifyWebhook() when the plugin loads", async () => {
    const app = registered({ tennant: tenant });
    await expect(async () => app.ready()).rejects.toThrow(/fastifyWebhook\(\) has no option "tennant".*"tenant"/);
  });

  it("does not mean Fastify's own keys", async () => {
    const app = registered({ prefix: "/api", logLevel: "warn", logSerializers: {} });
    const { body, headers } = signedEvent();
    const answer = await app.inject({ method: "POST", url: "/api/webhooks", headers, payload: body });
    expect(answer.statusCode).toBe(200);
  });
});

describe.each([
  ["nothing", undefined],
  ["null", null],
  ["the receiver's options", { secrets: SECRET }],
])("%s in place of the receiver", (_what, given) => {
  const none = given as unknown as typeof receiver;

  it.each([
    ["nodeWebhook()", () => nodeWebhook(none)],
    ["expressWebhook()", () => expressWebhook(none)],
    ["fetchWebhook()", () => fetchWebhook(none)],
    ["nextWebhook()", () => nextWebhook(none)],
    ["nextPagesWebhook()", () => nextPagesWebhook(none)],
    ["drainRoute()", () => drainRoute(none, { secret: SECRET })],
  ])("is refused by %s when it is mounted", (owner, make) => {
    expect(make).toThrow(SetupError);
    expect(make).toThrow(`${owner} takes the receiver that createReceiver() makes`);
  });

  it("is refused by fastifyWebhook() when the plugin loads", async () => {
    const app = registered({ receiver: none });
    await expect(async () => app.ready()).rejects.toThrow("fastifyWebhook() takes the receiver");
  });
});

describe("the path of fastifyWebhook()", () => {
  it.each([
    [undefined, ""],
    [7, ""],
    ["", ""],
    ["webhooks", ""],
    ["webhooks", "/api"],
  ])("is refused when it is %j below the prefix %j", async (path, prefix) => {
    const app = registered({ path, prefix });
    const refused = { code: "invalid_option", message: expect.stringContaining('path: "/webhooks"') };
    await expect(async () => app.ready()).rejects.toMatchObject(refused);
  });

  it("may be empty below a prefix", async () => {
    const app = registered({ path: "", prefix: "/api" });
    const { body, headers } = signedEvent();
    const answer = await app.inject({ method: "POST", url: "/api", headers, payload: body });
    expect(answer.statusCode).toBe(200);
  });
});
