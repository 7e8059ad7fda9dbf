/** What a call ends in that does not succeed: which error, with which facts, and nothing in it that was sent. */
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { OncehookError } from "../../../src/errors.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import {
  ApiError,
  type ClientOptions,
  ConflictError,
  ConnectionError,
  createClient,
  ForbiddenError,
  InvalidArgumentError,
  InvalidRequestError,
  NotFoundError,
  ResponseValidationError,
  ServerError,
  ServiceError,
  UnauthorizedError,
  UnknownApiError,
  UpstreamError,
} from "../../../src/messaging/client/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { RECIPIENT, SMS } from "./operations.ts";
import { type Answer, failureOf, type Step, startClient, startServer } from "./support.ts";

const MODES = ["warn", "throw", "off"] as const;

const refusal = (status: number, code: unknown) => {
  const error = { code, message: "free text", details: { echoed: RECIPIENT } };
  return { status, body: { error, requestId: "req_1" } };
};

describe("an ApiError", () => {
  it.each([
    [400, "INVALID_REQUEST", InvalidRequestError],
    [422, "INVALID_RECIPIENT", InvalidRequestError],
    [401, "UNAUTHORIZED", UnauthorizedError],
    [403, "FORBIDDEN", ForbiddenError],
    [404, "NOT_FOUND", NotFoundError],
    [409, "CONFLICT", ConflictError],
    [500, "SERVER_ERROR", ServerError],
    [502, "UPSTREAM_ERROR", UpstreamError],
    // The code decides.
    [400, "NOT_FOUND", NotFoundError],
    [500, "FORBIDDEN", ForbiddenError],
    [404, "SERVER_ERROR", ServerError],
    [500, "UPSTREAM_ERROR", UpstreamError],
    // The status, where nobody knows the code.
    [400, "QUOTA", InvalidRequestError],
    [403, "SUSPENDED", ForbiddenError],
    [404, "GONE_AWAY", NotFoundError],
    [503, "MAINTENANCE", ServerError],
    [429, "RATE_LIMITED", UnknownApiError],
    [402, "PAYMENT_DUE", UnknownApiError],
  ])("of %i %s has the class of its code, or of its status (CLI-7, GEN-11, GEN-12)", async (status, code, kind) => {
    const { client } = await startServer(refusal(status, code));
    const error = await failureOf(client.whoami(), ApiError);
    expect(error.constructor).toBe(kind);
    const facts = { status, code, requestId: "req_1", operation: "whoami", name: kind.name };
    expect(error).toMatchObject({ ...facts, serviceMessage: "free text", details: { echoed: RECIPIENT } });
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toBeInstanceOf(OncehookError);
  });

  it.each([
    ...["<html>Bad Gateway</html>", "", "null", "[1]", '"error"', '{"error":"server_error"}'],
    ...['{"error":null,"requestId":null}', '{"error":[],"requestId":[]}', '{"error":{"details":null}}'],
    '{"error":{"code":7,"message":7,"details":7},"requestId":7}',
    '{"error":{"code":"no such number +14155550199"}}',
    '{"error":{"__proto__":{"code":"CONFLICT"},"constructor":1}}',
  ])("of %s follows the status alone (CLI-7, GEN-2)", async (body) => {
    const { client } = await startServer({ status: 502, body });
    const error = await failureOf(client.whoami(), ServerError);
    expect(error).toMatchObject({ status: 502, code: "api_error", requestId: null, details: {} });
    expect(error.message).toBe("whoami was answered with 502.");
  });

  it.each([301, 302, 303, 307, 308])("of a %i says to check baseUrl; it is not followed", async (status) => {
    const { client, requests } = await startServer({ status, body: "", headers: { location: "/elsewhere" } });
    const error = await failureOf(client.whoami(), UnknownApiError);
    expect(error).toMatchObject({ status, message: expect.stringContaining("check baseUrl") });
    expect(requests).toHaveLength(2);
  });

  it.each(["get", "update"] as const)("of webhooks.%s with 404 says what that means (WHK-27)", async (method) => {
    const { client } = await startClient({ emulator: { unspecified: { "webhooks.routes": "404" } } });
    const { webhooks } = client;
    const call = method === "get" ? webhooks.get() : webhooks.update("inbound", { signingEnabled: false });
    const { message } = await failureOf(call, NotFoundError);
    expect(message).toContain("does not expose the account-level defaults of webhooks; targets can be set per number");
  });

  it("of an upstream failure has its status, or null when that is no integer (SEA-8)", async () => {
    const details = [{ providerStatus: 503 }, { providerStatus: "503" }, {}];
    const answers = details.map((each) => ({
      status: 502,
      body: { error: { code: "UPSTREAM_ERROR", details: each } },
    }));
    const { client } = await startServer(answers, { maxRetries: 0 });
    for (const expected of [503, null, null])
      expect((await failureOf(client.numbers.search(), UpstreamError)).providerStatus).toBe(expected);
  });
});

