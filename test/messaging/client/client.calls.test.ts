/** What a call of the client is, what it sends, and what one call may want otherwise than its client. */
import { describe, expect, it, onTestFinished } from "vitest";
import { VERSION } from "../../../src/internal/package.ts";
import {
  ApiError,
  type Call,
  InvalidArgumentError,
  RecipientsRejectedError,
  ResponseValidationError,
  ServerError,
  TimeoutError,
} from "../../../src/messaging/client/index.ts";
import { RECIPIENT, SMS } from "./operations.ts";
import { failureOf, SEND_PATH, startClient, startServer, WHOAMI_PATH } from "./support.ts";

describe("createClient()", () => {
  it("updates a number with the request's own spelling, and reads the response's (NUM-3, UPD-7, CLI-8)", async () => {
    const { client, requests } = await startClient();
    const number = await client.numbers.update("num_000002", { campaignregId: "C123" });
    expect(number?.campaignRegId).toBe("C123");
    expect(requests.at(-1)?.body).toBe('{"campaignregId":"C123"}');
  });

  it("gives null when an update shows no number, and get() reads it again (UPD-11, UPD-13)", async () => {
    const { client } = await startClient({ emulator: { unspecified: { updateReturnsNull: true } } });
    expect(await client.numbers.update("num_000001", { mmsEnabled: false })).toBeNull();
    expect(await client.numbers.get("num_000001")).toMatchObject({ mmsEnabled: false });
  });

  it("gives rejected recipients as data, and as an error with their codes on request (SND-7, CLI-9)", async () => {
    const { client } = await startClient();
    const sent = await client.messages.send({ ...SMS, to: ["nobody", RECIPIENT] }, { idempotencyKey: "order-1" });
    expect(sent.errors).toMatchObject([{ to: "nobody", error: { code: "INVALID_RECIPIENT" } }]);
    expect(sent.allRejected).toBe(false);
    const error = await failureOf((async () => sent.throwIfRejected())(), RecipientsRejectedError);
    expect(error).toMatchObject({ accepted: 1, rejected: 1, idempotencyKey: "order-1" });
    expect(error.message).toBe("1 of 2 recipients were rejected (INVALID_RECIPIENT); see errors of the result.");
  });

  it.each(["a/b", "a?b=c#d", "a%2Fb", "a b", "é", "a;b=c,d", "~!*'()", "...", "%"])(
    "encodes the number %j once in its path (UPD-16)",
    async (id) => {
      let url = "";
      const { client } = await startServer((request, response) => {
        url = request.url ?? "";
        response.end('{"number":null}');
      });
      await client.numbers.update(id, {});
      expect(url.split("/").length).toBe(5);
      expect(decodeURIComponent(url)).toBe(`/api/core/numbers/${id}`);
    },
  );

  it("says in headers what is sent and asked for, and no more than the service needs (GEN-1)", async () => {
    const { client, requests } = await startClient();
    await client.messages.send(SMS, { idempotencyKey: "order-1" });
    await client.whoami();
    const [, send, whoami] = requests.map(({ headers }) => Object.fromEntries(headers));
    const authorization = expect.stringMatching(/^Bearer \S+$/);
    const always = { accept: "application/json", "user-agent": `oncehook/${VERSION}`, authorization };
    expect(send).toEqual({ ...always, "content-type": "application/json", "idempotency-key": "order-1" });
    expect(whoami).toEqual(always);
  });

  it("sends byte for byte what its caller wrote, with validateRequests false (SND-3, CLI-8)", async () => {
    const { client, requests } = await startClient({ validateRequests: false });
    const update = { campaignRegId: "C1", campaignregId: "C2", new: [1] };
    await client.numbers.update("num_x", update as never).catch(() => {});
    expect(requests.at(-1)?.body).toBe('{"campaignRegId":"C1","campaignregId":"C2","new":[1]}');
    await client.messages.send({ sendFrom: "+14155550100" } as never).catch(() => {});
    expect(requests.at(-1)?.path).toBe(SEND_PATH);
  });
});

