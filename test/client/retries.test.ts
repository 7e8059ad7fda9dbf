import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ApiError, ConflictError, ConnectionError, ServerError, UnknownApiError } from "../../src/client/index.ts";
import type { ApiAction } from "../../src/emulator/faults.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { answerJson, failureOf, SEND_PATH, sendOf, startClient, startServer } from "./support.ts";

const WHOAMI = { route: "GET /api/core/whoami" };
const RESET: ApiAction = { type: "reset", when: "before" };
const LOST: ApiAction = { type: "reset", when: "after" };

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

  it.each([
    [400, "SERVER_ERROR"],
    [404, "UPSTREAM_ERROR"],
    [500, "OF_TOMORROW"],
  ])(
    "after %i %s: the code decides, and the status only for one that is not known (CLI-5, GEN-11, GEN-12)",
    async (status, code) => {
      let calls = 0;
      const { client } = await startServer((_, response) => {
        calls += 1;
        answerJson(response, calls < 3 ? status : 200, calls < 3 ? wrapper(code) : {});
      });
      expect((await client.whoami().withResponse()).attempts).toBe(3);
    },
  );

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
    ["seconds", () => "7", 7_000],
    ["an HTTP date", (now: number) => new Date(now + 7_000).toUTCString(), 7_000],
    ["seconds, 60 at most", () => "60", 60_000],
  ])("is what the service asks for in %s", async (_, header, askedMs) => {
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
    await clock.advance(askedMs);
    await call;
    expect(delays).toEqual([askedMs]);
  });

  it("is what the service asks for in the form of asctime, which is GMT wherever this runs", async () => {
    vi.stubEnv("TZ", "Asia/Tokyo");
    onTestFinished(() => void vi.unstubAllEnvs());
    const clock = createFakeClock(Date.UTC(1994, 10, 6, 8, 49, 30));
    const { client } = await startServer(
      (_, response) => {
        response.setHeader("retry-after", "Sun Nov  6 08:49:37 1994");
        answerJson(response, 503, {});
      },
      { clock, maxRetries: 0 },
    );
    expect(await failureOf(client.whoami(), ServerError)).toMatchObject({ retryAfterMs: 7_000 });
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
    [500, "INVALID_RECIPIENT"],
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
      // It never moves, so only the signal can end the wait.
      clock: createFakeClock(),
      backoff: { baseMs: 60_000 },
      random: () => 0.5,
      onRetry: () => controller.abort(),
      emulator: { faults: [{ match: WHOAMI, action: { type: "status", status: 500 } }] },
    });
    await expect(client.whoami({ signal: controller.signal })).rejects.toMatchObject({ code: "aborted", attempts: 1 });
    expect(sentTo("/api/core/whoami").length).toBe(1);
  });
});
