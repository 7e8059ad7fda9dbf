import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { OAuthError, ServiceError, UnauthorizedError } from "../../src/client/index.ts";
import { answerJson, failureOf, sendOf, startClient, startServer, startTokens, TOKEN_PATH } from "./support.ts";

const WHOAMI = "/api/core/whoami";

const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

describe("the token route's failures", () => {
  it("are retried on 5xx, with backoff (CLI-4, TOK-11)", async () => {
    const fault = {
      match: { route: `POST ${TOKEN_PATH}` },
      action: { type: "status", status: 500 },
      times: 2,
    } as const;
    const { client, sentTo } = await startClient({ emulator: { faults: [fault] } });
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
    expect(sentTo(TOKEN_PATH).length).toBe(3);
  });

  it("are retried when the connection breaks (CLI-4)", async () => {
    const fault = {
      match: { route: `POST ${TOKEN_PATH}` },
      action: { type: "reset", when: "after" },
      times: 1,
    } as const;
    const { client, sentTo } = await startClient({ emulator: { faults: [fault], port: 0 } });
    await client.whoami();
    expect(sentTo(TOKEN_PATH).length).toBe(2);
  });

  it("are an OAuthError after all retries, with what the service said (CLI-4)", async () => {
    const fault = { match: { route: `POST ${TOKEN_PATH}` }, action: { type: "status", status: 500 } } as const;
    const { client, sentTo } = await startClient({ emulator: { faults: [fault] } });
    const error = await failureOf(client.whoami(), OAuthError);
    expect(error).toMatchObject({ operation: "whoami", status: 500, attempts: 0 });
    expect(sentTo(TOKEN_PATH).length).toBe(3);
  });

  it.each(["wrong secret", "inactive client", "inactive account"])(
    "are not retried when it says invalid_client: %s (CLI-4, TOK-8, TOK-9, TOK-10)",
    async (reason) => {
      const { emulator, requests, client: usual } = await startClient();
      await usual.whoami();
      const { inactive, inactiveAccount, main } = emulator.fixtures.clients;
      const wrong = { clientId: main.clientId, clientSecret: "wrong" };
      const credentials = reason === "wrong secret" ? wrong : reason === "inactive client" ? inactive : inactiveAccount;
      const { clientId, clientSecret } = credentials;
      const { client, sentTo } = await startClient({ clientId, clientSecret, maxRetries: 5 });
      const error = await failureOf(client.whoami(), OAuthError);
      expect(error).toMatchObject({ error: "invalid_client", code: "invalid_client", status: 401, attempts: 0 });
      expect(error.message).toContain("the client or its account is inactive");
      expect(error.errorDescription).not.toBe("");
      expect(sentTo(TOKEN_PATH).length).toBe(1);
      expect(requests.length).toBe(2);
    },
  );

  it.each([400, 403, 404, 429])("are not retried on %i (CLI-4)", async (status) => {
    const { client, tokenRequests } = await startTokens((response) => answerJson(response, status, { error: "no" }));
    await failureOf(client.whoami(), OAuthError);
    expect(tokenRequests()).toBe(1);
  });

  it("are not kept: the next call asks again", async () => {
    const fault = {
      match: { route: `POST ${TOKEN_PATH}` },
      action: { type: "status", status: 400 },
      times: 1,
    } as const;
    const { client } = await startClient({ emulator: { faults: [fault] } });
    await failureOf(client.whoami(), OAuthError);
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
  });

  it("reach all waiting calls by one request, each with its own key", async () => {
    const fault = { match: { route: `POST ${TOKEN_PATH}` }, action: { type: "status", status: 400 } } as const;
    const { client, emulator, sentTo } = await startClient({ emulator: { faults: [fault] } });
    const keys = ["key-1", "key-2", "key-3"];
    const errors = await Promise.all(
      keys.map((idempotencyKey) => failureOf(client.messages.send(sendOf(emulator), { idempotencyKey }), OAuthError)),
    );
    expect(errors.map(({ idempotencyKey }) => idempotencyKey)).toEqual(keys);
    expect(sentTo(TOKEN_PATH).length).toBe(1);
  });

  it("show a redirect as what it is: a wrong baseUrl", async () => {
    const redirect = (response: ServerResponse) => response.writeHead(301, { location: "https://example.com" }).end();
    const { client } = await startTokens(redirect);
    expect((await failureOf(client.whoami(), OAuthError)).message).toContain("check baseUrl");
  });

  it.each([
    ["a page", "<html>Not Found</html>"],
    ["a core error", '{"error":{"code":"NOT_FOUND"}}'],
  ])("show a 404 as what it most likely is, a wrong baseUrl: %s (GEN-13)", async (_, body) => {
    const { client } = await startTokens((response) => response.writeHead(404).end(body));
    expect((await failureOf(client.whoami(), OAuthError)).message).toBe(
      "The token route answered with 404. The service has no such route: check baseUrl, its host and its path.",
    );
  });

  it("blame the credentials, not baseUrl, for a 404 that says so (CLI-4)", async () => {
    const { client } = await startTokens((response) => answerJson(response, 404, { error: "invalid_client" }));
    const { message } = await failureOf(client.whoami(), OAuthError);
    expect(message).toContain("The credentials are wrong");
    expect(message).not.toContain("baseUrl");
  });
});