describe("a Call", () => {
  it("is one promise and one request, also with withResponse(), which tells the answer and the attempts", async () => {
    const { client, sentTo } = await startClient();
    const call = client.whoami();
    expect(call).toBeInstanceOf(Promise);
    const [data, answered] = await Promise.all([call, call.withResponse()]);
    expect([answered.data.apiClientStatus, answered.response.status, answered.attempts]).toEqual(["ACTIVE", 200, 1]);
    expect(answered.response.headers.get("content-type")).toContain("application/json");
    expect(answered.data).toBe(data);
    expect(sentTo(WHOAMI_PATH).length).toBe(1);
  });

  it("that fails is told once: withResponse() leaves no unhandled rejection behind", async () => {
    const unhandled: unknown[] = [];
    const keep = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", keep);
    onTestFinished(() => void process.off("unhandledRejection", keep));
    const { client } = await startServer(500, { maxRetries: 0 });
    await failureOf(client.whoami().withResponse(), ServerError);
    await failureOf(Promise.all([client.whoami(), client.whoami().withResponse()]), ServerError);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
  });

  it.each([
    ["the call", (call: Call<unknown>) => call],
    ["withResponse()", (call: Call<unknown>) => call.withResponse()],
  ])("that fails and that nobody awaits is an unhandled rejection, by %s", async (_, taken) => {
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    onTestFinished(() => {
      process.removeAllListeners("unhandledRejection");
      for (const other of others) process.on("unhandledRejection", other);
    });
    const unhandled: unknown[] = [];
    process.on("unhandledRejection", (reason) => unhandled.push(reason));
    const { client } = await startClient({ validateRequests: false });
    void taken(client.messages.send(undefined as never));
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(unhandled).toMatchObject([{ code: "invalid_argument" }]);
  });

  it("rejects when its arguments cannot be read, and throws nothing", async () => {
    const thrower = () => {
      throw new Error("unreadable");
    };
    const proxy = new Proxy({}, { get: thrower, has: thrower, ownKeys: thrower, getPrototypeOf: thrower }) as never;
    const getter = (name: string) => Object.defineProperty({}, name, { enumerable: true, get: thrower }) as never;
    const signal = Object.defineProperty({ addEventListener: () => {} }, "aborted", { get: thrower }) as never;
    const { client, requests } = await startClient();
    for (const make of [
      () => client.whoami(proxy),
      () => client.whoami({ signal }),
      () => client.webhooks.update("inbound", proxy),
      () => client.webhooks.update("inbound", getter("secret")),
      () => client.webhooks.update(Symbol("inbound") as never, { signingEnabled: true }),
      () => client.numbers.search(getter("state")),
      () => client.numbers.update("num_1", proxy),
      () => client.messages.send(getter("to")),
      () => client.messages.send(SMS, getter("idempotencyKey")),
    ]) {
      const { attempts, message } = await failureOf(make(), InvalidArgumentError);
      expect([attempts, message]).toEqual([0, expect.stringContaining("cannot be ")]);
    }
    expect(requests).toEqual([]);
  });
});

describe("one call's own", () => {
  it("timeoutMs ends each attempt of it, and is in the error; the client's stays for others", async () => {
    let isSlow = true;
    const { client, requests } = await startServer(
      (_, response) => {
        if (!isSlow) response.end('{"numbers":[]}');
      },
      { timeoutMs: 60_000, maxRetries: 1 },
    );
    const error = await failureOf(client.numbers.list({ timeoutMs: 30 }), TimeoutError);
    expect(error).toMatchObject({ attempts: 2, message: expect.stringContaining("within 30 ms, in 2 attempts") });
    isSlow = false;
    expect(await client.numbers.list()).toEqual([]);
    expect(requests).toHaveLength(4);
  });

  it.each([
    [0, 1],
    [undefined, 3],
    [5, 6],
  ])("maxRetries of %s means %i attempts", async (maxRetries, attempts) => {
    const { client } = await startServer(500, { maxRetries: 2 });
    await expect(client.whoami({ maxRetries })).rejects.toMatchObject({ attempts });
  });

  it("headers are sent with each attempt, next to the client's, and with no token request", async () => {
    const { client, requests, sentTo } = await startServer([500, 200]);
    await client.whoami({ headers: { "X-Trace": "1", traceparent: "00-a", "User-Agent": "shop/1 oncehook" } });
    const sent = sentTo(WHOAMI_PATH).map(({ headers }) => Object.fromEntries(headers));
    const own = { "x-trace": "1", traceparent: "00-a", "user-agent": "shop/1 oncehook" };
    const always = { ...own, accept: "application/json", authorization: expect.stringMatching(/^Bearer /) };
    expect(sent).toEqual([always, always]);
    expect(requests[0]?.headers.get("x-trace")).toBeNull();
    expect(requests[0]?.headers.get("user-agent")).toBe(`oncehook/${VERSION}`);
  });
});

