import { describe, expect, it } from "vitest";
import {
  type RequestNotice,
  type ResponseNotice,
  type RetryNotice,
  ServerError,
} from "../../../src/messaging/client/index.ts";
import { SMS } from "./operations.ts";
import { failureOf, fault, SEND_PATH, startClient, startServer, TOKEN_PATH, WHOAMI_PATH } from "./support.ts";

type Told = ["request", RequestNotice] | ["response", ResponseNotice] | ["retry", RetryNotice];

/** Hooks that keep what they are told. */
function keeping() {
  const told: Told[] = [];
  const hooks = {
    onRequest: (notice: RequestNotice) => told.push(["request", notice]),
    onResponse: (notice: ResponseNotice) => told.push(["response", notice]),
    onRetry: (notice: RetryNotice) => told.push(["retry", notice]),
  };
  return { told, hooks };
}

describe("the hooks", () => {
  it("tell each request and answer, the token's included, in order", async () => {
    const { told, hooks } = keeping();
    const { client } = await startClient(hooks);
    await client.messages.send(SMS, { idempotencyKey: "order-1" });
    const first = { method: "POST", attempt: 1 };
    const token = { ...first, operation: "token", route: TOKEN_PATH, idempotencyKey: null };
    const send = { ...first, operation: "messages.send", route: SEND_PATH, idempotencyKey: "order-1" };
    const answer = { durationMs: expect.any(Number), requestId: null };
    expect(told).toEqual([
      ["request", token],
      ["response", { ...token, ...answer, status: 200 }],
      ["request", send],
      ["response", { ...send, ...answer, status: 202 }],
    ]);
  });

  it("tell each retry with its wait and its reason", async () => {
    const { told, hooks } = keeping();
    const refusal = (status: number, code: string) => ({ status, body: { error: { code }, requestId: "req_1" } });
    const { client } = await startServer(
      [
        (request) => request.socket.destroy(),
        { status: 502, body: "<html>" },
        ...[refusal(401, "UNAUTHORIZED"), refusal(500, "SERVER_ERROR"), 200],
      ],
      { ...hooks, maxRetries: 3 },
    );
    await client.whoami();
    const retries = told.flatMap(([kind, notice]) => (kind === "retry" ? [notice] : []));
    expect(retries.map(({ attempt, reason, delayMs }) => [attempt, reason, delayMs])).toEqual([
      [1, "connection_failed", 0],
      [2, "api_error", 0],
      [3, "UNAUTHORIZED", 0],
      [4, "SERVER_ERROR", 0],
    ]);
    const failed = told.find(([kind, notice]) => kind === "response" && notice.attempt === 4);
    expect(failed?.[1]).toMatchObject({ status: 500, requestId: "req_1" });
  });

  it("that throw are logged by name and dropped", async () => {
    const fails = () => {
      throw new RangeError("marked text");
    };
    const { client, lines } = await startClient({ onRequest: fails, onResponse: async () => fails() });
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
    const hooks = lines.map(({ fields }) => fields.hook).toSorted();
    expect(hooks).toEqual(["onRequest", "onRequest", "onResponse", "onResponse"]);
    const fields = { hook: "onRequest", operation: "token", error: "RangeError" };
    expect(lines[0]).toMatchObject({ level: "error", fields });
    expect(JSON.stringify(lines)).not.toContain("marked text");
  });

  it("that throw in a retry do not end it", async () => {
    const onRetry = () => {
      throw new Error("no");
    };
    const down = fault(`GET ${WHOAMI_PATH}`, { type: "status", status: 500 });
    const { client } = await startClient({ emulator: { faults: [down] }, onRetry });
    expect((await failureOf(client.whoami(), ServerError)).attempts).toBe(3);
  });
});