describe("a 401", () => {
  it("gets one new token and one retry, beyond maxRetries (CLI-3)", async () => {
    const { client, emulator, sentTo } = await startClient({ maxRetries: 0 });
    await client.whoami();
    emulator.control.revokeTokens();
    const { data, attempts } = await client.whoami().withResponse();
    expect(data.apiClientStatus).toBe("ACTIVE");
    expect(attempts).toBe(2);
    expect(sentTo(TOKEN_PATH).length).toBe(2);
  });

  it("that comes ten times at once costs one token request (CLI-3)", async () => {
    const { client, emulator, sentTo } = await startClient();
    await client.whoami();
    emulator.control.revokeTokens();
    await Promise.all(many(10, () => client.whoami()));
    expect(sentTo(TOKEN_PATH).length).toBe(2);
    expect(sentTo(WHOAMI).length).toBe(21);
  });

  it("that comes twice throws, without a loop (CLI-3)", async () => {
    const unauthorized = { error: { code: "UNAUTHORIZED", message: "no", details: {} }, requestId: "req_1" };
    const { client, sentTo } = await startServer((_, response) => answerJson(response, 401, unauthorized));
    const error = await failureOf(client.whoami(), UnauthorizedError);
    expect(error).toMatchObject({ code: "UNAUTHORIZED", status: 401, attempts: 2, requestId: "req_1" });
    expect(sentTo(TOKEN_PATH).length).toBe(2);
    expect(sentTo(WHOAMI).length).toBe(2);
  });

  it("of a client that has become inactive ends with the token route's word (AUT-5, CLI-4)", async () => {
    const { client, emulator, sentTo } = await startClient();
    await client.whoami();
    emulator.control.updateClient("ac_main", { status: "INACTIVE" });
    const error = await failureOf(client.whoami(), OAuthError);
    expect(error).toMatchObject({ error: "invalid_client", operation: "whoami", attempts: 1 });
    expect(sentTo(TOKEN_PATH).length).toBe(2);
  });

  it("of an older token leaves the newer one in place (CLI-3)", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const seen: (string | undefined)[] = [];
    const { client, sentTo } = await startServer(async ({ headers }, response) => {
      seen.push(headers.authorization);
      if (seen.length === 1) await held;
      answerJson(response, headers.authorization === seen[0] ? 401 : 200, {});
    });
    const slow = client.whoami();
    while (seen.length === 0) await new Promise(setImmediate);
    await client.whoami();
    release();
    await slow;
    expect(seen.length).toBe(4);
    expect(sentTo(TOKEN_PATH).length).toBe(2);
  });

  it("after a retried failure still gets its new token, and a failure after it its retries (CLI-3, CLI-5)", async () => {
    const statuses = [500, 401, 500, 200];
    const { client, sentTo } = await startServer((_, response) => answerJson(response, statuses.shift() ?? 0, {}));
    const { attempts } = await client.whoami().withResponse();
    expect(attempts).toBe(4);
    expect(sentTo(TOKEN_PATH).length).toBe(2);
  });

  it("in the middle of a send repeats it with the same key and bytes (CLI-3, SND-22)", async () => {
    const fault = {
      match: { route: "POST /api/core/messages/send" },
      action: { type: "revokeToken" },
      times: 1,
    } as const;
    const { client, emulator, requests } = await startClient({ emulator: { faults: [fault] } });
    const sent = await client.messages.send(sendOf(emulator));
    const sends = requests.filter(({ path }) => path.endsWith("/send"));
    expect(sends.length).toBe(2);
    expect(new Set(sends.map(({ body }) => body)).size).toBe(1);
    expect(sends.map(({ headers }) => headers.get("idempotency-key"))).toEqual([
      sent.idempotencyKey,
      sent.idempotencyKey,
    ]);
    expect(emulator.control.messages().length).toBe(1);
  });
});

describe("a send whose token never comes", () => {
  it("tells its key, so that it can be taken up again", async () => {
    const { client, emulator } = await startClient({ clientSecret: "wrong" });
    const error = await failureOf(client.messages.send(sendOf(emulator), { idempotencyKey: "order-1" }), ServiceError);
    expect(error).toMatchObject({ operation: "messages.send", attempts: 0, idempotencyKey: "order-1" });
  });
});
