import { describe, expect, it } from "vitest";
import { type RequestNotice, type ResponseNotice, type RetryNotice, ServerError } from "../../src/client/index.ts";
import type { StartOptions } from "./support.ts";
import { answerJson, failureOf, SEND_PATH, sendOf, startClient, startServer, TOKEN_PATH } from "./support.ts";

type Told = ["request", RequestNotice] | ["response", ResponseNotice] | ["retry", RetryNotice];

function told(): { told: Told[]; hooks: StartOptions } {
  const told: Told[] = [];
  const hooks: StartOptions = {
    onRequest: (notice) => told.push(["request", notice]),
    onResponse: (notice) => told.push(["response", notice]),
    onRetry: (notice) => told.push(["retry", notice]),
  };
  return { told, hooks };
}

describe("the hooks", () => {
  it("tell each request and answer, the token's included, in order", async () => {
    const { told: notices, hooks } = told();
    const { client, emulator } = await startClient(hooks);
    await client.messages.send(sendOf(emulator), { idempotencyKey: "order-1" });
    const token = { operation: "token", method: "POST", route: TOKEN_PATH, attempt: 1, idempotencyKey: null };
    const send = {
      operation: "messages.send",
      method: "POST",
      route: SEND_PATH,
      attempt: 1,
      idempotencyKey: "order-1",
    };
    const answer = { durationMs: expect.any(Number), requestId: null };
    expect(notices).toEqual([
      ["request", token],
      ["response", { ...token, ...answer, status: 200 }],
      ["request", send],
      ["response", { ...send, ...answer, status: 202 }],
    ]);
  });

  it("name the route without its parameters", async () => {
    const { told: notices, hooks } = told();
    const { client, emulator } = await startClient(hooks);
    await client.numbers.update(emulator.fixtures.numbers.full, {});
    expect(notices.at(-1)?.[1].route).toBe("/api/core/numbers/{numberId}");
  });

  it("tell each retry with its wait and its reason", async () => {
    const { told: notices, hooks } = told();
    const unavailable = { error: { code: "SERVER_ERROR", message: "", details: {} }, requestId: "req_1" };
    const answers = ["reset", 502, 401, 500];
    const { client } = await startServer(
      (request, response) => {
        const next = answers.shift();
        if (next === "reset") request.socket.destroy();
        else if (next === 502) response.writeHead(502).end("<html>");
        else if (next === 401) answerJson(response, 401, { error: { code: "UNAUTHORIZED" } });
        else answerJson(response, next === 500 ? 500 : 200, next === 500 ? unavailable : {});
      },
      { ...hooks, maxRetries: 3 },
    );
    await client.whoami();
    const retries = notices.flatMap(([kind, notice]) => (kind === "retry" ? [notice] : []));
    expect(retries.map(({ attempt, reason }) => [attempt, reason])).toEqual([
      [1, "connection_failed"],
      [2, "api_error"],
      [3, "UNAUTHORIZED"],
      [4, "SERVER_ERROR"],
    ]);
    expect(retries.every(({ delayMs }) => delayMs === 0)).toBe(true);
    const failed = notices.find(([kind, notice]) => kind === "response" && notice.attempt === 4);
    expect(failed?.[1]).toMatchObject({ status: 500, requestId: "req_1" });
  });

  it("never show a secret, a token, a number or a text", async () => {
    const { told: notices, hooks } = told();
    const { client, emulator, requests } = await startClient({ ...hooks, authMethod: "basic" });
    await client.messages.send(sendOf(emulator, { text: "marked text" }));
    const shown = JSON.stringify(notices);
    const token = requests[1]?.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    for (const marked of [emulator.clientSecret, token, "+14155550123", "marked text"]) {
      expect(marked).not.toBe("");
      expect(shown).not.toContain(marked);
    }
  });

  it("that throw are logged by name and dropped", async () => {
    const fails = () => {
      throw new RangeError("marked text");
    };
    const { client, lines } = await startClient({ onRequest: fails, onResponse: fails });
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
    expect(lines.length).toBe(4);
    expect(lines[0]).toMatchObject({
      level: "error",
      fields: { hook: "onRequest", operation: "token", error: "RangeError" },
    });
    expect(JSON.stringify(lines)).not.toContain("marked text");
  });

  it("that are async and reject are logged and dropped as well", async () => {
    const { client, lines } = await startClient({ onRequest: async () => Promise.reject(new Error("no")) });
    await client.whoami();
    expect(lines.map(({ fields }) => fields.hook)).toEqual(["onRequest", "onRequest"]);
  });

  it("that throw in a retry do not end it", async () => {
    const fault = { match: { route: "GET /api/core/whoami" }, action: { type: "status", status: 500 } } as const;
    const { client } = await startClient({
      emulator: { faults: [fault] },
      onRetry: () => {
        throw new Error("no");
      },
    });
    expect((await failureOf(client.whoami(), ServerError)).attempts).toBe(3);
  });
});
