import { describe, expect, it } from "vitest";
import {
  ApiError,
  ConflictError,
  ConnectionError,
  ServerError,
  TimeoutError,
  UnknownApiError,
  UpstreamError,
} from "../../src/client/index.ts";
import type { ApiAction } from "../../src/emulator/faults/rule.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { answerJson, failureOf, SEND_PATH, sendOf, startClient, startServer } from "./support.ts";

const WHOAMI = { route: "GET /api/core/whoami" };
const SEND = { route: `POST ${SEND_PATH}` };
const RESET: ApiAction = { type: "reset", when: "before" };
const LOST: ApiAction = { type: "reset", when: "after" };
const SECRET = "a-secret-of-your-own-32-characters";

const wrapper = (code: string, details = {}) => ({ error: { code, message: "text", details }, requestId: "req_1" });

describe("a call is made again", () => {
  it.each<[string, ApiAction]>([
    ["500", { type: "status", status: 500 }],
    ["503", { type: "status", status: 503 }],
    ["UPSTREAM_ERROR", { type: "status", status: 502 }],
    ["a 502 page", { type: "badGateway" }],
    ["a connection that breaks before", RESET],
    ["a connection that breaks after", LOST],
  ])("after %s (CLI-5)", async (_, action) => {
    const fault = { match: WHOAMI, action, times: 2 };
    const { client } = await startClient({ emulator: { faults: [fault], port: 0 } });
    const { attempts } = await client.whoami().withResponse();
    expect(attempts).toBe(3);
  });

  it("after an answer that breaks off in the middle (CLI-5)", async () => {
    let calls = 0;
    const { client } = await startServer((_, response) => {
      calls += 1;
      if (calls > 1) return answerJson(response, 200, {});
      response.writeHead(200, { "content-length": "100" }).write('{"api');
      setImmediate(() => response.destroy());
    });
    const { attempts } = await client.whoami().withResponse();
    expect(attempts).toBe(2);
  });

  it("after a time-out of one attempt, which includes the body (CLI-5)", async () => {
    const clock = createFakeClock();
    let calls = 0;
    const { client } = await startServer(
      (_, response) => {
        calls += 1;
        if (calls > 1) return answerJson(response, 200, {});
        response.writeHead(200).write("{", () => void clock.advance(30_000));
      },
      { clock },
    );
    const { attempts } = await client.whoami().withResponse();
    expect(attempts).toBe(2);
  });

  it("at most twice by default, and the error counts the attempts", async () => {
    const { client, sentTo } = await startClient({
      emulator: { faults: [{ match: WHOAMI, action: { type: "status", status: 500 } }] },
    });
    const error = await failureOf(client.whoami(), ServerError);
    expect(error.attempts).toBe(3);
    expect(sentTo("/api/core/whoami").length).toBe(3);
  });

  it("never with maxRetries 0", async () => {
    const { client } = await startClient({ maxRetries: 0, emulator: { faults: [{ match: WHOAMI, action: RESET }] } });
    expect((await failureOf(client.whoami(), ConnectionError)).attempts).toBe(1);
  });
});

describe("the wait before a retry", () => {
  it.each([
    ["grows twofold with each retry", 0.5, [50, 100, 200, 250]],
    ["is as random as the whole of it", 0, [0, 0, 0, 0]],
    ["is bounded by maxMs", 0.999, [100, 200, 400, 500]],
  ])("%s", async (_, random, expected) => {
    const delays: number[] = [];
    const clock = createFakeClock();
    const { client } = await startClient({
      ...{ clock, maxRetries: 4, backoff: { baseMs: 100, maxMs: 500 }, random: () => random },
      onRetry: ({ delayMs }) => delays.push(delayMs),
      emulator: { faults: [{ match: WHOAMI, action: { type: "status", status: 500 } }] },
    });
    const failure = failureOf(client.whoami(), ServerError);
    await clock.advance(2_000);
    await failure;
    expect(delays).toEqual(expected);
  });

  it("is kept: nothing is sent before it is over", async () => {
    const clock = createFakeClock();
    const { client, sentTo } = await startClient({
      ...{ clock, backoff: { baseMs: 1_000 }, random: () => 0.5 },
      emulator: { faults: [{ match: WHOAMI, action: { type: "status", status: 500 }, times: 1 }] },
    });
    const call = client.whoami();
    await clock.advance(499);
    expect(sentTo("/api/core/whoami").length).toBe(1);
    await clock.advance(1);
    await call;
    expect(sentTo("/api/core/whoami").length).toBe(2);
  });

  it.each([
    ["seconds", () => "7"],
    ["an HTTP date", (now: number) => new Date(now + 7_000).toUTCString()],
  ])("is what the service asks for in %s", async (_, header) => {
    const clock = createFakeClock(1_760_000_000_000);
    const delays: number[] = [];
    let calls = 0;
    const { client } = await startServer(
      (_, response) => {
        calls += 1;
        if (calls === 1) response.setHeader("retry-after", header(clock.now()));
        answerJson(response, calls === 1 ? 503 : 200, {});
      },
      { clock, onRetry: ({ delayMs }) => delays.push(delayMs), backoff: { baseMs: 0 } },
    );
    const call = client.whoami();
    while (delays.length === 0) await new Promise(setImmediate);
    await clock.advance(7_000);
    await call;
    expect(delays).toEqual([7_000]);
  });

  it("is at most 60 s: a service that asks for more ends the call, and the error says how long", async () => {
    let calls = 0;
    const { client } = await startServer((_, response) => {
      calls += 1;
      response.setHeader("retry-after", "61");
      answerJson(response, 503, {});
    });
    const error = await failureOf(client.whoami(), ServerError);
    expect(error).toMatchObject({ attempts: 1, retryAfterMs: 61_000 });
    expect(calls).toBe(1);
  });

  it.each(["soon", "-5", "1.5", "", "9999-99-99"])("is the usual one when the service asks for %j", async (header) => {
    const { client } = await startServer((_, response) => {
      response.setHeader("retry-after", header);
      answerJson(response, 500, {});
    });
    expect(await failureOf(client.whoami(), ServerError)).toMatchObject({ attempts: 3, retryAfterMs: null });
  });
});

