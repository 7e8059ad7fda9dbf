import { describe, expect, it } from "vitest";
import { ConnectionError, InvalidArgumentError, TimeoutError, UpstreamError } from "../../src/client/index.ts";
import type { ApiAction } from "../../src/emulator/faults.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { failureOf, SEND_PATH, sendOf, startClient, startServer } from "./support.ts";

const SEND = { route: `POST ${SEND_PATH}` };
const RESET: ApiAction = { type: "reset", when: "before" };
const LOST: ApiAction = { type: "reset", when: "after" };
const SECRET = "a-secret-of-your-own-32-characters";

describe("a send", () => {
  it.each<[string, ApiAction]>([
    ["before the commit", RESET],
    ["after the commit", LOST],
  ])("whose connection breaks %s is one message (SND-17, SND-22)", async (_, action) => {
    const fault = { match: SEND, action, times: 2 };
    const { client, emulator, sentTo } = await startClient({ emulator: { faults: [fault], port: 0 } });
    const sent = await client.messages.send(sendOf(emulator));
    expect(sent.results.length).toBe(1);
    expect(emulator.control.messages().length).toBe(1);
    const sends = sentTo(SEND_PATH);
    expect(sends.length).toBe(3);
    expect(new Set(sends.map(({ body }) => body)).size).toBe(1);
    expect(new Set(sends.map(({ headers }) => headers.get("idempotency-key")))).toEqual(new Set([sent.idempotencyKey]));
  });

  it("keeps its bytes though the caller changes the request in between (SND-22)", async () => {
    const request = { to: ["+14155550123"] };
    const { client, emulator, sentTo } = await startClient({
      onRetry: () => request.to.push("+14155550124"),
      emulator: { faults: [{ match: SEND, action: LOST, times: 1 }] },
    });
    const sent = await client.messages.send(sendOf(emulator, request));
    expect(sent.results.length).toBe(1);
    const [first, second] = sentTo(SEND_PATH);
    expect(second?.body).toBe(first?.body);
  });

  it("that ends without an answer is taken up again by its error's key, and is one message (SND-17)", async () => {
    const { client, emulator } = await startClient({ emulator: { faults: [{ match: SEND, action: LOST, times: 3 }] } });
    const request = sendOf(emulator);
    const error = await failureOf(client.messages.send(request), ConnectionError);
    const { idempotencyKey } = error;
    const sent = await client.messages.send(request, idempotencyKey === null ? {} : { idempotencyKey });
    expect(sent.idempotencyKey).toBe(idempotencyKey);
    expect(emulator.control.messages().map(({ messageId }) => messageId)).toEqual([sent.results[0]?.messageId]);
  });

  it("of its own has a key of its own (SND-1)", async () => {
    const { client, emulator, sentTo } = await startClient();
    await client.messages.send(sendOf(emulator));
    await client.messages.send(sendOf(emulator));
    const keys = sentTo(SEND_PATH).map(({ headers }) => headers.get("idempotency-key"));
    expect(new Set(keys).size).toBe(2);
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });
});