describe("a send's key", () => {
  it.each<[string, Step]>([
    ["a refusal (SND-15, SND-23)", refusal(400, "INVALID_REQUEST")],
    ["a failure of the service", refusal(500, "SERVER_ERROR")],
    ["a broken connection", (request) => request.socket.destroy()],
    ["an answer that is no JSON", { status: 202, body: "<html>" }],
    ["an answer of another shape", { status: 202, body: { results: "none" } }],
    ["an empty answer", (_, response) => response.writeHead(204).end()],
  ])("is on the error of %s (SND-17)", async (_, answer) => {
    const { client } = await startServer(answer, { maxRetries: 1 });
    const error = await failureOf(client.messages.send(SMS, { idempotencyKey: "order-1" }), ServiceError);
    expect(error).toMatchObject({ operation: "messages.send", idempotencyKey: "order-1" });
  });

  it("is on the error of a send that was aborted or refused before its first request (SND-17)", async () => {
    const { client } = await startClient();
    const aborted = client.messages.send(SMS, { signal: AbortSignal.abort() });
    expect((await failureOf(aborted, ServiceError)).idempotencyKey).toMatch(/^[0-9a-f-]{36}$/);
    const refused = client.messages.send({} as never, { idempotencyKey: "k" });
    expect(await failureOf(refused, InvalidArgumentError)).toMatchObject({ idempotencyKey: "k", attempts: 0 });
  });
});

describe("a 409 of a send", () => {
  const conflict = refusal(409, "CONFLICT");
  const clock = createFakeClock();

  it.each<[string, Answer, says: "new" | "same", options: Partial<ClientOptions>]>([
    ["at once (SND-18)", conflict, "new", {}],
    ["after a 401: nothing was done before (CLI-3)", [401, conflict], "new", {}],
    ["after a 429 (SND-31)", [429, conflict], "new", { retryRateLimited: true }],
    ["after no answer in time (SND-31)", [() => clock.advance(30_000), conflict], "same", { clock }],
    ["after no answer (SND-31)", [(request) => request.socket.destroy(), conflict], "same", {}],
    ["after a 504 of a gateway (SND-31)", [{ status: 504, body: "<html>" }, conflict], "same", {}],
  ])(
    "%s says which key to use: a new one only where nothing may run still (CLI-6)",
    async (_, answer, key, options) => {
      const { client } = await startServer(answer, { maxRetries: 5, ...options });
      const error = await failureOf(client.messages.send(SMS, { idempotencyKey: "order-1" }), ConflictError);
      expect(error).toMatchObject({ attempts: Array.isArray(answer) ? 2 : 1, idempotencyKey: "order-1" });
      expect(error.message.includes("a changed request needs a new key")).toBe(key === "new");
      expect(error.message.includes("repeat the same request with the same key later")).toBe(key === "same");
    },
  );
});

