/** What a source answers in its own form, behind every adapter over real HTTP: handshakes, challenges, and what was accepted. */
import { createHmac } from "node:crypto";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressVerify, expressWebhook } from "../../adapters/express.ts";
import { fetchWebhook } from "../../adapters/fetch.ts";
import { createReceiver, type SourceEvents, type WebhookSource } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type defineSource, hmacSource, isSameSecret, slack } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { fixtures, type SignedRequest, signedRequest, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { serve } from "./serving.ts";
import { ADAPTERS } from "./source-cases.ts";

const SECRET = "acme_tests_0123456789abcdef";
const TOKEN = "a token of the application";

type Definition = Parameters<typeof defineSource>[0];

/** Answers in every way that a definition can. */
const acme = (changes: Partial<Definition> = {}) =>
  hmacSource({
    preset: "acme",
    header: "acme-signature",
    identity: "digest",
    type: { body: "type" },
    lastRetryMs: 0,
    accepted: { status: 204 },
    handshake: ({ plainToken: plain }, _kept, key) =>
      typeof plain === "string"
        ? { body: { plain, proof: Buffer.from(key.hmac("sha256", plain)).toString("hex") } }
        : null,
    challenge({ query }) {
      const asked = new URLSearchParams(query);
      return isSameSecret(asked.get("token") ?? "", TOKEN) ? { body: asked.get("challenge") ?? "" } : null;
    },
    ...(changes as object),
  })({ secrets: SECRET });

function signed(event: object): SignedRequest {
  const body = Buffer.from(JSON.stringify(event));
  const headers = { "acme-signature": createHmac("sha256", SECRET).update(body).digest("hex") };
  return { method: "POST", headers, body };
}

async function receiving(source: WebhookSource<SourceEvents>, mount: (receiver: never) => Promise<number>) {
  const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger });
  onTestFinished(() => receiver.stop());
  const outcomes: string[] = [];
  receiver.instrument({ delivery: () => ({ ended: ({ outcome }) => void outcomes.push(outcome) }) });
  const seen: object[] = [];
  receiver.onAny((event) => void seen.push(event));
  const port = await mount(receiver as never);
  const send = async (request: SignedRequest | { readonly method: string }, query = "") => {
    const answer = await fetch(`http://127.0.0.1:${port}/webhooks${query}`, request);
    return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text(), answer };
  };
  return { receiver, outcomes, seen, send };
}

const PLAIN = "text/plain; charset=utf-8";

