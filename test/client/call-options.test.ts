/** What one call may want otherwise than its client. */
import { describe, expect, it } from "vitest";
import {
  ApiError,
  type CallOptions,
  type Client,
  ConflictError,
  InvalidArgumentError,
  OAuthError,
  ResponseValidationError,
  TimeoutError,
} from "../../src/client/index.ts";
import { VERSION } from "../../src/internal/package.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { answerJson, failureOf, SEND_PATH, sendOf, startClient, startServer, startTokens } from "./support.ts";

const BODY = { numbers: [] };

describe("timeoutMs of a call", () => {
  it("ends each attempt of it, and is in the error; the client's own stays for others", async () => {
    let isSlow = true;
    const { client, requests } = await startServer(
      (_, response) => {
        if (!isSlow) answerJson(response, 200, BODY);
      },
      { timeoutMs: 60_000, maxRetries: 1 },
    );
    const error = await failureOf(client.numbers.list({ timeoutMs: 30 }), TimeoutError);
    expect(error).toMatchObject({ attempts: 2, message: expect.stringContaining("within 30 ms, in 2 attempts") });
    isSlow = false;
    expect(await client.numbers.list()).toEqual([]);
    expect(requests).toHaveLength(4);
  });
});

describe("maxRetries of a call", () => {
  it.each([
    [0, 1],
    [undefined, 3],
    [5, 6],
  ])("%s: %i attempts", async (maxRetries, attempts) => {
    const { client } = await startServer((_, response) => answerJson(response, 500, {}), { maxRetries: 2 });
    await expect(client.whoami({ maxRetries })).rejects.toMatchObject({ attempts });
  });
});

describe("headers of a call", () => {
  it("are sent with each attempt, beside the client's own", async () => {
    let calls = 0;
    const { client, sentTo } = await startServer((_, response) => answerJson(response, ++calls < 2 ? 500 : 200, BODY));
    await client.numbers.list({ headers: { "X-Trace": "1", traceparent: "00-a", "User-Agent": "shop/1 oncehook" } });
    const sent = sentTo("/api/core/numbers").map(({ headers }) => Object.fromEntries(headers));
    expect(sent).toHaveLength(2);
    for (const headers of sent) {
      expect(headers).toMatchObject({ "x-trace": "1", traceparent: "00-a", "user-agent": "shop/1 oncehook" });
      expect(headers).toMatchObject({ accept: "application/json", authorization: expect.stringMatching(/^Bearer /) });
    }
  });

  it("go with no token request, which other calls share", async () => {
    const { client, requests } = await startClient();
    await client.whoami({ headers: { "x-trace": "1" } });
    expect(requests.map(({ headers }) => headers.get("x-trace"))).toEqual([null, "1"]);
    expect(requests.map(({ headers }) => headers.get("user-agent"))).toEqual(Array(2).fill(`oncehook/${VERSION}`));
  });

  it.each([
    ...["authorization", "Authorization", "IDEMPOTENCY-KEY", "content-type", "accept", "host", "content-length"],
    ...["connection", "transfer-encoding", "expect", "te", "upgrade"],
  ])("refuse %s, which the client or HTTP sets", async (name) => {
    const { client, requests } = await startClient({ validateRequests: false });
    const error = await failureOf(client.whoami({ headers: { [name]: "marked" } }), InvalidArgumentError);
    expect(error.issues).toEqual([`options.headers.${name}: is set by the client itself; leave it out`]);
    expect(requests).toEqual([]);
  });

  it.each([
    [{ "x-a": "marked\r\nauthorization: b" }, "options.headers.x-a: must be a text of at most 8192"],
    [{ "x-a": 7 }, "options.headers.x-a: must be a text of at most 8192"],
    [{ "x-a": "grün" }, "options.headers.x-a: must be a text of at most 8192"],
    [{ "x-a": " a" }, "options.headers.x-a: must be a text of at most 8192"],
    [{ "marked b": "a" }, "options.headers: a name is not the name of a header"],
    [{ "": "a" }, "options.headers: a name is not the name of a header"],
    [new Headers({ a: "b" }), "options.headers: must be an object"],
    [[["a", "b"]], "options.headers: must be an object"],
    ["a: b", "options.headers: must be an object"],
    [
      Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`x-${i}`, "a"])),
      "options.headers: must hold at most 50",
    ],
  ])("refuse %j before any request", async (headers, issue) => {
    const { client, requests } = await startClient();
    const error = await failureOf(client.whoami({ headers } as never), InvalidArgumentError);
    expect(error.issues).toEqual([expect.stringContaining(issue)]);
    expect(error.message).not.toContain("marked");
    expect(requests).toEqual([]);
  });
});

