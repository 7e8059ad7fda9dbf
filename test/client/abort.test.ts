import { describe, expect, it, onTestFinished } from "vitest";
import { AbortedError, type Client, ConnectionError } from "../../src/client/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import {
  answerJson,
  failureOf,
  SEND_PATH,
  sendOf,
  startClient,
  startServer,
  startTokens,
  TOKEN_PATH,
} from "./support.ts";

/** Resolves when `condition` holds; the test's own limit ends it otherwise. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

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
    expect(sentTo("/api/core/whoami").length).toBe(1);
  });

  it("ends a body that is being read", async () => {
    const controller = new AbortController();
    const { client } = await startServer((_, response) => {
      response.writeHead(200).write("{", () => controller.abort());
    });
    await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
  });

  it("ends a send whose fetch does not heed it, with the send's key (SND-17)", async () => {
    const controller = new AbortController();
    const { client, emulator } = await startClient({
      fetch: async (input) => {
        if (String(input).endsWith(TOKEN_PATH)) return new Response('{"access_token":"t"}');
        queueMicrotask(() => controller.abort());
        return new Promise(() => {});
      },
    });
    const call = client.messages.send(sendOf(emulator), { signal: controller.signal, idempotencyKey: "order-1" });
    expect((await failureOf(call, AbortedError)).idempotencyKey).toBe("order-1");
  });

  it("leaves the token request to the others that wait for it (CLI-2)", async () => {
    let answer: (() => void) | undefined;
    const { client, tokenRequests } = await startTokens((response) => {
      answer = () => answerJson(response, 200, { access_token: "t", expires_in: 3600 });
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
    const { client, tokenRequests } = await startTokens((response) => {
      controller.abort();
      answerJson(response, 200, { access_token: "t", expires_in: 3600 });
    });
    await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
    expect(await client.whoami()).toEqual({});
    expect(tokenRequests()).toBe(1);
  });

  it("keeps no listener of a call that has ended", async () => {
    const { client } = await startClient();
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners += 1;
      addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners -= 1;
      removeEventListener.apply(signal, args);
    };
    await client.whoami({ signal });
    await client.whoami({ signal });
    expect(listeners).toBe(0);
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

  it.each(["token", "whoami"])(
    "that a hook aborts before the request of %s ends the call at once",
    async (operation) => {
      const controller = new AbortController();
      const { client } = await startClient({
        fetch: async (input) =>
          String(input).endsWith(operation) ? new Promise(() => {}) : new Response('{"access_token":"t"}'),
        onRequest: (notice) => {
          if (notice.operation === operation) controller.abort();
        },
      });
      await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
    },
  );

  it("that a hook aborts when the token is renewed ahead ends the call before its own request (CLI-2)", async () => {
    const clock = createFakeClock();
    const controller = new AbortController();
    let asked = 0;
    const { client } = await startTokens(
      (response) => answerJson(response, 200, { access_token: "t", expires_in: 3600 }),
      {
        clock,
        onRequest({ operation }) {
          if (operation === "token") asked += 1;
          if (asked === 2) controller.abort();
        },
      },
    );
    await client.whoami();
    await clock.advance(56 * 60_000);
    const error = await failureOf(client.whoami({ signal: controller.signal }), AbortedError);
    expect([asked, error.attempts]).toEqual([2, 0]);
  });

  it("does nothing to a call that has its answer", async () => {
    const { client } = await startClient();
    const controller = new AbortController();
    const whoami = await client.whoami({ signal: controller.signal });
    controller.abort();
    expect(whoami.apiClientStatus).toBe("ACTIVE");
  });
});

describe("what was sent when a call was aborted", () => {
  it("can be taken up again by the error's key, and is one message (SND-17)", async () => {
    const controller = new AbortController();
    const { client, emulator, sentTo } = await startClient({
      emulator: {
        faults: [{ match: { route: `POST ${SEND_PATH}` }, action: { type: "reset", when: "after" }, times: 1 }],
      },
      backoff: { baseMs: 60_000 },
      onRetry: () => controller.abort(),
    });
    const request = sendOf(emulator);
    const error = await failureOf(client.messages.send(request, { signal: controller.signal }), AbortedError);
    const sent = await client.messages.send(request, keyOf(error));
    expect(sentTo(SEND_PATH).length).toBe(2);
    expect(emulator.control.messages().map(({ messageId }) => messageId)).toEqual([sent.results[0]?.messageId]);
  });
});

function keyOf({ idempotencyKey }: AbortedError): Parameters<Client["messages"]["send"]>[1] {
  return idempotencyKey === null ? {} : { idempotencyKey };
}