describe.each(Object.entries(ADAPTERS))("%s", (_name, mount) => {
  it("answers a handshake with the key that signed it, and stores nothing", async () => {
    const { receiver, outcomes, seen, send } = await receiving(acme(), mount);
    const proof = createHmac("sha256", SECRET).update("abc").digest("hex");
    const { status, type, text } = await send(signed({ plainToken: "abc" }));
    // Fastify adds a charset.
    expect([status, type?.split(";")[0], JSON.parse(text)]).toEqual([200, "application/json", { plain: "abc", proof }]);
    const forged = { ...signed({ plainToken: "abc" }), headers: { "acme-signature": "0".repeat(64) } };
    expect(await send(forged)).toMatchObject({ status: 401, text: '{"error":"unauthorized"}' });
    expect([seen, outcomes]).toEqual([[], ["handshake", "refused"]]);
    expect(receiver.counters).toMatchObject({ handshakes: 1, "refused:signature_mismatch": 1 });
    expect((await receiver.inbox.find({})).items).toEqual([]);
  });

  it("answers a challenge whose query proves who asks, and no other", async () => {
    const { outcomes, send } = await receiving(acme(), mount);
    const query = (token: string) => `?${new URLSearchParams({ token, challenge: "<b>é1158201444</b>" })}`;
    const answered = await send({ method: "GET" }, query(TOKEN));
    expect(answered).toMatchObject({ status: 200, type: PLAIN, text: "<b>é1158201444</b>" });
    expect(answered.answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(await send({ method: "GET" }, query("another"))).toMatchObject({ status: 401 });
    expect(await send({ method: "GET" })).toMatchObject({ status: 401 });
    expect((await send({ method: "DELETE" }, query(TOKEN))).answer.headers.get("allow")).toBe("GET, POST, PUT");
    expect(outcomes).toEqual(["handshake", "refused", "refused", "refused"]);
  });

  it("gives what was accepted the source's own answer", async () => {
    const { outcomes, seen, send } = await receiving(acme(), mount);
    expect(await send(signed({ type: "paid" }))).toMatchObject({ status: 204, type: null, text: "" });
    expect(await send(signed({ type: "paid" }))).toMatchObject({ status: 204, type: null, text: "" });
    expect([seen, outcomes]).toEqual([[{ type: "paid" }], ["handled", "duplicate"]]);
  });

  it("answers Slack's url_verification once it is verified", async () => {
    const { seen, send } = await receiving(slack({ secrets: TEST_SECRETS.slack }), mount);
    const verification = { type: "url_verification", token: "t", challenge: "3eZbrw1aB10FFaqjs1" };
    const request = signedRequest(verification, { source: "slack" });
    expect(await send(request)).toMatchObject({ status: 200, type: PLAIN, text: "3eZbrw1aB10FFaqjs1" });
    expect(await send(signedRequest(verification, { source: "slack", secret: "another" }))).toMatchObject({
      status: 401,
    });
    expect(await send(signedRequest("ssl_check=1&token=t", { source: "slack" }))).toMatchObject({
      status: 200,
      text: "",
    });
    expect(seen).toEqual([]);
  });
});

describe("slack()", () => {
  const MANY_FIELDS = Array.from({ length: 1_000 }, (_, index) => `f${index}=1`).join("&");

  it.each([
    ["the inner event's", fixtures.slack({ type: "reaction_added" }), "reaction_added"],
    ["a command's name", "command=%2Fdeploy&text=now&trigger_id=1.2", "/deploy"],
    ["a command's name behind a thousand fields", `${MANY_FIELDS}&command=%2Fdeploy`, "/deploy"],
    [
      "an interaction's",
      `payload=${encodeURIComponent('{"type":"block_actions","trigger_id":"1.2"}')}`,
      "block_actions",
    ],
    ["that of what is not an event", { type: "app_rate_limited", team_id: "T1" }, "app_rate_limited"],
  ])("takes as type %s", async (_, content, type) => {
    const mount = ADAPTERS.Express as never;
    const { receiver, send } = await receiving(slack({ secrets: TEST_SECRETS.slack }), mount);
    expect(await send(signedRequest(content, { source: "slack" }))).toMatchObject({ status: 200, text: "" });
    expect((await receiver.inbox.find({})).items).toMatchObject([{ eventType: type, state: "done" }]);
  });

  it.each(["", "a=1&a=2", "payload=x"])("quarantines the form %j", async (form) => {
    const { receiver, send } = await receiving(slack({ secrets: TEST_SECRETS.slack }), ADAPTERS.Express as never);
    await send(signedRequest(form, { source: "slack" }));
    expect((await receiver.inbox.findQuarantined({})).items).toHaveLength(1);
  });
});

describe("a definition that fails", () => {
  const fails = () => {
    throw new Error("a bug");
  };

  it.each([
    ["handshake() threw", fails],
    ["handshake() returned no answer", () => ({ status: 302 }) as never],
    ["handshake() returned a header in its type", () => ({ contentType: "a\r\nb: c" }) as never],
  ])("keeps the body in quarantine: %s", async (_, handshake) => {
    const { receiver, send } = await receiving(acme({ handshake }), ADAPTERS.Express as never);
    expect(await send(signed({ type: "paid" }))).toMatchObject({ status: 204 });
    expect((await receiver.inbox.findQuarantined({})).items).toMatchObject([{ reason: "source_failed" }]);
  });

  it.each([
    ["challenge() threw", fails],
    ["challenge() returned no answer", () => "yes" as never],
  ])("answers 500: %s", async (_, challenge) => {
    const { send } = await receiving(acme({ challenge }), ADAPTERS.Express as never);
    expect(await send({ method: "GET" })).toMatchObject({ status: 500, text: '{"error":"misconfigured"}' });
  });

  it("is refused when it is made", () => {
    expect(() => acme({ accepted: { status: 404 } })).toThrow(/accepted.*200 to 299/);
    expect(() => acme({ challenge: "yes" as never })).toThrow(/challenge/);
  });
});

describe("the query of a request", () => {
  const watched = () => {
    const queries: string[] = [];
    const challenge: Definition["challenge"] = ({ query }) => {
      queries.push(query);
      return {};
    };
    const source = acme({ challenge });
    return {
      queries,
      receiver: createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger }),
    };
  };

  it("is as it came, behind a router of Express and middleware that rewrites the URL", async () => {
    const { queries, receiver } = watched();
    const router = express.Router();
    router.use((request, _response, next) => {
      request.url = "/hooks";
      next();
    });
    router.all("/hooks", expressWebhook(receiver));
    const { port, close } = await serve(express().use("/in", router));
    onTestFinished(close);
    await fetch(`http://127.0.0.1:${port}/in/hooks?a=%27b&c=?`);
    expect(queries).toEqual(["a=%27b&c=?"]);
  });

  it("ends before the fragment of a fetch Request", async () => {
    const { queries, receiver } = watched();
    await fetchWebhook(receiver)(new Request("http://localhost/hooks?a=%27b&c=?#d"));
    await fetchWebhook(receiver)(new Request("http://localhost/hooks#a?b"));
    expect(queries).toEqual(["a=%27b&c=?", ""]);
  });

  it("reaches a source that only verifies", async () => {
    const { port, close } = await serve(express().all("/hooks", expressVerify({ source: acme() })));
    onTestFinished(close);
    const answer = await fetch(
      `http://127.0.0.1:${port}/hooks?${new URLSearchParams({ token: TOKEN, challenge: "1" })}`,
    );
    expect([answer.status, await answer.text()]).toEqual([200, "1"]);
    expect((await fetch(`http://127.0.0.1:${port}/hooks`)).status).toBe(401);
    const proved = await fetch(`http://127.0.0.1:${port}/hooks`, signed({ plainToken: "abc" }));
    expect(await proved.json()).toMatchObject({ plain: "abc" });
  });
});
