/** The fetch adapter, and the inspector behind it and Next.js: the contracts, and what is their own. */
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { describe, expect, it, test } from "vitest";
import { bodyOf, fetchInspector, fetchVerify, fetchWebhook, readRequestBody } from "../../adapters/fetch.ts";
import { type NextRoutes, nextInspector } from "../../adapters/next.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import type { Mountable } from "../../src/tools/inspector/index.ts";
import { adapterContract } from "../contracts/adapter.ts";
import type { MakeAdapterServer, MakeInspectorServer } from "../contracts/adapter-bench.ts";
import { inspectorAdapterContract } from "../contracts/inspector-adapter.ts";
import { bridge } from "./fetch-bridge.ts";
import { inspectorAt } from "./inspectors.ts";
import { memoryReceiver, recordingLogger, SECRET, signedEvent } from "./receivers.ts";
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

  it("gives the event and the bytes, and the answer to what it refuses (RCV-1, RCV-2)", async () => {
    const event = signedEvent();
    const delivery = await verify(new Request("http://a.example/", { method: "POST", ...event }));
    expect(delivery).toMatchObject({ ok: true, event: { eventType: "message.inbound" } });
    expect(delivery.ok && event.body.equals(delivery.bytes)).toBe(true);
    const refused = await verify(new Request("http://a.example/", { method: "POST", body: signedEvent().body }));
    expect(refused.ok || [refused.response.status, await refused.response.json()]).toEqual([
      401,
      { error: "unauthorized" },
    ]);
  });
});

describe("what is no Request", () => {
  const request = new Request("http://a.example/", { method: "POST", ...signedEvent() });
  const node = Object.assign(new IncomingMessage(new Socket()), { method: "POST" });
  const mistakes: readonly [string, unknown][] = [
    ["handle(c.req.raw)", { raw: request, method: "POST", header: () => "" }],
    ["handle(c.req.raw)", { req: { raw: request }, env: {} }],
    ["handle(event.req)", { req: request }],
    ["toWebRequest(event)", { node: { req: node }, method: "POST" }],
    ["In Elysia", { request, set: {} }],
    ["oncehook/node", node],
    ["the Request itself", undefined],
  ];

  it.each(mistakes)("is answered with 500, and the log says once: %s", async (fix, given) => {
    const { receiver, lines, handled } = memoryReceiver();
    const handle = fetchWebhook(receiver);
    const answers = [await handle(given as Request), await handle(given as Request)];
    expect(answers.map(({ status }) => status)).toEqual([500, 500]);
    expect(await answers[0]?.json()).toEqual({ error: "misconfigured" });
    expect(lines).toMatchObject([{ level: "error", fields: { code: "wrong_arguments" } }]);
    expect(lines[0]?.message).toContain(fix);
    expect(handled).toEqual([]);
  });

  it("is answered by fetchVerify() and fetchInspector() too", async () => {
    const { logger, lines } = recordingLogger();
    const delivery = await fetchVerify({ secrets: SECRET, logger })({ raw: request } as never);
    expect(delivery.ok || delivery.response.status).toBe(500);
    const inspect = fetchInspector({ ...inspectorAt<Request>("/inspector").inspector, logger });
    expect((await inspect({ raw: request } as never)).status).toBe(500);
    expect(lines.map(({ message }) => /^\w+/.exec(message)?.[0])).toEqual(["fetchVerify", "fetchInspector"]);
  });
});

// The reader of fetch bodies on streams that no host makes.

describe("readRequestBody()", () => {
  it("says cut of a body that came to its end just before, for what it held is given away", async () => {
    const ends: (() => void)[] = [];
    const body = new ReadableStream({ start: (controller) => void ends.push(() => controller.close()) });
    const request = new Request("http://a.example/", { method: "POST", body, duplex: "half" } as RequestInit);
    const cuts: (() => void)[] = [];
    const onCut = (cut: () => void) => void cuts.push(cut);
    const read = readRequestBody(request, { maxBytes: 100, declaredBytes: null, received() {}, onCut });
    for (const act of [...ends, ...cuts]) act();
    expect(await read).toEqual({ ok: false, reason: "cut" });
  });
});

const nextRoutes = (inspector: Mountable<Request>) => {
  const routes = nextInspector(inspector);
  return (request: Request) => routes[request.method as keyof NextRoutes](request);
};

/** What the host's router does: `/inspector` and all below it. */
const serverOf =
  (make: (inspector: Mountable<Request>) => (request: Request) => Promise<Response>): MakeInspectorServer<Request> =>
  ({ inspector }) => {
    const inspect = make(inspector);
    const route = async (request: Request) => {
      const { pathname } = new URL(request.url);
      if (/^\/inspector(?:\/|$)/.test(pathname)) return inspect(request);
      return pathname === "/other" ? new Response("other") : new Response(null, { status: 404 });
    };
    return serve(bridge(route));
  };

describe.each([
  ["fetchInspector", fetchInspector],
  ["nextInspector", nextRoutes],
])("%s()", (_name, make) => {
  const count = inspectorAdapterContract({ test, expect, makeServer: serverOf(make), bodyStates: ["raw"] });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(21);
  });

  it("gives authorize the request itself, and needs no server", async () => {
    const { inspector, seen } = inspectorAt<Request>("/inspector");
    const request = new Request("http://a.example/inspector/?a=b", { headers: { host: "a.example" } });
    expect(await (await make(inspector)(request)).text()).toBe("here");
    expect([seen[0]?.native, seen[0]?.url]).toEqual([request, "/inspector/?a=b"]);
  });

  it("has no body for HEAD", async () => {
    const { inspector } = inspectorAt<Request>("/inspector");
    const answer = await make(inspector)(new Request("http://a.example/inspector/", { method: "HEAD" }));
    expect([answer.headers.get("content-length"), answer.body]).toEqual(["4", null]);
  });

  it("ends the stream of a body that the host cancels", async () => {
    const inspector: Mountable<Request> = {
      path: "/inspector",
      logger: silentLogger,
      handle: async ({ signal }) => ({ status: 200, headers: {}, body: untilAborted(signal) }),
    };
    const { body } = await make(inspector)(new Request("http://a.example/inspector/"));
    const reader = body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first");
    await reader?.cancel();
    expect(endings.pop()).toBe("ended");
  });

  it("knows a body that was read before", async () => {
    const { inspector } = inspectorAt<Request>("/inspector", async ({ readJson }) => (await readJson(10)).ok);
    const request = new Request("http://a.example/inspector/", { method: "POST", body: "{}" });
    await request.text();
    expect(await (await make(inspector)(request)).text()).toBe("false");
  });
});

const endings: string[] = [];

async function* untilAborted(signal: AbortSignal): AsyncGenerator<string> {
  try {
    yield "first";
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  } finally {
    endings.push("ended");
  }
}

// A stream of the inspector as the body of a `Response`.

const gone = () => {};

describe("bodyOf()", () => {
  it("ends at once a stream whose reader was gone before it began", () => {
    let endings = 0;
    const iterator: AsyncIterator<string> = {
      next: () => new Promise<never>(() => {}),
      async return() {
        endings += 1;
        return { done: true, value: undefined };
      },
    };
    bodyOf({ [Symbol.asyncIterator]: () => iterator }, { signal: AbortSignal.abort(), gone });
    expect(endings).toBe(1);
  });

  it("fails with a message of its own, for that of the stream may hold anything", async () => {
    const chunks = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("row of +15550100002")) }),
    };
    const body = new Response(bodyOf(chunks, { signal: new AbortController().signal, gone }));
    await expect(body.text()).rejects.toThrow(/^The inspector's stream failed\.$/);
  });
});