describe("the options of a call", () => {
  it.each([
    [{ timeoutMs: 0 }, "options.timeoutMs: must be a whole number from 1 to 300000 ms"],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, "options.timeoutMs: must be a whole number from 1 to 300000 ms"],
    [{ maxRetries: 11 }, "options.maxRetries: must be a whole number from 0 to 10 retries"],
    [{ maxRetries: "1" }, "options.maxRetries: must be a whole number from 0 to 10 retries"],
  ])("refuse %j", async (options, issue) => {
    const { client } = await startClient();
    const error = await failureOf(client.numbers.list(options as never), InvalidArgumentError);
    expect(error.issues).toEqual([issue]);
  });

  it.each<[string, (client: Client, options: CallOptions) => Promise<unknown>]>([
    ["whoami", (client, options) => client.whoami(options)],
    ["webhooks.get", (client, options) => client.webhooks.get(options)],
    ["webhooks.update", (client, options) => client.webhooks.update("inbound", { signingEnabled: true }, options)],
    ["numbers.list", (client, options) => client.numbers.list(options)],
    ["numbers.get", (client, options) => client.numbers.get("num_1", options)],
    ["numbers.search", (client, options) => client.numbers.search({}, options)],
    ["numbers.update", (client, options) => client.numbers.update("num_1", {}, options)],
    ["request", (client, options) => client.request("GET", "/api/core/whoami", options)],
  ])("are those of %s too", async (_, call) => {
    const { client, requests } = await startServer((_request, response) => answerJson(response, 500, {}));
    const options = { maxRetries: 0, timeoutMs: 5_000, headers: { "x-trace": "1" } };
    await expect(call(client, options)).rejects.toMatchObject({ attempts: 1 });
    expect(requests.at(-1)?.headers.get("x-trace")).toBe("1");
  });
});

