/** The inspector behind fetch and Next.js: the contract through their route functions, and what is their own. */
import { describe, expect, it, test } from "vitest";
import { bodyOf, fetchInspector } from "../../adapters/fetch.ts";
import { type NextRoutes, nextInspector } from "../../adapters/next.ts";
import type { Mountable } from "../../src/inspector/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import type { MakeInspectorServer } from "../contracts/adapter-bench.ts";
import { inspectorAdapterContract } from "../contracts/inspector-adapter.ts";
import { bridge } from "./fetch-bridge.ts";
import { inspectorAt } from "./inspectors.ts";
import { serve } from "./serving.ts";

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
