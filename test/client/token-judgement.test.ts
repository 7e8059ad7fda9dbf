/** What the token route's answers mean, and what a call tells when it gets no token. */
import { describe, expect, it } from "vitest";
import { ConnectionError, createClient, OAuthError, TimeoutError } from "../../src/client/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { type Answerer, answerJson, failureOf, startPlain, startServer, startTokens, TOKEN_PATH } from "./support.ts";

const WHOAMI = "/api/core/whoami";
const send = { sendFrom: "num_1", to: ["+14155550123"], messageType: "SMS", externalReference: "order-1" } as const;

describe("a refusal of the token route", () => {
  it.each([
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "access_denied",
  ])("that says %s is never retried, whatever its status (CLI-4)", async (error) => {
    for (const status of [400, 401, 500, 503]) {
      const { client, tokenRequests } = await startTokens((response) => answerJson(response, status, { error }));
      expect(await failureOf(client.whoami(), OAuthError)).toMatchObject({ error, status });
      expect(tokenRequests()).toBe(1);
    }
  });

  it.each([
    [500, "server_error", 3],
    [503, "temporarily_unavailable", 3],
    [500, "of_tomorrow", 3],
    [400, "server_error", 1],
    [400, "of_tomorrow", 1],
  ])(
    "of %i that says %s is retried as its status says: %i requests (CLI-4, TOK-11)",
    async (status, error, requests) => {
      const { client, tokenRequests } = await startTokens((response) => answerJson(response, status, { error }));
      await failureOf(client.whoami(), OAuthError);
      expect(tokenRequests()).toBe(requests);
    },
  );
});

describe("a success of the token route", () => {
  it.each([
    ["no JSON", "<html>"],
    ["no object", "[]"],
    ["no access_token", "{}"],
    ["an empty one", '{"access_token":""}'],
    ["one that is no text", '{"access_token":7}'],
    ["one that no header can carry", '{"access_token":"a\\r\\nb: c"}'],
  ])("with %s is an OAuthError, and not asked for again (TOK-12)", async (_, body) => {
    const { client, tokenRequests } = await startTokens((response) => response.writeHead(200).end(body));
    const error = await failureOf(client.whoami(), OAuthError);
    expect(error).toMatchObject({ operation: "whoami", code: "api_error", error: null, status: 200, attempts: 0 });
    expect(error.message).toBe(
      "The token route answered with 200. The answer holds no usable token: access_token must be a text that a header can carry.",
    );
    expect(tokenRequests()).toBe(1);
  });

  it.each<[expiresIn: unknown, endsAfterSeconds: number]>([
    [100, 95],
    ["100", 95],
    ["100.5", 3_595],
    ["1e2", 3_595],
    [" 100", 3_595],
    ["", 3_595],
    [-1, 3_595],
    [true, 3_595],
    [[], 3_595],
    [null, 3_595],
    [{}, 3_595],
  ])("with expires_in %j counts as live for %i s (TOK-13)", async (expires_in, seconds) => {
    const clock = createFakeClock();
    const answer = { access_token: "t", token_type: "bearer", expires_in };
    const { client, tokenRequests } = await startTokens((response) => answerJson(response, 200, answer), { clock });
    await client.whoami();
    await clock.advance(seconds * 900 - 1);
    await client.whoami();
    expect(tokenRequests()).toBe(1);
    await clock.advance(seconds * 100 + 1);
    await client.whoami();
    expect(tokenRequests()).toBe(2);
  });
});