describe("client.request()", () => {
  it("gives the answer's JSON, whatever it is, with the token and the address's path (GEN-13)", async () => {
    const { client, requests } = await startServer({ body: ["a", 1] });
    expect(await client.request("GET", "/api/core/calls/call_1?page=2")).toEqual(["a", 1]);
    expect(requests.at(-1)).toMatchObject({ method: "GET", path: "/api/core/calls/call_1", body: undefined });
    expect(requests.at(-1)?.headers.get("authorization")).toMatch(/^Bearer \S+$/);
  });

  it("sends a body as JSON, and its key", async () => {
    const { client, requests } = await startServer({ status: 201, body: { id: "call_1" } });
    const options = { body: { to: 1 }, idempotencyKey: "key-1" };
    const { data, response } = await client.request("POST", "/api/core/calls", options).withResponse();
    expect([data, response.status]).toEqual([{ id: "call_1" }, 201]);
    expect(requests.at(-1)).toMatchObject({ method: "POST", body: '{"to":1}' });
    const sent = Object.fromEntries(requests.at(-1)?.headers ?? []);
    expect(sent).toMatchObject({ "content-type": "application/json", "idempotency-key": "key-1" });
    for (const body of [null, 0, "", [], {}]) {
      await client.request("PUT", "/x", { body });
      expect(requests.at(-1)?.body).toBe(JSON.stringify(body));
    }
  });

  it("gives undefined for an answer without a body, and an error for one that is not JSON", async () => {
    const { client } = await startServer([(_, response) => response.writeHead(204).end(), { body: "<p>marked</p>" }]);
    expect(await client.request("DELETE", "/api/core/calls/call_1")).toBeUndefined();
    const { message } = await failureOf(client.request("GET", "/api/core/calls"), ResponseValidationError);
    expect(message).toBe("The answer to GET /api/core/calls is not as specified: body: expected JSON, found none.");
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
    const { client } = await startServer(500);
    await expect(client.request(method, "/x", options)).rejects.toMatchObject({ attempts });
  });

  it("gets a new token after a 401, also where it is not retried, and takes the options of a call (CLI-3)", async () => {
    const { client, requests } = await startServer([401, 200]);
    const call = client.request("POST", "/x", { maxRetries: 0, headers: { "x-trace": "1" } });
    expect((await call.withResponse()).attempts).toBe(2);
    expect(requests.at(-1)?.headers.get("x-trace")).toBe("1");
  });

  it("tells hooks, logs and errors no id and no query", async () => {
    const notices: unknown[] = [];
    const notFound = { status: 404, body: { error: { code: "NOT_FOUND" } } };
    const { client } = await startServer(notFound, { onRequest: (notice) => void notices.push(notice) });
    const path = "/api/v1/people/+14155550123/marked.name/call_7?who=marked";
    const error = await failureOf(client.request("GET", path), ApiError);
    const route = "/api/v1/people/{id}/{id}/{id}";
    const operation = `GET ${route}`;
    expect(error).toMatchObject({ operation, message: `${operation} was answered with 404 NOT_FOUND.` });
    expect(notices.at(-1)).toMatchObject({ operation, route, method: "GET" });
    expect(JSON.stringify(notices)).not.toMatch(/marked|1415/);
  });
});
