/** The Next.js adapter without Next.js: the contract for both routers, draining, and module reloads. */
import { once } from "node:events";
import { afterEach, describe, expect, it, test, vi } from "vitest";
import { nextPagesWebhook, nextWebhook } from "../../adapters/next.ts";
import { type InboxStore, SetupError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { adapterContract } from "../contracts/adapter.ts";
import type { MakeAdapterServer } from "../contracts/adapter-bench.ts";
import { bridge } from "./fetch-bridge.ts";
import { memoryReceiver, signedEvent } from "./receivers.ts";
import { bytesOf, serve } from "./serving.ts";

const { after } = vi.hoisted(() => ({ after: vi.fn<(task: () => unknown) => void>() }));
vi.mock("next/server.js", () => ({ after }));
afterEach(() => after.mockReset());

type Routes = ReturnType<typeof nextWebhook>;

const makeAppServer: MakeAdapterServer = ({ receiver, bodyState }) => {
  const routes = nextWebhook(receiver);
  const route = async (request: Request) => {
    if (new URL(request.url).pathname === "/json") {
      return request.json().then(Response.json, () => new Response(null, { status: 400 }));
    }
    if (bodyState === "parsed") await request.json();
    return routes[request.method as keyof Routes](request);
  };
  return serve(bridge(route));
};

const makePagesServer: MakeAdapterServer = ({ receiver, bodyState }) => {
  const webhook = nextPagesWebhook(receiver);
  return serve(async (request, response) => {
    const bytes = request.url === "/json" || bodyState !== "raw" ? await bytesOf(request) : undefined;
    // What Next.js does with a body, unless `config` says that it must not.
    if (bytes !== undefined && request.url !== "/json") Object.assign(request, { body: JSON.parse(bytes.toString()) });
    if (request.url !== "/json") return webhook(request, response);
    try {
      response.end(JSON.stringify(JSON.parse(`${bytes}`)));
    } catch {
      response.writeHead(400).end();
    }
  });
};

/** A receiver whose inbox other receivers of the process can take over. */
function reloadable(store: InboxStore<never>) {
  return memoryReceiver({ store: { ...store, capabilities: { ...store.capabilities, durable: true } } });
}

const storeAt = (location: string): InboxStore<never> => ({ ...memoryStore({ volatile: true }), location });
const post = () => new Request("http://a.example/webhooks", { method: "POST", ...signedEvent() });

describe("nextWebhook()", () => {
  const count = adapterContract({ test, expect, makeServer: makeAppServer, bodyStates: ["raw", "parsed"] });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(33);
  });

  it("drains after the response of an accepted event, and after no other", async () => {
    const { receiver, handled } = reloadable(storeAt("test:after"));
    const { POST, GET } = nextWebhook(receiver);
    expect((await POST(post())).status).toBe(200);
    expect([after.mock.calls.length, handled]).toEqual([1, []]);
    await after.mock.calls[0]?.[0]();
    expect(handled).toEqual(["message.inbound"]);
    await GET(new Request("http://a.example/webhooks"));
    await POST(new Request("http://a.example/webhooks", { method: "POST", body: "x" }));
    expect(after).toHaveBeenCalledTimes(1);
    await receiver.stop();
  });

  it("leaves draining to a running receiver, and to others when it is off", async () => {
    const { receiver } = memoryReceiver();
    await receiver.start();
    await nextWebhook(receiver).POST(post());
    await receiver.stop();
    const other = memoryReceiver().receiver;
    await nextWebhook(other, { drain: "off" }).POST(post());
    expect(after).not.toHaveBeenCalled();
  });

  it("answers 200 for what is stored even where after() is not to be had, and says so", async () => {
    after.mockImplementation(() => {
      throw new Error("`after` was called outside a request scope.");
    });
    const { receiver, lines } = memoryReceiver();
    expect((await nextWebhook(receiver).POST(post())).status).toBe(200);
    expect(lines.at(-1)?.message).toContain("Next.js 15.1");
  });

  it.each([
    [
      new Error("disk"),
      { reason: "Error", at: expect.arrayContaining([expect.stringMatching(/next\.test\.ts:\d+/)]) },
      "",
    ],
    [new SetupError("no_handlers", "Register a handler."), { code: "no_handlers" }, "Register a handler."],
  ])("logs what is wrong when the drain fails: %s", async (error, fields, told) => {
    const { receiver, lines } = memoryReceiver();
    receiver.drain = () => Promise.reject(error);
    await nextWebhook(receiver).POST(post());
    await after.mock.calls[0]?.[0]();
    expect(lines.at(-1)?.fields).toEqual(fields);
    expect(lines.at(-1)?.message).toContain(told);
    expect(JSON.stringify(lines)).not.toContain("disk");
  });

  it("refuses an unknown drain", () => {
    const make = () => nextWebhook(memoryReceiver().receiver, { drain: "later" as "off" });
    expect(make).toThrow(
      expect.objectContaining({ code: "invalid_option", message: 'Option "drain" must be "after" or "off".' }),
    );
  });
});

describe("nextPagesWebhook()", () => {
  const count = adapterContract({ test, expect, makeServer: makePagesServer, bodyStates: ["raw", "parsed"] });

  it("was held to the whole contract", () => {
    expect(count).toBeGreaterThanOrEqual(33);
  });
});

describe("nextPagesWebhook() with a client that has gone", () => {
  it("resolves although the response closed before the route ran", async () => {
    const webhook = nextPagesWebhook(memoryReceiver().receiver);
    const resolved = new Promise<string>((resolve) => {
      void serve(async (request, response) => {
        response.destroy();
        await once(response, "close");
        await webhook(request, response);
        resolve("resolved");
      }).then(({ port }) => fetch(`http://127.0.0.1:${port}/`, { method: "POST", ...signedEvent() }).catch(() => {}));
    });
    expect(await resolved).toBe("resolved");
  });
});

describe("a module that is evaluated again", () => {
  it("goes on with the inbox of the receiver before, and with its own handlers", async () => {
    const store = storeAt("test:reload");
    const first = reloadable(store);
    const second = reloadable(store);
    const third = reloadable(storeAt("test:other"));
    for (const { receiver } of [first, third]) await nextWebhook(receiver).POST(post());
    await nextWebhook(second.receiver).POST(post());
    await second.receiver.drain();
    expect([first.handled, second.handled.length, third.handled]).toEqual([[], 2, []]);
    for (const { receiver } of [second, third]) await receiver.stop();
  });

  it("leaves a receiver alone that is mounted twice", () => {
    const { receiver } = reloadable(storeAt("test:twice"));
    for (const _route of [1, 2]) nextWebhook(receiver);
    // Taking over itself would end the registration of handlers.
    expect(() => receiver.onLate(() => {})).not.toThrow();
  });

  it("does not mix up receivers in memory", async () => {
    const first = memoryReceiver();
    const second = memoryReceiver();
    for (const { receiver } of [first, second]) nextWebhook(receiver);
    await first.receiver.stop();
    expect((await nextWebhook(second.receiver).POST(post())).status).toBe(200);
  });
});