describe("a call that gets no token", () => {
  /** The connection breaks in a send, its token has ended in the meantime, and `second` answers who asks for another. */
  const halfway = (second: Answerer) => {
    let tokens = 0;
    return startPlain(
      (request, response) => {
        if (request.url !== TOKEN_PATH) return request.socket.destroy();
        tokens += 1;
        if (tokens > 1) return second(request, response);
        answerJson(response, 200, { access_token: "ends-at-once", expires_in: 0 });
      },
      { maxRetries: 1 },
    );
  };

  it("tells that its own request was made, when only the next one had no token (SND-17, SND-22)", async () => {
    const { client, sentTo } = await halfway((_, response) => answerJson(response, 401, { error: "invalid_client" }));
    const error = await failureOf(client.messages.send(send, { idempotencyKey: "order-1" }), OAuthError);
    expect(error).toMatchObject({ operation: "messages.send", attempts: 1, idempotencyKey: "order-1" });
    expect(error.message).toContain("The token route answered with 401 invalid_client.");
    expect(sentTo("/api/core/messages/send").length).toBe(1);
  });

  it("tells that its own request was made, when the token route does not answer (SND-17, SND-22)", async () => {
    const { client } = await halfway((request) => request.socket.destroy());
    const error = await failureOf(client.messages.send(send, { idempotencyKey: "order-1" }), ConnectionError);
    expect(error).toMatchObject({ operation: "messages.send", attempts: 1, idempotencyKey: "order-1" });
    expect(error.message).toBe("The token route gave no complete answer, in 2 attempts.");
  });

  it("tells of a port that fetch refuses what is wrong with it", async () => {
    const client = createClient({
      baseUrl: "http://127.0.0.1:6000",
      clientId: "client_main",
      clientSecret: "example-secret",
      maxRetries: 0,
      logger: silentLogger,
    });
    const error = await failureOf(client.whoami(), ConnectionError);
    expect(error.message).toMatch(
      /^The token route gave no complete answer, in 1 attempt: fetch connects to no such port/,
    );
  });

  it("tells that certainly nothing was asked: 0 attempts (CLI-4)", async () => {
    const { client, requests } = await startTokens((response) => response.destroy());
    const error = await failureOf(client.messages.send(send), ConnectionError);
    expect(error).toMatchObject({ operation: "messages.send", attempts: 0 });
    expect(requests.map(({ path }) => path)).toEqual([TOKEN_PATH, TOKEN_PATH, TOKEN_PATH]);
  });

  it("in time says so of the token route (CLI-4)", async () => {
    const clock = createFakeClock();
    const { client } = await startTokens(() => clock.advance(50), { clock, timeoutMs: 50, maxRetries: 0 });
    const error = await failureOf(client.whoami(), TimeoutError);
    expect(error).toMatchObject({ operation: "whoami", attempts: 0 });
    expect(error.message).toBe("The token route gave no answer within 50 ms, in 1 attempt.");
  });
});

describe("a token that is refused", () => {
  const unauthorized = { error: { code: "UNAUTHORIZED", message: "", details: {} }, requestId: "r" };

  it("is renewed once for ten refusals that come one after the other, also when the new one reads the same (CLI-3)", async () => {
    let issued = 0;
    let calls = 0;
    const held: (() => void)[] = [];
    const { client } = await startPlain((request, response) => {
      if (request.url === TOKEN_PATH) {
        issued += 1;
        return answerJson(response, 200, { access_token: "always-the-same", expires_in: 3600 });
      }
      calls += 1;
      if (calls <= 10) held.push(() => answerJson(response, 401, unauthorized));
      else answerJson(response, 200, {});
    });
    const all = Array.from({ length: 10 }, () => client.whoami());
    while (held.length < 10) await new Promise(setImmediate);
    for (const [index, refuse] of held.entries()) {
      refuse();
      await all[index];
    }
    expect(issued).toBe(2);
  });

  it("though it was just issued is not used by the next call (CLI-3)", async () => {
    let issued = 0;
    const { client, sentTo } = await startPlain((request, response) => {
      if (request.url === TOKEN_PATH) return answerJson(response, 200, { access_token: `t${++issued}` });
      answerJson(response, request.headers.authorization === "Bearer t3" ? 200 : 401, unauthorized);
    });
    await client.whoami().catch(() => {});
    const { attempts } = await client.whoami().withResponse();
    expect(attempts).toBe(1);
    expect(sentTo(WHOAMI).map(({ headers }) => headers.get("authorization"))).toEqual([
      "Bearer t1",
      "Bearer t2",
      "Bearer t3",
    ]);
  });

  it.each(["UNAUTHORIZED", "TOKEN_ENDED", null])(
    "with status 401 and the code %s is renewed once, and the call made once more (CLI-3, GEN-11)",
    async (code) => {
      let calls = 0;
      const { client, sentTo } = await startServer((_, response) => {
        calls += 1;
        answerJson(response, calls === 1 ? 401 : 200, calls === 1 ? { error: { code } } : {});
      });
      expect((await client.whoami().withResponse()).attempts).toBe(2);
      expect(sentTo(TOKEN_PATH).length).toBe(2);
    },
  );

  it("by a page without a code, as of a proxy, is renewed as well (CLI-3)", async () => {
    let calls = 0;
    const { client } = await startServer((_, response) => {
      calls += 1;
      if (calls === 1) response.writeHead(401).end("<html>");
      else answerJson(response, 200, {});
    });
    const { attempts } = await client.whoami().withResponse();
    expect(attempts).toBe(2);
  });

  it("with status 401 and the code of another refusal is not renewed: the code is authoritative (CLI-3, GEN-12)", async () => {
    const { client, sentTo } = await startServer((_, response) =>
      answerJson(response, 401, { error: { code: "FORBIDDEN" } }),
    );
    await client.whoami().catch(() => {});
    expect(sentTo(TOKEN_PATH).length).toBe(1);
  });
});
