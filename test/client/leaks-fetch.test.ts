/** What `fetch` fails with may hold the request, or quote it: nobody is told of it. */
import { describe, expect, it } from "vitest";
import { ECHO, playAll, serviceThat, Told, talkativeClient, tokenAnswer } from "./leaks-support.ts";

const CALLS = 11;

/** What libraries that stand in for `fetch` throw: errors that hold the request, or quote it. */
const THROWN: Readonly<Record<string, (input: string, init: RequestInit) => unknown>> = {
  "holds the request": (input, init) => Object.assign(new TypeError("fetch failed"), { input, init, config: init }),
  "has a cause that holds it": (input, init) =>
    new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET", input, init }) }),
  "quotes the headers": (_, { headers }) => new Error(`cannot send ${JSON.stringify(headers)}`),
  "quotes the body": (_, { body }) => new Error(`cannot send ${body}`),
  "quotes the address": (input) => new Error(`request to ${input} failed, reason: reset`),
  "quotes all in its cause": (input, init) =>
    new Error("failed", { cause: new Error(`${input} ${JSON.stringify(init)} ${init.body}`) }),
  "is several": (input, init) =>
    new AggregateError([Object.assign(new Error(JSON.stringify(init.headers)), { input })], "fetch failed"),
  "has them in its name and code": (_, { headers }) =>
    Object.assign(new Error("failed"), { name: JSON.stringify(headers), code: JSON.stringify(headers), errno: ECHO }),
  "shows itself as it likes": (_, init) =>
    Object.assign(new Error("failed"), {
      toJSON: () => init,
      toString: () => JSON.stringify(init),
      [Symbol.for("nodejs.util.inspect.custom")]: () => JSON.stringify(init),
    }),
  "is the request itself": (input, init) => ({ input, ...init }),
  "is a text": (_, init) => JSON.stringify(init),
};

describe("a fetch that fails", () => {
  it.each(Object.entries(THROWN))("tells nobody what it knows when its error %s", async (_, thrown) => {
    const told = new Told();
    const failing = (input: unknown, init: RequestInit = {}) => Promise.reject(thrown(String(input), init));
    const isToken = (input: unknown) => String(input).endsWith("/token");
    const forCalls: typeof fetch = async (input, init) => (isToken(input) ? tokenAnswer() : failing(input, init));
    await playAll(talkativeClient(forCalls, told), told);
    await playAll(talkativeClient(failing, told), told);
    await playAll(talkativeClient(failing, told, { authMethod: "basic" }), told);
    expect(told.counts.get("ConnectionError")).toBe(3 * CALLS);
    expect(told.leaks()).toEqual([]);
  });

  it("tells nobody when it is the body that fails", async () => {
    const told = new Told();
    const service = serviceThat((path, init) => {
      const start = (controller: ReadableStreamDefaultController) =>
        controller.error(Object.assign(new Error(JSON.stringify(init.headers)), { path, init }));
      return new Response(new ReadableStream({ start }));
    });
    await playAll(talkativeClient(service, told), told);
    expect(told.counts.get("ConnectionError")).toBe(CALLS);
    expect(told.leaks()).toEqual([]);
  });

  it("tells nobody when it never answers", async () => {
    const told = new Told();
    const service = serviceThat(() => new Promise(() => {}));
    await playAll(talkativeClient(service, told, { timeoutMs: 1 }), told);
    expect(told.counts.get("TimeoutError")).toBe(CALLS);
    expect(told.leaks()).toEqual([]);
  });
});