describe("of the other calls", () => {
  it("a search is made again (CLI-5, SEA-8)", async () => {
    const { client } = await startClient({
      emulator: { faults: [{ match: { route: "POST /api/core/numbers/search" }, action: LOST, times: 2 }] },
    });
    expect((await client.numbers.search().withResponse()).attempts).toBe(3);
  });

  it("a search whose inventory fails ends in an UpstreamError with its status (CLI-5, SEA-8)", async () => {
    const { client } = await startClient();
    const error = await failureOf(client.numbers.search({ zipCode: "00502" }), UpstreamError);
    expect(error).toMatchObject({ code: "UPSTREAM_ERROR", status: 502, providerStatus: 503, attempts: 3 });
  });

  it("a number's update is made again: it says what shall be (CLI-5)", async () => {
    const { client, emulator } = await startClient({
      emulator: { faults: [{ match: { route: "PATCH /api/core/numbers/{numberId}" }, action: LOST, times: 2 }] },
    });
    const call = client.numbers.update(emulator.fixtures.numbers.full, { mmsEnabled: false });
    expect((await call.withResponse()).attempts).toBe(3);
  });

  it("a webhook update with the caller's secret is made again (CLI-5)", async () => {
    const { client } = await startClient({
      emulator: { faults: [{ match: { route: "PATCH /api/core/webhooks/delivery" }, action: LOST, times: 2 }] },
    });
    const call = client.webhooks.update("delivery", { signingEnabled: true, secret: SECRET });
    expect((await call.withResponse()).attempts).toBe(3);
  });

  it.each<[string, ApiAction]>([
    ["a lost answer", LOST],
    ["a 500", { type: "status", status: 500 }],
  ])(
    "a webhook update without one is not, after %s: a generated secret would be lost (CLI-5, WHK-13)",
    async (_, action) => {
      const { client } = await startClient({
        emulator: { faults: [{ match: { route: "PATCH /api/core/webhooks/delivery" }, action, times: 1 }] },
      });
      const call = client.webhooks.update("delivery", { signingEnabled: true });
      await expect(call).rejects.toMatchObject({ attempts: 1, operation: "webhooks.update", idempotencyKey: null });
    },
  );
});

describe("a webhook update", () => {
  const lost = { match: { route: "PATCH /api/core/webhooks/delivery" }, action: LOST, times: 1 };
  const getter = (secrets: (string | undefined)[]) => ({
    signingEnabled: true,
    get secret() {
      return secrets.shift();
    },
  });

  it.each<[string, object]>([
    ["is written by toJSON", { secret: SECRET, toJSON: () => ({ signingEnabled: true }) }],
    ["has a getter that gives it later", getter([undefined, SECRET, SECRET])],
  ])("that %s without its secret is not made again (CLI-5, WHK-13)", async (_, update) => {
    const { client } = await startClient({ emulator: { faults: [lost] } });
    await expect(client.webhooks.update("delivery", update as never)).rejects.toMatchObject({ attempts: 1 });
  });

  it("is checked and made again as it is sent (CLI-5, WHK-8)", async () => {
    const { client, sentTo } = await startClient({ emulator: { faults: [lost] } });
    const update = { toJSON: () => ({ signingEnabled: true, secret: SECRET }) };
    expect((await client.webhooks.update("delivery", update as never).withResponse()).attempts).toBe(2);
    const wrong = { signingEnabled: true, toJSON: () => ({ signingEnabled: "yes" }) };
    await failureOf(client.webhooks.update("delivery", wrong as never), InvalidArgumentError);
    expect(sentTo("/api/core/webhooks/delivery").length).toBe(2);
  });
});

describe("timeoutMs", () => {
  it("ends each attempt in a TimeoutError, with the key of a send (SND-22)", async () => {
    const clock = createFakeClock();
    const never = () => void clock.advance(50);
    const { client } = await startServer(never, { clock, timeoutMs: 50, maxRetries: 1, validateRequests: false });
    const error = await failureOf(client.messages.send({} as never, { idempotencyKey: "order-1" }), TimeoutError);
    expect(error).toMatchObject({ code: "request_timeout", attempts: 2, idempotencyKey: "order-1" });
    expect(error.message).toBe("messages.send got no answer within 50 ms, in 2 attempts.");
  });

  it("ends an attempt whose fetch does not heed its signal", async () => {
    const clock = createFakeClock();
    const { client } = await startServer(() => {}, { clock, maxRetries: 0, fetch: () => new Promise(() => {}) });
    const failure = failureOf(client.whoami(), TimeoutError);
    await clock.advance(30_000);
    expect((await failure).message).toContain("The token route gave no answer within 30000 ms");
  });

  it("leaves no timer behind", async () => {
    const { clock, running } = watchedTimers(createFakeClock());
    const { client } = await startClient({ clock });
    await client.whoami();
    expect(running()).toBe(0);
  });
});
