import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import {
  ApiError,
  ConflictError,
  ForbiddenError,
  InvalidArgumentError,
  InvalidRequestError,
  NotFoundError,
  RecipientsRejectedError,
  ServerError,
  ServiceError,
  UnauthorizedError,
  UnknownApiError,
  UpstreamError,
} from "../../src/client/index.ts";
import { OncehookError } from "../../src/errors.ts";
import { answerJson, failureOf, SEND_PATH, sendOf, startClient, startServer } from "./support.ts";

const PHONE = "+14155550199";

const wrapper = (code: unknown, fields: Record<string, unknown> = {}) => ({
  error: { code, message: `free text with ${PHONE}`, details: { echoed: PHONE } },
  requestId: "req_1",
  ...fields,
});

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
  ])("of %i %s has its class (CLI-7)", async (status, code, kind) => {
    const { client } = await startServer((_, response) => answerJson(response, status, wrapper(code)));
    const error = await failureOf(client.whoami(), ApiError);
    expect(error.constructor).toBe(kind);
    expect(error).toMatchObject({ status, code, requestId: "req_1", operation: "whoami", name: kind.name });
    expect(error.serviceMessage).toContain("free text");
    expect(error.details).toEqual({ echoed: PHONE });
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toBeInstanceOf(OncehookError);
  });

  it.each([
    [400, "NOT_FOUND", NotFoundError],
    [500, "FORBIDDEN", ForbiddenError],
    [404, "SERVER_ERROR", ServerError],
    [500, "UPSTREAM_ERROR", UpstreamError],
  ])("of status %i with code %s follows the code (CLI-7, GEN-12)", async (status, code, kind) => {
    const { client } = await startServer((_, response) => answerJson(response, status, wrapper(code)));
    expect((await failureOf(client.whoami(), ApiError)).constructor).toBe(kind);
  });

  it.each([
    [400, "QUOTA", InvalidRequestError],
    [404, "GONE_AWAY", NotFoundError],
    [503, "MAINTENANCE", ServerError],
    [429, "RATE_LIMITED", UnknownApiError],
    [402, "PAYMENT_DUE", UnknownApiError],
  ])(
    "of %i with the unknown code %s follows the status and keeps the code (CLI-7, GEN-11)",
    async (status, code, kind) => {
      const { client } = await startServer((_, response) => answerJson(response, status, wrapper(code)));
      const error = await failureOf(client.whoami(), ApiError);
      expect(error.constructor).toBe(kind);
      expect(error.code).toBe(code);
    },
  );

  it.each([
    ["no JSON", "<html>Bad Gateway</html>"],
    ["an empty body", ""],
    ["null", "null"],
    ["a list", "[1]"],
    ["a text", '"error"'],
    ["an OAuth error", '{"error":"server_error"}'],
    ["an error that is null", '{"error":null,"requestId":null}'],
    ["an error that is a list", '{"error":[],"requestId":[]}'],
    ["a code that is a number", '{"error":{"code":7,"message":7,"details":7},"requestId":7}'],
    ["a code that is free text", '{"error":{"code":"no such number +14155550199"}}'],
    ["details that are null", '{"error":{"details":null}}'],
    ["keys of prototypes", '{"error":{"__proto__":{"code":"CONFLICT"},"constructor":1}}'],
  ])("of %s follows the status alone (CLI-7, GEN-2)", async (_, body) => {
    const { client } = await startServer((_, response) => response.writeHead(502).end(body));
    const error = await failureOf(client.whoami(), ServerError);
    expect(error).toMatchObject({ status: 502, code: "api_error", requestId: null, details: {} });
    expect(error.message).toBe("whoami was answered with 502.");
  });

  it.each([301, 302, 303, 307, 308])(
    "of a %i says to check baseUrl, and the redirect is not followed",
    async (status) => {
      let calls = 0;
      const { client } = await startServer((_, response) => {
        calls += 1;
        response.writeHead(status, { location: "/elsewhere" }).end();
      });
      const error = await failureOf(client.whoami(), UnknownApiError);
      expect(error.message).toContain("check baseUrl");
      expect(error.status).toBe(status);
      expect(calls).toBe(1);
    },
  );

  it.each(["get", "update"] as const)("of webhooks.%s with 404 says what that means (WHK-27)", async (method) => {
    const { client } = await startClient({ emulator: { unspecified: { "webhooks.routes": "404" } } });
    const { webhooks } = client;
    const call = method === "get" ? webhooks.get() : webhooks.update("inbound", { signingEnabled: false });
    const error = await failureOf(call, NotFoundError);
    expect(error.message).toContain(
      "does not expose the account-level defaults of webhooks; targets can be set per number",
    );
  });

  it("of an upstream failure has its status, or null when that is no integer (SEA-8)", async () => {
    const answers = [{ providerStatus: 503 }, { providerStatus: "503" }, {}];
    const { client } = await startServer(
      (_, response) => answerJson(response, 502, { error: { code: "UPSTREAM_ERROR", details: answers.shift() } }),
      { maxRetries: 0 },
    );
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await failureOf(client.numbers.search(), UpstreamError)).providerStatus);
    expect(statuses).toEqual([503, null, null]);
  });

  it("shows the service's reason with masked numbers, and its details nowhere", async () => {
    const { client } = await startServer((_, response) => answerJson(response, 400, wrapper("INVALID_REQUEST")));
    const error = await failureOf(client.whoami(), InvalidRequestError);
    expect(error.message).toBe("whoami was answered with 400 INVALID_REQUEST (request req_1): free text with …99.");
    expect(`${inspect(error, { depth: 9, showHidden: true })}${JSON.stringify(error)}`).not.toContain(PHONE);
  });
});

