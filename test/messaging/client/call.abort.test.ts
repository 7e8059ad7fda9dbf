/** A caller's signal: when it ends a call, and what it leaves to the other calls. */
import { getEventListeners } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { AbortedError, ConnectionError } from "../../../src/messaging/client/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { SMS } from "./operations.ts";
import {
  failureOf,
  fault,
  SEND_PATH,
  startClient,
  startServer,
  startTokens,
  TOKEN_PATH,
  tokenBody,
  until,
  WHOAMI_PATH,
} from "./support.ts";

describe("a caller's signal", () => {
  it("that is aborted already ends the call before any request, with the signal's reason", async () => {
    const { client, requests } = await startClient();
    const reason = new Error("no longer needed");
    const error = await failureOf(client.whoami({ signal: AbortSignal.abort(reason) }), AbortedError);
    expect(error).toMatchObject({ code: "aborted", attempts: 0, cause: reason });
    expect(error).toBeInstanceOf(ConnectionError);
    expect(requests).toEqual([]);
  });

  it("ends a request under way, which is not made again", async () => {
    const controller = new AbortController();
    let closed = 0;
    const { client, sentTo } = await startServer((request) => {
      request.socket.on("close", () => {
        closed += 1;
      });
      controller.abort();
    });
    const error = await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
    expect(error.attempts).toBe(1);
    await until(() => closed === 1);
    expect(sentTo(WHOAMI_PATH).length).toBe(1);
  });

  it("ends a body that is being read", async () => {
    const controller = new AbortController();
    const { client } = await startServer((_, response) => response.writeHead(200).write("{", () => controller.abort()));
    await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
  });

  it("leaves the token request to the others that wait for it (CLI-2)", async () => {
    let answer: (() => void) | undefined;
    const { client, tokenRequests } = await startTokens((_, response) => {
      answer = () => response.end(JSON.stringify(tokenBody("t")));
    });
    const controller = new AbortController();
    const leaving = client.whoami({ signal: controller.signal });
    const staying = client.whoami();
    await until(() => answer !== undefined);
    controller.abort();
    expect(await failureOf(leaving, AbortedError)).toMatchObject({ operation: "whoami", attempts: 0 });
    answer?.();
    expect(await staying).toEqual({});
    expect(tokenRequests()).toBe(1);
  });

  it("leaves a token that comes later for the next call (CLI-2)", async () => {
    const controller = new AbortController();
    const { client, tokenRequests } = await startTokens((_, response) => {
      controller.abort();
      response.end(JSON.stringify(tokenBody("t")));
    });
    await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
    expect(await client.whoami()).toEqual({});
    expect(tokenRequests()).toBe(1);
  });

  it("keeps no listener of a call that has ended, and does nothing to it", async () => {
    const { client } = await startClient();
    const controller = new AbortController();
    const { signal } = controller;
    const call = client.whoami({ signal });
    expect(getEventListeners(signal, "abort").length).toBeGreaterThan(0);
    const whoami = await call;
    expect(getEventListeners(signal, "abort")).toEqual([]);
    controller.abort();
    expect(whoami.apiClientStatus).toBe("ACTIVE");
  });

  it("can be shared by a thousand calls without a warning", async () => {
    const warnings: Error[] = [];
    const keep = (warning: Error) => warnings.push(warning);
    process.on("warning", keep);
    onTestFinished(() => void process.off("warning", keep));
    const { client } = await startClient();
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 1_000 }, () => client.whoami({ signal })));
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });

  it.each(["token", "send"])(
    "that a hook aborts before the request of %s ends the call at once, with a send's key (SND-17)",
    async (route) => {
      const controller = new AbortController();
      const { client } = await startClient({
        // It does not heed its own signal.
        fetch: async (input) =>
          String(input).endsWith(route) ? new Promise(() => {}) : Response.json({ access_token: "t" }),
        onRequest: (notice) => {
          if (notice.route.endsWith(route)) controller.abort();
        },
      });
      const call = client.messages.send(SMS, { signal: controller.signal, idempotencyKey: "order-1" });
      expect((await failureOf(call, AbortedError)).idempotencyKey).toBe("order-1");
    },
  );

  it("that a hook aborts when the token is renewed ahead ends the call before its own request (CLI-2)", async () => {
    const clock = createFakeClock();
    const controller = new AbortController();
    let asked = 0;
    const { client } = await startTokens(
      { body: tokenBody("t") },
      {
        clock,
        onRequest({ route }) {
          if (route === TOKEN_PATH) asked += 1;
          if (asked === 2) controller.abort();
        },
      },
    );
    await client.whoami();
    await clock.advance(56 * 60_000);
    const error = await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
    expect([asked, error.attempts]).toEqual([2, 0]);
  });

  it("ends the wait before a retry, and leaves a send that can be taken up again by the error's key, and is one message (SND-17)", async () => {
    const controller = new AbortController();
    const lost = fault(`POST ${SEND_PATH}`, { type: "reset", when: "after" }, 1);
    const { client, emulator, sentTo } = await startClient({
      // It never moves, so only the signal can end the wait.
      ...{ clock: createFakeClock(), backoff: { baseMs: 60_000 }, random: () => 0.5 },
      emulator: { faults: [lost] },
      onRetry: () => void setImmediate(() => controller.abort()),
    });
    const aborted = client.messages.send(SMS, { signal: controller.signal });
    const { idempotencyKey, attempts } = await failureOf(aborted, AbortedError);
    expect(attempts).toBe(1);
    const sent = await client.messages.send(SMS, { idempotencyKey: idempotencyKey ?? "" });
    expect(sentTo(SEND_PATH).length).toBe(2);
    expect(emulator.control.messages().map(({ messageId }) => messageId)).toEqual([sent.results[0]?.messageId]);
  });
});
