/** When a call is made again, after which wait, and when never. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  ApiError,
  type ClientOptions,
  ConnectionError,
  InvalidArgumentError,
  OAuthError,
  ServerError,
  TimeoutError,
} from "../../../src/messaging/client/index.ts";
import type { ApiAction } from "../../../src/messaging/emulator/faults.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { watchedTimers } from "../../support/watched-timers.ts";
import { SMS } from "./operations.ts";
import {
  failureOf,
  fault,
  SEND_PATH,
  type Step,
  startClient,
  startServer,
  startTokens,
  until,
  WHOAMI_PATH,
} from "./support.ts";

const WHOAMI = `GET ${WHOAMI_PATH}`;
const SEND = `POST ${SEND_PATH}`;
const DOWN: ApiAction = { type: "status", status: 500 };
const RESET: ApiAction = { type: "reset", when: "before" };
const LOST: ApiAction = { type: "reset", when: "after" };

const refusal = (status: number, code: string) => ({ status, body: { error: { code, message: "text", details: {} } } });

describe("a call is made again", () => {
  it.each<[string, ApiAction]>([
    ["503", { type: "status", status: 503 }],
    ["UPSTREAM_ERROR", { type: "status", status: 502 }],
    ["a connection that breaks before", RESET],
    ["a connection that breaks after", LOST],
  ])("after %s (CLI-5, SEA-8)", async (_, action) => {
    const { client } = await startClient({ emulator: { faults: [fault(WHOAMI, action, 2)], port: 0 } });
    expect((await client.whoami().withResponse()).attempts).toBe(3);
  });

  it.each([
    [400, "SERVER_ERROR"],
    [404, "UPSTREAM_ERROR"],
    [500, "OF_TOMORROW"],
  ])(
    "after %i %s: the status decides only where nobody knows the code (CLI-5, GEN-11, GEN-12)",
    async (status, code) => {
      const { client } = await startServer([refusal(status, code), refusal(status, code), 200]);
      expect((await client.whoami().withResponse()).attempts).toBe(3);
    },
  );

  const clock = createFakeClock();
  it.each<[string, Step, Partial<ClientOptions>]>([
    [
      "an answer that breaks off in the middle",
      (_, response) => {
        response.writeHead(200, { "content-length": "100" }).write('{"api');
        setImmediate(() => response.destroy());
      },
      {},
    ],
    [
      "a time-out, which includes the body",
      (_, response) => response.writeHead(200).write("{", () => clock.advance(30_000)),
      { clock },
    ],
  ])("after %s (CLI-5)", async (_, broken, options) => {
    const { client } = await startServer([broken, 200], options);
    expect((await client.whoami().withResponse()).attempts).toBe(2);
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
      emulator: { faults: [fault(WHOAMI, DOWN)] },
    });
    const failure = failureOf(client.whoami(), ServerError);
    await clock.advance(2_000);
    await failure;
    expect(delays).toEqual(expected);
  });

  it("is kept: nothing is sent before it is over, and no timer is left behind", async () => {
    const { clock, running } = watchedTimers(createFakeClock());
    const { client, sentTo } = await startClient({
      ...{ clock, backoff: { baseMs: 1_000 }, random: () => 0.5 },
      emulator: { faults: [fault(WHOAMI, DOWN, 1)] },
    });
    const call = client.whoami();
    await clock.advance(499);
    expect(sentTo(WHOAMI_PATH).length).toBe(1);
    await clock.advance(1);
    await call;
    expect(sentTo(WHOAMI_PATH).length).toBe(2);
    expect(running()).toBe(0);
  });

  it.each([
    ["seconds", 503, () => "7", 7_000],
    ["an HTTP date", 503, (now: number) => new Date(now + 7_000).toUTCString(), 7_000],
    ["seconds, 60 at most", 503, () => "60", 60_000],
    ["seconds after a 429, with retryRateLimited", 429, () => "7", 7_000],
  ])("is what the service asks for in %s, and counts as a retry", async (_, status, header, askedMs) => {
    const clock = createFakeClock(1_760_000_000_000);
    const delays: number[] = [];
    const { client } = await startServer(
      (_request, response) => response.writeHead(status, { "retry-after": header(clock.now()) }).end("{}"),
      { clock, maxRetries: 2, retryRateLimited: true, onRetry: ({ delayMs }) => delays.push(delayMs) },
    );
    const failure = failureOf(client.whoami(), ApiError);
    for (const made of [1, 2]) {
      await until(() => delays.length === made);
      await clock.advance(askedMs);
    }
    expect(await failure).toMatchObject({ status, attempts: 3 });
    expect(delays).toEqual([askedMs, askedMs]);
  });

  it("is what the service asks for in the form of asctime, which is GMT wherever this runs", async () => {
    vi.stubEnv("TZ", "Asia/Tokyo");
    onTestFinished(() => void vi.unstubAllEnvs());
    const clock = createFakeClock(Date.UTC(1994, 10, 6, 8, 49, 30));
    const answer = { status: 503, headers: { "retry-after": "Sun Nov  6 08:49:37 1994" } };
    const { client } = await startServer(answer, { clock, maxRetries: 0 });
    expect(await failureOf(client.whoami(), ServerError)).toMatchObject({ retryAfterMs: 7_000 });
  });

  it.each([503, 429])(
    "is at most 60 s: a %i that asks for more ends the call, and its error says so",
    async (status) => {
      const answer = { status, headers: { "retry-after": "61" } };
      const { client, sentTo } = await startServer(answer, { retryRateLimited: true });
      const error = await failureOf(client.whoami(), ApiError);
      expect(error).toMatchObject({ attempts: 1, retryAfterMs: 61_000 });
      expect(sentTo(WHOAMI_PATH)).toHaveLength(1);
    },
  );

  it.each(["soon", "-5", "1.5", "", "9999-99-99"])("is the usual one when the service asks for %j", async (header) => {
    const { client } = await startServer({ status: 500, headers: { "retry-after": header } });
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
    [500, "CONFLICT"],
  ])("after %i %s (CLI-6, GEN-12, SND-18, SND-23)", async (status, code) => {
    const { client, sentTo } = await startServer(refusal(status, code), { maxRetries: 5 });
    const error = await failureOf(client.messages.send(SMS), ApiError);
    expect(error).toMatchObject({ status, code, attempts: 1 });
    expect(sentTo(SEND_PATH)).toHaveLength(1);
  });

  it.each([undefined, false])(
    "after a 429 with retryRateLimited %s, which tells its Retry-After (GEN-11)",
    async (retry) => {
      const answer = { ...refusal(429, "RATE_LIMITED"), headers: { "retry-after": "7" } };
      const { client } = await startServer(answer, { retryRateLimited: retry });
      await expect(client.whoami()).rejects.toMatchObject({ attempts: 1, status: 429, retryAfterMs: 7_000 });
    },
  );
});

describe("with retryRateLimited", () => {
  it.each([
    ["a 429 without a body", { status: 429, body: "" }, 3],
    ["a 429 with an unknown code", refusal(429, "TOO_FAST"), 3],
    ["its code with another status", refusal(503, "RATE_LIMITED"), 3],
    ["its code with a 400", refusal(400, "RATE_LIMITED"), 3],
    ["a known code, whatever the status (CLI-7)", refusal(429, "INVALID_REQUEST"), 1],
  ])("the code decides, then the status: %s", async (_, answer, attempts) => {
    const { client } = await startServer(answer, { retryRateLimited: true });
    await expect(client.whoami()).rejects.toMatchObject({ attempts });
  });

  it.each([
    [true, 3],
    [false, 1],
  ])("%s, the token route is asked %i times", async (retryRateLimited, times) => {
    const { client, tokenRequests } = await startTokens(429, { retryRateLimited });
    await failureOf(client.whoami(), OAuthError);
    expect(tokenRequests()).toBe(times);
  });
});

describe("a send", () => {
  it.each<[string, ApiAction]>([
    ["a connection that breaks before the commit", RESET],
    ["a connection that breaks after the commit", LOST],
    ["a 429", { type: "status", status: 429 }],
  ])(
    "that is made again after %s is one message, with one key and the same bytes (SND-17, SND-22)",
    async (_, action) => {
      const to = ["+14155550123"];
      const { client, emulator, sentTo } = await startClient({
        ...{ retryRateLimited: true, emulator: { faults: [fault(SEND, action, 2)], port: 0 } },
        // The caller changes the request in between.
        onRetry: () => to.push("+14155550124"),
      });
      const sent = await client.messages.send({ ...SMS, to });
      expect(sent.results.length).toBe(1);
      expect(emulator.control.messages().length).toBe(1);
      const sends = sentTo(SEND_PATH);
      expect(sends.length).toBe(3);
      expect(new Set(sends.map(({ body }) => body)).size).toBe(1);
      expect(new Set(sends.map(({ headers }) => headers.get("idempotency-key")))).toEqual(
        new Set([sent.idempotencyKey]),
      );
    },
  );

  it("that ends without an answer is taken up again by its error's key, and is one message (SND-17)", async () => {
    const { client, emulator } = await startClient({ emulator: { faults: [fault(SEND, LOST, 3)] } });
    const { idempotencyKey } = await failureOf(client.messages.send(SMS), ConnectionError);
    const sent = await client.messages.send(SMS, { idempotencyKey: idempotencyKey ?? "" });
    expect(sent.idempotencyKey).toBe(idempotencyKey);
    expect(emulator.control.messages().map(({ messageId }) => messageId)).toEqual([sent.results[0]?.messageId]);
  });

  it("of its own has a key of its own (SND-1)", async () => {
    const { client, sentTo } = await startClient();
    for (let send = 0; send < 2; send++) await client.messages.send(SMS);
    const keys = sentTo(SEND_PATH).map(({ headers }) => headers.get("idempotency-key"));
    expect(new Set(keys).size).toBe(2);
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it("that times out tells its key and its attempts (SND-22)", async () => {
    const clock = createFakeClock();
    const { client } = await startServer(() => clock.advance(50), { clock, timeoutMs: 50, maxRetries: 1 });
    const error = await failureOf(client.messages.send(SMS, { idempotencyKey: "order-1" }), TimeoutError);
    expect(error).toMatchObject({ code: "request_timeout", attempts: 2, idempotencyKey: "order-1" });
    expect(error.message).toBe("messages.send got no answer within 50 ms, in 2 attempts.");
  });
});

describe("a webhook update", () => {
  const ROUTE = "PATCH /api/core/webhooks/delivery";
  const secret = "a-secret-of-your-own-32-characters";
  const later = [undefined, secret, secret];

  it.each<[string, ApiAction, object]>([
    ["has none, after a lost answer", LOST, { signingEnabled: true }],
    ["has none, after a 500", DOWN, { signingEnabled: true }],
    ["is written by toJSON", LOST, { secret, toJSON: () => ({ signingEnabled: true }) }],
    [
      "has a getter that gives it later",
      LOST,
      {
        signingEnabled: true,
        get secret() {
          return later.shift();
        },
      },
    ],
  ])(
    "without a secret is not made again: a generated one would be lost; it %s (CLI-5, WHK-13)",
    async (_, action, update) => {
      const { client } = await startClient({ emulator: { faults: [fault(ROUTE, action, 1)] } });
      const call = client.webhooks.update("delivery", update as never);
      await expect(call).rejects.toMatchObject({ attempts: 1, operation: "webhooks.update", idempotencyKey: null });
    },
  );

  it("is checked and made again as it is sent (CLI-5, WHK-8)", async () => {
    const { client, sentTo } = await startClient({ emulator: { faults: [fault(ROUTE, LOST, 1)] } });
    const update = { toJSON: () => ({ signingEnabled: true, secret }) };
    expect((await client.webhooks.update("delivery", update as never).withResponse()).attempts).toBe(2);
    const wrong = { signingEnabled: true, toJSON: () => ({ signingEnabled: "yes" }) };
    await failureOf(client.webhooks.update("delivery", wrong as never), InvalidArgumentError);
    expect(sentTo("/api/core/webhooks/delivery").length).toBe(2);
  });
});