describe("a call is never made again", () => {
  it.each([
    [400, "INVALID_REQUEST"],
    [403, "FORBIDDEN"],
    [404, "NOT_FOUND"],
    [409, "CONFLICT"],
    [429, "RATE_LIMITED"],
    [418, "TEAPOT"],
  ])("after %i %s (CLI-6, SND-23)", async (status, code) => {
    let calls = 0;
    const { client } = await startServer(
      (_, response) => {
        calls += 1;
        answerJson(response, status, wrapper(code));
      },
      { maxRetries: 5, validateRequests: false },
    );
    const error = await failureOf(client.messages.send({} as never), ApiError);
    expect(error).toMatchObject({ status, code, attempts: 1 });
    expect(calls).toBe(1);
  });

  it("after a 409 of the service itself: a changed request needs a new key (CLI-6, SND-18, SND-23)", async () => {
    const { client, emulator, sentTo } = await startClient({ maxRetries: 5 });
    const options = { idempotencyKey: "order-1" };
    await client.messages.send(sendOf(emulator), options);
    const changed = client.messages.send(sendOf(emulator, { text: "changed" }), options);
    const error = await failureOf(changed, ConflictError);
    expect(error.message).toContain("a changed request needs a new key");
    expect(sentTo(SEND_PATH).length).toBe(2);
  });

  it("after a 5xx whose body says CONFLICT, for the body is authoritative (GEN-12, CLI-6)", async () => {
    const { client } = await startServer((_, response) => answerJson(response, 500, wrapper("CONFLICT")));
    expect((await failureOf(client.whoami(), ConflictError)).attempts).toBe(1);
  });

  it("after a rate limit, also with a Retry-After, which the error tells (GEN-11)", async () => {
    const action = { type: "status", status: 429, retryAfterSeconds: 5 } as const;
    const { client } = await startClient({ emulator: { faults: [{ match: WHOAMI, action }] } });
    const error = await failureOf(client.whoami(), UnknownApiError);
    expect(error).toMatchObject({ code: "RATE_LIMITED", status: 429, retryAfterMs: 5_000, attempts: 1 });
  });

  it("when its caller has aborted it in the wait", async () => {
    const controller = new AbortController();
    const { client, sentTo } = await startClient({
      backoff: { baseMs: 60_000 },
      onRetry: () => controller.abort(),
      emulator: { faults: [{ match: WHOAMI, action: { type: "status", status: 500 } }] },
    });
    await expect(client.whoami({ signal: controller.signal })).rejects.toMatchObject({ code: "aborted", attempts: 1 });
    expect(sentTo("/api/core/whoami").length).toBe(1);
  });
});