describe("a success that is not as specified", () => {
  it("is logged without values, ten times a second at most, and its data given, with validateResponses warn", async () => {
    const body = { apiClientId: 7, apiClientName: RECIPIENT, new: RECIPIENT };
    const { client, lines } = await startServer({ body }, { clock: createFakeClock() });
    for (const data of await Promise.all(Array.from({ length: 50 }, () => client.whoami()))) expect(data).toEqual(body);
    expect(lines).toHaveLength(10);
    const issues = expect.arrayContaining(["apiClientId: expected string"]);
    expect(lines[0]).toMatchObject({ level: "warn", fields: { operation: "whoami", issues } });
    expect(JSON.stringify(lines)).not.toContain(RECIPIENT);
  });

  it("passes without a word with validateResponses off", async () => {
    const { client, lines } = await startServer(200, { validateResponses: "off" });
    expect(await client.whoami()).toEqual({});
    expect(lines).toEqual([]);
  });

  it.each(MODES)("is an error where the client itself needs the field, with validateResponses %s", async (mode) => {
    const { client } = await startServer({ body: { number: "n" } }, { validateResponses: mode });
    const { numbers, messages } = client;
    await failureOf(numbers.list(), ResponseValidationError);
    await failureOf(numbers.get("n"), ResponseValidationError);
    await failureOf(numbers.update("n", {}), ResponseValidationError);
    await failureOf(messages.send(SMS), ResponseValidationError);
  });

  it.each(MODES)("keeps the results of a send on its error, with validateResponses %s (SND-17)", async (mode) => {
    const answer = { results: [{ to: RECIPIENT, messageId: "msg_1", status: "QUEUED" }] };
    const { client } = await startServer([{ body: answer }, { body: "<html>" }], { validateResponses: mode });
    expect((await failureOf(client.messages.send(SMS), ResponseValidationError)).data).toEqual(answer);
    expect((await failureOf(client.whoami(), ResponseValidationError)).data).toBeUndefined();
  });

  it("keeps on its error what is shown only once, by name alone: a generated secret (WHK-13)", async () => {
    const body = { enabled: true, generatedSecret: "marked-generated-secret" };
    const { client } = await startServer({ body }, { validateResponses: "throw" });
    const error = await failureOf(client.webhooks.update("inbound", { signingEnabled: true }), ResponseValidationError);
    expect(error.data).toEqual(body);
    expect(`${inspect(error, { depth: 9, showHidden: true })}${JSON.stringify(error)}`).not.toContain("marked");
  });

  it("is none with fields that nobody knows yet, which are kept", async () => {
    const body = { results: [], errors: [], new: 1 };
    const { client, lines } = await startServer({ body }, { validateResponses: "throw" });
    expect(await client.messages.send(SMS)).toMatchObject({ new: 1, allRejected: true });
    expect(lines).toEqual([]);
  });
});

/** The cause that an error shows when `fetch` fails with this. */
async function causeOf(failure: unknown): Promise<unknown> {
  const client = createClient({
    ...{ baseUrl: "http://127.0.0.1:9", clientId: "client_main", clientSecret: "a-secret", maxRetries: 0 },
    ...{ logger: silentLogger, fetch: () => Promise.reject(failure) },
  });
  return (await failureOf(client.whoami(), ConnectionError)).cause;
}

describe("the cause of a ConnectionError", () => {
  it("says what happened, without what hangs on it", async () => {
    const inner = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read", errno: -104 });
    const cause = await causeOf(Object.assign(new TypeError("fetch failed", { cause: inner }), { headers: {} }));
    const { message, code, syscall, errno } = inner;
    expect(cause).toMatchObject({ name: "TypeError", message: "fetch failed" });
    expect((cause as Error).cause).toMatchObject({ message, code, syscall, errno });
    expect(cause).not.toHaveProperty("headers");
  });

  it.each(["Invalid value marked text", "4155550199", "sent to 415-555-0199: marked text"])(
    "hides a message that nobody knows, in whatever words it has them: %s",
    async (message) => {
      const foreign = Object.assign(new RangeError(message), { code: "ERR_FOREIGN", cause: new Error(message) });
      const cause = await causeOf(foreign);
      expect(cause).toMatchObject({ name: "RangeError", code: "ERR_FOREIGN", message: "fetch failed" });
      expect(inspect(cause, { depth: 9, showHidden: true })).not.toContain(message);
    },
  );

  it.each([
    ...["ECONNRESET", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "EPIPE", "EHOSTUNREACH"],
    ...["CERT_HAS_EXPIRED", "ERR_TLS_CERT_ALTNAME_INVALID", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ...["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UND_ERR_SOCKET", "HPE_INVALID_CONSTANT"],
  ])("keeps the message that the system or fetch itself wrote: %s", async (code) => {
    const known = Object.assign(new Error("other side closed"), { code });
    const cause = await causeOf(new TypeError("fetch failed", { cause: known }));
    expect((cause as Error).cause).toMatchObject({ code, message: "other side closed" });
  });
});
