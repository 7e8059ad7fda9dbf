/** What the token route's refusals mean, and what a call tells when it gets no token. */
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../../src/internal/logger.ts";
import { ConnectionError, createClient, OAuthError, TimeoutError } from "../../../src/messaging/client/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { SMS } from "./operations.ts";
import {
  failureOf,
  fault,
  type Step,
  startClient,
  startServer,
  startTokens,
  TOKEN_PATH,
  tokenBody,
} from "./support.ts";

describe("the token route's failures", () => {
  it("are retried when the connection breaks (CLI-4)", async () => {
    const lost = fault(`POST ${TOKEN_PATH}`, { type: "reset", when: "after" }, 1);
    const { client, tokenRequests } = await startClient({ emulator: { faults: [lost], port: 0 } });
    await client.whoami();
    expect(tokenRequests()).toBe(2);
  });

  it.each([
    [500, "server_error", 3],
    [503, "temporarily_unavailable", 3],
    [500, "of_tomorrow", 3],
    [400, "server_error", 1],
    [400, "of_tomorrow", 1],
    [403, "no", 1],
    [429, "no", 1],
  ])("of %i that says %s are retried as the status says: %i requests (CLI-4, TOK-11)", async (status, error, asked) => {
    const refusals = Array.from({ length: asked }, () => ({ status, body: { error } }));
    const { client, tokenRequests } = await startTokens([...refusals, { body: tokenBody("t") }]);
    expect(await failureOf(client.whoami(), OAuthError)).toMatchObject({
      operation: "whoami",
      status,
      error,
      attempts: 0,
    });
    expect(tokenRequests()).toBe(asked);
    // A failure is not kept.
    expect(await client.whoami()).toEqual({});
  });

  it.each([
    ...["invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"],
    ...["invalid_scope", "access_denied"],
  ])("that say %s are never retried, whatever the status (CLI-4)", async (error) => {
    for (const status of [400, 401, 500, 503]) {
      const { client, tokenRequests } = await startTokens({ status, body: { error } });
      expect(await failureOf(client.whoami(), OAuthError)).toMatchObject({ error, status });
      expect(tokenRequests()).toBe(1);
    }
  });

  it.each(["main", "inactive", "inactiveAccount"] as const)(
    "for wrong credentials, or an inactive client, say so once: %s (CLI-4, TOK-8, TOK-9, TOK-10)",
    async (name) => {
      const { emulator } = await startClient();
      const { clientId, clientSecret } = emulator.fixtures.clients[name];
      const secret = name === "main" ? "wrong" : clientSecret;
      const { client, requests } = await startClient({ clientId, clientSecret: secret, maxRetries: 5 });
      const error = await failureOf(client.whoami(), OAuthError);
      expect(error).toMatchObject({ error: "invalid_client", code: "invalid_client", status: 401, attempts: 0 });
      expect(error.message).toContain("the client or its account is inactive");
      expect(error.errorDescription).not.toBe("");
      expect(requests).toHaveLength(1);
    },
  );

  it.each<[string, Step, says: string]>([
    ["a redirect", { status: 301, headers: { location: "https://example.com" } }, "check baseUrl"],
    ["a page", { status: 404, body: "<html>Not Found</html>" }, "no such route: check baseUrl, its host and its path."],
    ["a core error", { status: 404, body: { error: { code: "NOT_FOUND" } } }, "404. The service has no such route"],
    ["a 404 that blames the credentials", { status: 404, body: { error: "invalid_client" } }, "credentials are wrong"],
  ])("show %s as what it most likely is (CLI-4, GEN-13)", async (_, answer, says) => {
    const { client } = await startTokens(answer);
    const { message } = await failureOf(client.whoami(), OAuthError);
    expect(message).toContain(says);
    expect(message.includes("baseUrl")).toBe(!says.includes("credentials"));
  });

  it.each(["<html>", "[]", "{}", '{"access_token":""}', '{"access_token":7}', '{"access_token":"a\\r\\nb: c"}'])(
    "are an OAuthError for a success without a usable token, which is not asked for again: %s (TOK-12)",
    async (body) => {
      const { client, tokenRequests } = await startTokens({ body });
      const error = await failureOf(client.whoami(), OAuthError);
      expect(error).toMatchObject({ operation: "whoami", code: "api_error", error: null, status: 200, attempts: 0 });
      expect(error.message).toBe(
        "The token route answered with 200. The answer holds no usable token: access_token must be a text that a header can carry.",
      );
      expect(tokenRequests()).toBe(1);
    },
  );
});

describe("a call that gets no token", () => {
  it.each<[string, Step, kind: typeof OAuthError | typeof ConnectionError, message: string]>([
    [
      "had no token",
      { status: 401, body: { error: "invalid_client" } },
      OAuthError,
      "The token route answered with 401 invalid_client.",
    ],
    [
      "got no answer of the token route",
      (request) => request.socket.destroy(),
      ConnectionError,
      "The token route gave no complete answer, in 2 attempts.",
    ],
  ])(
    "tells that its own request was made, when only the next one %s (SND-17, SND-22)",
    async (_, second, kind, message) => {
      // The connection breaks in a send, and its token has ended in the meantime.
      const broken: Step = (request) => request.socket.destroy();
      const tokens = [{ body: tokenBody("ends-at-once", 0) }, second];
      const { client } = await startServer(broken, { maxRetries: 1 }, tokens);
      const error = await failureOf<Error>(client.messages.send(SMS, { idempotencyKey: "order-1" }), kind);
      expect(error).toMatchObject({ operation: "messages.send", attempts: 1, idempotencyKey: "order-1" });
      expect(error.message).toContain(message);
    },
  );

  it("tells that certainly nothing was asked: 0 attempts (CLI-4)", async () => {
    const { client, requests } = await startTokens((request) => request.socket.destroy());
    const error = await failureOf(client.messages.send(SMS, { idempotencyKey: "order-1" }), ConnectionError);
    expect(error).toMatchObject({ operation: "messages.send", attempts: 0, idempotencyKey: "order-1" });
    expect(requests.map(({ path }) => path)).toEqual([TOKEN_PATH, TOKEN_PATH, TOKEN_PATH]);
  });

  it("in time says so of the token route (CLI-4)", async () => {
    const clock = createFakeClock();
    const { client } = await startTokens(() => clock.advance(50), { clock, timeoutMs: 50, maxRetries: 0 });
    const error = await failureOf(client.whoami(), TimeoutError);
    expect(error).toMatchObject({ operation: "whoami", attempts: 0 });
    expect(error.message).toBe("The token route gave no answer within 50 ms, in 1 attempt.");
  });

  it("tells of a port that fetch refuses what is wrong with it", async () => {
    const client = createClient({
      ...{ baseUrl: "http://127.0.0.1:6000", clientId: "client_main", clientSecret: "example-secret" },
      ...{ maxRetries: 0, logger: silentLogger },
    });
    const { message } = await failureOf(client.whoami(), ConnectionError);
    expect(message).toMatch(/^The token route gave no complete answer, in 1 attempt: fetch connects to no such port/);
  });
});