describe("retryRateLimited", () => {
  const limited = { error: { code: "RATE_LIMITED", message: "slow down", details: {} } };

  it.each([undefined, false])("%s: a 429 ends the call, with its Retry-After", async (retryRateLimited) => {
    const { client } = await startServer(
      (_, response) => {
        response.setHeader("retry-after", "7");
        answerJson(response, 429, limited);
      },
      { retryRateLimited },
    );
    await expect(client.whoami()).rejects.toMatchObject({ attempts: 1, status: 429, retryAfterMs: 7_000 });
  });

  it("waits as long as the service asks, and counts as a retry", async () => {
    const clock = createFakeClock();
    const delays: number[] = [];
    const { client } = await startServer(
      (_, response) => {
        response.setHeader("retry-after", "7");
        answerJson(response, 429, limited);
      },
      { retryRateLimited: true, maxRetries: 2, clock, onRetry: ({ delayMs }) => void delays.push(delayMs) },
    );
    const call = failureOf(client.whoami(), ApiError);
    await expect.poll(() => delays.length).toBe(1);
    await clock.advance(7_000);
    await expect.poll(() => delays.length).toBe(2);
    await clock.advance(7_000);
    expect(await call).toMatchObject({ attempts: 3, code: "RATE_LIMITED" });
    expect(delays).toEqual([7_000, 7_000]);
  });

  it("gives up where the service asks for more than 60 s", async () => {
    const { client } = await startServer(
      (_, response) => {
        response.setHeader("retry-after", "61");
        answerJson(response, 429, {});
      },
      { retryRateLimited: true },
    );
    await expect(client.whoami()).rejects.toMatchObject({ attempts: 1, retryAfterMs: 61_000 });
  });

  it.each([
    ["a 429 without a body", 429, "", 3],
    ["a 429 with an unknown code", 429, { error: { code: "TOO_FAST" } }, 3],
    ["its code with another status", 503, limited, 3],
    ["its code with a 400", 400, limited, 3],
    ["a known code, whatever the status (CLI-7)", 429, { error: { code: "INVALID_REQUEST" } }, 1],
  ])("retries by the code, then the status: %s", async (_, status, body, attempts) => {
    const { client } = await startServer((_request, response) => answerJson(response, status, body), {
      retryRateLimited: true,
    });
    await expect(client.whoami()).rejects.toMatchObject({ attempts });
  });

  it("sends once, with one key (SND-17)", async () => {
    const { client, emulator, sentTo } = await startClient({
      retryRateLimited: true,
      emulator: {
        faults: [{ match: { route: `POST ${SEND_PATH}` }, action: { type: "status", status: 429 }, times: 1 }],
      },
    });
    await client.messages.send(sendOf(emulator));
    expect(new Set(sentTo(SEND_PATH).map(({ headers }) => headers.get("idempotency-key"))).size).toBe(1);
    expect(sentTo(SEND_PATH)).toHaveLength(2);
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it("leaves nothing open: a 409 after it means a key that was used (SND-31)", async () => {
    let calls = 0;
    const { client } = await startServer(
      (_, response) =>
        ++calls === 1 ? answerJson(response, 429, limited) : answerJson(response, 409, { error: { code: "CONFLICT" } }),
      { retryRateLimited: true },
    );
    const request = { sendFrom: "num_1", to: ["+14155550123"], messageType: "SMS", externalReference: "r" } as const;
    const { message } = await failureOf(client.messages.send(request), ConflictError);
    expect(message).toContain("a changed request needs a new key");
  });

  it.each([
    [true, 3],
    [false, 1],
  ])("%s: the token route is asked %i times", async (retryRateLimited, times) => {
    const { client, tokenRequests } = await startTokens((response) => answerJson(response, 429, {}), {
      retryRateLimited,
    });
    await failureOf(client.whoami(), OAuthError);
    expect(tokenRequests()).toBe(times);
  });
});

describe("client.request()", () => {
  it("gives the answer's JSON, whatever it is, with the token and the address's path (GEN-13)", async () => {
    const { client, requests } = await startServer((_, response) => answerJson(response, 200, ["a", 1]));
    expect(await client.request("GET", "/api/core/calls/call_1?page=2")).toEqual(["a", 1]);
    expect(requests.at(-1)).toMatchObject({ method: "GET", path: "/api/core/calls/call_1", body: undefined });
    expect(requests.at(-1)?.headers.get("authorization")).toMatch(/^Bearer \S+$/);
  });

  it("sends a body as JSON, and its key", async () => {
    const { client, requests } = await startServer((_, response) => answerJson(response, 201, { id: "call_1" }));
    const { data, response } = await client
      .request("POST", "/api/core/calls", { body: { to: 1 }, idempotencyKey: "key-1" })
      .withResponse();
    expect([data, response.status]).toEqual([{ id: "call_1" }, 201]);
    expect(requests.at(-1)).toMatchObject({ method: "POST", body: '{"to":1}' });
    expect(Object.fromEntries(requests.at(-1)?.headers ?? [])).toMatchObject({
      "content-type": "application/json",
      "idempotency-key": "key-1",
    });
  });

  it.each([null, 0, "", [], {}])("may send %j", async (body) => {
    const { client, requests } = await startServer((_, response) => answerJson(response, 200, {}));
    await client.request("PUT", "/x", { body });
    expect(requests.at(-1)?.body).toBe(JSON.stringify(body));
  });

  it("gives undefined for an answer without a body, and an error for one that is not JSON", async () => {
    let body = "";
    const { client } = await startServer((_, response) => response.writeHead(body === "" ? 204 : 200).end(body));
    expect(await client.request("DELETE", "/api/core/calls/call_1")).toBeUndefined();
    body = "<p>marked</p>";
    const error = await failureOf(client.request("GET", "/api/core/calls"), ResponseValidationError);
    expect(error.message).toBe(
      "The answer to GET /api/core/calls is not as specified: body: expected JSON, found none.",
    );
  });

  it.each([
    ["GET", {}, 3],
    ["PUT", {}, 3],
    ["DELETE", {}, 3],
    ["POST", {}, 1],
    ["PATCH", {}, 1],
    ["POST", { idempotencyKey: "key-1" }, 3],
    ["PATCH", { idempotencyKey: "key-1" }, 3],
  ] as const)("%s %j is made %i times", async (method, options, attempts) => {
    const { client } = await startServer((_, response) => answerJson(response, 500, {}));
    await expect(client.request(method, "/x", options)).rejects.toMatchObject({ attempts });
  });

  it("gets a new token after a 401, also where it is not retried (CLI-3)", async () => {
    let calls = 0;
    const { client } = await startServer((_, response) => answerJson(response, ++calls === 1 ? 401 : 200, {}));
    expect((await client.request("POST", "/x").withResponse()).attempts).toBe(2);
  });

  it("tells hooks, logs and errors no id and no query", async () => {
    const notices: unknown[] = [];
    const { client } = await startServer((_, response) => answerJson(response, 404, { error: { code: "NOT_FOUND" } }), {
      onRequest: (notice) => void notices.push(notice),
    });
    const path = "/api/v1/people/+14155550123/marked.name/call_7?who=marked";
    const error = await failureOf(client.request("GET", path), ApiError);
    const route = "/api/v1/people/{id}/{id}/{id}";
    expect(error).toMatchObject({
      operation: `GET ${route}`,
      message: `GET ${route} was answered with 404 NOT_FOUND.`,
    });
    expect(notices.at(-1)).toMatchObject({ operation: `GET ${route}`, route, method: "GET" });
    expect(JSON.stringify(notices)).not.toMatch(/marked|1415/);
  });

  it.each([
    ["GET", "api/core", "path: must begin with one slash"],
    ["GET", "//example.com/x", "path: must begin with one slash"],
    ["GET", "https://example.com/x", "path: must begin with one slash"],
    ["GET", "/\\example.com", "path: must begin with one slash"],
    ["GET", "/a b", "path: must begin with one slash"],
    ["GET", "/a#b", "path: must begin with one slash"],
    ["GET", "/ä", "path: must begin with one slash"],
    ["GET", "", "path: must begin with one slash"],
    ["GET", undefined, "path: must begin with one slash"],
    ["GET", "/a/../b", "path: must have no . or .. in it"],
    ["GET", "/a/%2E%2e/b", "path: must have no . or .. in it"],
    ["GET", "/a/.", "path: must have no . or .. in it"],
    ["get", "/a", "method: must be GET, POST, PUT, PATCH, DELETE, in capitals"],
    ["CONNECT", "/a", "method: must be GET, POST, PUT, PATCH, DELETE, in capitals"],
  ])("refuses %s %s before any request", async (method, path, issue) => {
    const { client, requests } = await startClient();
    const error = await failureOf(client.request(method as never, path as never), InvalidArgumentError);
    expect(error.message).toContain(`request was not made: ${issue}`);
    expect(requests).toEqual([]);
  });

  it.each([
    [{ body: {} }, "options.body: a GET has none"],
    [{ idempotencyKey: "" }, "options.idempotencyKey: must be 1 to 255 visible ASCII characters"],
    [{ query: {} }, "options.query: is not known here."],
  ])("refuses %j for a GET", async (options, issue) => {
    const { client } = await startClient();
    const error = await failureOf(client.request("GET", "/a", options as never), InvalidArgumentError);
    expect(error.issues).toEqual([expect.stringContaining(issue)]);
  });
});
