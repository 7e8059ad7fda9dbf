/** The fetch adapter: the contract, and what is its own. */
import { describe, expect, it, test } from "vitest";
import { fetchVerify, fetchWebhook } from "../../adapters/fetch.ts";
import { adapterContract, type MakeAdapterServer } from "../../src/testing/adapter-contract.ts";
import { bridge } from "./fetch-bridge.ts";
import { memoryReceiver, SECRET, signedEvent } from "./receivers.ts";
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
    expect(count).toBeGreaterThanOrEqual(33);
  });

  const post = (init: RequestInit = {}) =>
    new Request("http://a.example/webhooks", { method: "POST", ...signedEvent(), ...init });

  it("needs no server", async () => {
    const { receiver, handled } = memoryReceiver();
    const answer = await fetchWebhook(receiver)(post());
    expect([answer.status, await answer.json(), handled]).toEqual([200, { outcome: "handled" }, ["message.inbound"]]);
  });

  it("knows a body that someone else is reading", async () => {
    const { receiver } = memoryReceiver();
    const request = post();
    request.body?.getReader();
    expect((await fetchWebhook(receiver)(request)).status).toBe(500);
  });

  it("never cancels the body: on some hosts that closes the connection before the answer", async () => {
    const { receiver } = memoryReceiver();
    let cancelled = false;
    const chunks = Array.from({ length: 10 }, () => Buffer.alloc(65_536, "x"));
    const body = new ReadableStream({
      pull: (controller) => (chunks.length > 0 ? controller.enqueue(chunks.pop()) : controller.close()),
      cancel: () => {
        cancelled = true;
      },
    });
    const answer = await fetchWebhook(receiver)(post({ body, duplex: "half" } as RequestInit));
    expect([answer.status, cancelled, chunks.length > 0]).toEqual([413, false, true]);
  });

  it("answers 400 to a body that breaks off, or is shorter than declared (RCV-3)", async () => {
    const { receiver, handled } = memoryReceiver();
    const { body, headers } = signedEvent();
    const broken = new ReadableStream({
      start: (controller) => {
        controller.enqueue(body);
        setImmediate(() => controller.error(new Error("reset")));
      },
    });
    const requests = [
      post({ body: broken, headers, duplex: "half" } as RequestInit),
      post({ headers: { ...headers, "content-length": "999" } }),
    ];
    for (const request of requests) expect((await fetchWebhook(receiver)(request)).status).toBe(400);
    expect(handled).toEqual([]);
  });
});

describe("fetchVerify()", () => {
  const verify = fetchVerify({ secrets: SECRET });

  it("gives the event and the bytes (RCV-1)", async () => {
    const event = signedEvent();
    const delivery = await verify(new Request("http://a.example/", { method: "POST", ...event }));
    expect(delivery).toMatchObject({ ok: true, event: { eventType: "message.inbound" } });
    expect(delivery.ok && event.body.equals(delivery.bytes)).toBe(true);
  });

  it("gives the answer to what it refuses (RCV-2)", async () => {
    const delivery = await verify(new Request("http://a.example/", { method: "POST", body: signedEvent().body }));
    expect(delivery.ok || [delivery.response.status, await delivery.response.json()]).toEqual([
      401,
      { error: "unauthorized" },
    ]);
  });
});