describe("a send", () => {
  it.each<[string, ApiAction]>([
    ["before the commit", RESET],
    ["after the commit", LOST],
  ])("whose connection breaks %s is one message (SND-17, SND-22)", async (_, action) => {
    const fault = { match: SEND, action, times: 2 };
    const { client, emulator, sentTo } = await startClient({ emulator: { faults: [fault], port: 0 } });
    const sent = await client.messages.send(sendOf(emulator));
    expect(sent.results.length).toBe(1);
    expect(emulator.control.messages().length).toBe(1);
    const sends = sentTo(SEND_PATH);
    expect(sends.length).toBe(3);
    expect(new Set(sends.map(({ body }) => body)).size).toBe(1);
    expect(new Set(sends.map(({ headers }) => headers.get("idempotency-key")))).toEqual(new Set([sent.idempotencyKey]));
  });

  it("keeps its bytes though the caller changes the request in between (SND-22)", async () => {
    const request = { to: ["+14155550123"] };
    const { client, emulator, sentTo } = await startClient({
      onRetry: () => request.to.push("+14155550124"),
      emulator: { faults: [{ match: SEND, action: LOST, times: 1 }] },
    });
    const sent = await client.messages.send(sendOf(emulator, request));
    expect(sent.results.length).toBe(1);
    const [first, second] = sentTo(SEND_PATH);
    expect(second?.body).toBe(first?.body);
  });

  it("that ends without an answer is taken up again by its error's key, and is one message (SND-17)", async () => {
    const { client, emulator } = await startClient({ emulator: { faults: [{ match: SEND, action: LOST, times: 3 }] } });
    const request = sendOf(emulator);
    const error = await failureOf(client.messages.send(request), ConnectionError);
    const { idempotencyKey } = error;
    const sent = await client.messages.send(request, idempotencyKey === null ? {} : { idempotencyKey });
    expect(sent.idempotencyKey).toBe(idempotencyKey);
    expect(emulator.control.messages().map(({ messageId }) => messageId)).toEqual([sent.results[0]?.messageId]);
  });

  it("of its own has a key of its own (SND-1)", async () => {
    const { client, emulator, sentTo } = await startClient();
    await client.messages.send(sendOf(emulator));
    await client.messages.send(sendOf(emulator));
    const keys = sentTo(SEND_PATH).map(({ headers }) => headers.get("idempotency-key"));
    expect(new Set(keys).size).toBe(2);
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });
});

describe("of the other calls", () => {
  it("a search is made again (CLI-5, SEA-8)", async () => {
    const { client } = await startClient({
      emulator: { faults: [{ match: { route: "POST /api/core/numbers/search" }, action: LOST, times: 2 }] },
    });
    expect((await client.numbers.search().withResponse()).attempts).toBe(3);
  });

  it("a search whose inventory fails ends in an UpstreamError with its status (CLI-5, SEA-8)", async () => {
    const { client } = await startClient();
    const error = await failureOf(client.numbers.search({ zipCode: "00502" }), UpstreamError);
    expect(error).toMatchObject({ code: "UPSTREAM_ERROR", status: 502, providerStatus: 503, attempts: 3 });
  });

  it("a number's update is made again: it says what shall be (CLI-5)", async () => {
    const { client, emulator } = await startClient({
      emulator: { faults: [{ match: { route: "PATCH /api/core/numbers/{numberId}" }, action: LOST, times: 2 }] },
    });
    const call = client.numbers.update(emulator.fixtures.numbers.full, { mmsEnabled: false });
    expect((await call.withResponse()).attempts).toBe(3);
  });

  it("a webhook update with the caller's secret is made again (CLI-5)", async () => {
    const { client } = await startClient({
      emulator: { faults: [{ match: { route: "PATCH /api/core/webhooks/delivery" }, action: LOST, times: 2 }] },
    });
    const call = client.webhooks.update("delivery", { signingEnabled: true, secret: SECRET });
    expect((await call.withResponse()).attempts).toBe(3);
  });

  it.each<[string, ApiAction]>([
    ["a lost answer", LOST],
    ["a 500", { type: "status", status: 500 }],
  ])(
    "a webhook update without one is not, after %s: a generated secret would be lost (CLI-5, WHK-13)",
    async (_, action) => {
      const { client } = await startClient({
        emulator: { faults: [{ match: { route: "PATCH /api/core/webhooks/delivery" }, action, times: 1 }] },
      });
      const call = client.webhooks.update("delivery", { signingEnabled: true });
      await expect(call).rejects.toMatchObject({ attempts: 1, operation: "webhooks.update", idempotencyKey: null });
    },
  );
});

describe("timeoutMs", () => {
  it("ends each attempt in a TimeoutError, with the key of a send (SND-22)", async () => {
    const clock = createFakeClock();
    const never = () => void clock.advance(50);
    const { client } = await startServer(never, { clock, timeoutMs: 50, maxRetries: 1, validateRequests: false });
    const error = await failureOf(client.messages.send({} as never, { idempotencyKey: "order-1" }), TimeoutError);
    expect(error).toMatchObject({ code: "request_timeout", attempts: 2, idempotencyKey: "order-1" });
    expect(error.message).toBe("messages.send got no answer within 50 ms, in 2 attempts.");
  });

  it("ends an attempt whose fetch does not heed its signal", async () => {
    const clock = createFakeClock();
    const { client } = await startServer(() => {}, { clock, maxRetries: 0, fetch: () => new Promise(() => {}) });
    const failure = failureOf(client.whoami(), TimeoutError);
    await clock.advance(30_000);
    expect((await failure).operation).toBe("token");
  });

  it("leaves no timer behind", async () => {
    let running = 0;
    const clock = createFakeClock();
    const counted = {
      ...clock,
      setTimeout(callback: () => void, ms: number) {
        running += 1;
        const timer = clock.setTimeout(callback, ms);
        const cancel = () => {
          running -= 1;
          timer.cancel();
        };
        return { ...timer, cancel };
      },
    };
    const { client } = await startClient({ clock: counted });
    await client.whoami();
    expect(running).toBe(0);
  });
});