describe("the service's own refusals", () => {
  it("are told apart: 403 for another client's number, 404 for an unknown one (SND-4, SND-5, UPD-2, UPD-3)", async () => {
    const { client, emulator } = await startClient();
    const { foreign } = emulator.fixtures.numbers;
    await failureOf(client.messages.send(sendOf(emulator, { sendFrom: foreign })), ForbiddenError);
    await failureOf(client.messages.send(sendOf(emulator, { sendFrom: "num_none" })), NotFoundError);
    await failureOf(client.numbers.update(foreign, {}), ForbiddenError);
    await failureOf(client.numbers.update("num_none", {}), NotFoundError);
  });

  it("name the reason of a send that cannot be made: 400, with its key (SND-15, SND-23)", async () => {
    const { client, emulator, sentTo } = await startClient();
    const { noCampaign } = emulator.fixtures.numbers;
    const error = await failureOf(
      client.messages.send(sendOf(emulator, { sendFrom: noCampaign })),
      InvalidRequestError,
    );
    expect(error.idempotencyKey).toBe(sentTo(SEND_PATH)[0]?.headers.get("idempotency-key"));
    expect(sentTo(SEND_PATH).length).toBe(1);
  });

  it("of a send without any usable recipient are one, when the service answers so (SND-24)", async () => {
    const { client, emulator } = await startClient({
      validateRequests: false,
      emulator: { unspecified: { allRejected: 400 } },
    });
    await failureOf(client.messages.send(sendOf(emulator, { to: ["nobody"] })), InvalidRequestError);
  });
});

describe("a send's key", () => {
  it.each<[string, Parameters<typeof startServer>[0]]>([
    ["a refusal", (_, response) => answerJson(response, 400, wrapper("INVALID_REQUEST"))],
    ["a conflict", (_, response) => answerJson(response, 409, wrapper("CONFLICT"))],
    ["a failure of the service", (_, response) => answerJson(response, 500, wrapper("SERVER_ERROR"))],
    ["a broken connection", (request) => request.socket.destroy()],
    ["an answer that is no JSON", (_, response) => response.writeHead(202).end("<html>")],
    ["an answer of another shape", (_, response) => answerJson(response, 202, { results: "none" })],
    ["an empty answer", (_, response) => response.writeHead(204).end()],
  ])("is on the error of %s (SND-17)", async (_, answer) => {
    const { client } = await startServer(answer, { maxRetries: 1, validateRequests: false });
    const error = await failureOf(client.messages.send({} as never, { idempotencyKey: "order-1" }), ServiceError);
    expect(error).toMatchObject({ operation: "messages.send", idempotencyKey: "order-1" });
  });

  it("is on the error of an aborted send, also before its first request (SND-17)", async () => {
    const { client, emulator, requests } = await startClient();
    const signal = AbortSignal.abort();
    const error = await failureOf(client.messages.send(sendOf(emulator), { signal }), ServiceError);
    expect(error).toMatchObject({ code: "aborted", attempts: 0 });
    expect(error.idempotencyKey).toMatch(/^[0-9a-f-]{36}$/);
    expect(requests).toEqual([]);
  });

  it("is on the error of a send that was refused before any request (SND-17)", async () => {
    const { client, requests } = await startClient();
    const error = await failureOf(client.messages.send({} as never, { idempotencyKey: "k" }), InvalidArgumentError);
    expect(error).toMatchObject({ idempotencyKey: "k", attempts: 0, operation: "messages.send" });
    expect(requests).toEqual([]);
  });

  it("is null on the errors of other calls", async () => {
    const { client } = await startServer((_, response) => answerJson(response, 500, {}));
    expect((await failureOf(client.whoami(), ServerError)).idempotencyKey).toBeNull();
  });

  it("is on the error that throwIfRejected() makes (CLI-9)", async () => {
    const { client, emulator } = await startClient();
    const request = sendOf(emulator, { to: ["nobody", "+14155550123", "noone"] });
    const sent = await client.messages.send(request, { idempotencyKey: "order-1" });
    const error = await failureOf((async () => sent.throwIfRejected())(), RecipientsRejectedError);
    expect(error).toMatchObject({ accepted: 1, rejected: 2, idempotencyKey: "order-1" });
    expect(error.message).not.toContain("nobody");
  });
});
