/** Many calls at once: one token request for all of them, one refresh for all their 401s, and no request that nobody asked for. */
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ConflictError, OAuthError, UnauthorizedError } from "../../src/client/index.ts";
import { failureOf, type StartOptions, sendOf, startClient, TOKEN_PATH } from "./support.ts";

const HOUR_MS = 3_600_000;
const WHOAMI_PATH = "/api/core/whoami";

/** A client with a token in hand, so that the only token requests to come are refreshes. */
async function startWithToken(options: StartOptions = {}) {
  const started = await startClient(options);
  await started.client.whoami();
  const before = started.sentTo(TOKEN_PATH).length;
  return { ...started, refreshes: () => started.sentTo(TOKEN_PATH).length - before };
}

describe("1,000 parallel calls", () => {
  it("make one token request when the service says that it has expired (CLI-3)", async () => {
    const { client, emulator, requests, refreshes } = await startWithToken();
    await emulator.clock.advance(HOUR_MS);
    const before = requests.length;
    const calls = Array.from({ length: 1_000 }, (_, index) => {
      if (index % 2 === 0) return client.whoami().withResponse();
      return client.messages.send(sendOf(emulator, { externalReference: `order-${index}` })).withResponse();
    });
    const attempts = (await Promise.all(calls)).map((answer) => answer.attempts);
    expect(new Set(attempts)).toEqual(new Set([2]));
    expect(refreshes()).toBe(1);
    expect(requests.length - before).toBe(2_001);
    expect(emulator.control.messages({ limit: 10_000 })).toHaveLength(500);
  });

  it("make one token request that fails for all of them, and the next call another one (CLI-4)", async () => {
    const { client, emulator, sentTo } = await startClient();
    emulator.control.faults.add({
      match: { route: `POST ${TOKEN_PATH}` },
      action: { type: "status", status: 401, code: "invalid_client" },
      times: 1,
    });
    const outcomes = await Promise.allSettled(Array.from({ length: 1_000 }, () => client.whoami()));
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    expect(sentTo(TOKEN_PATH)).toHaveLength(1);
    await client.whoami();
    expect(sentTo(TOKEN_PATH)).toHaveLength(2);
  });
});

/** A `fetch` whose answers to calls wait, once `holds`, until a test lets them go. */
function heldFetch() {
  const held: { readonly status: number; release(): void }[] = [];
  const state = { holds: false };
  const inner: { fetch: typeof fetch } = { fetch };
  const holding: typeof fetch = async (input, init) => {
    const response = await inner.fetch(input, init);
    if (!state.holds || new URL(String(input)).pathname === TOKEN_PATH) return response;
    await new Promise<void>((release) => held.push({ status: response.status, release }));
    return response;
  };
  return { held, state, inner, holding };
}

async function settled(): Promise<void> {
  for (let round = 0; round < 20; round++) await turn();
}

describe("10 parallel calls whose token was revoked in flight", () => {
  const inOrder = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

  it.each([
    ["in their order", inOrder],
    ["in the opposite order", inOrder.toReversed()],
    ["from both ends", [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]],
  ])("refresh it once when the 401s come %s, one by one (CLI-3)", async (_, order) => {
    const { held, state, inner, holding } = heldFetch();
    const { client, emulator, refreshes, sentTo } = await startWithToken({ emulator: { port: 0 }, fetch: holding });
    inner.fetch = fetch;
    state.holds = true;
    emulator.control.revokeTokens();
    const calls = inOrder.map(() => client.whoami());
    while (held.length < 10) await turn();
    expect(held.map(({ status }) => status)).toEqual(inOrder.map(() => 401));
    state.holds = false;
    for (const index of order) {
      held[index]?.release();
      // The refresh can end before the next 401 comes: that one is about the old token, and must not end the new one.
      await settled();
    }
    await Promise.all(calls);
    expect(refreshes()).toBe(1);
    expect(sentTo(WHOAMI_PATH)).toHaveLength(21);
  });

  it("send each message once (CLI-3, SND-22)", async () => {
    const { client, emulator, sentTo } = await startWithToken();
    emulator.control.revokeTokens();
    const references = inOrder.map((index) => `order-${index}`);
    await Promise.all(
      references.map((externalReference) => client.messages.send(sendOf(emulator, { externalReference }))),
    );
    expect(emulator.control.messages()).toHaveLength(10);
    const keys = sentTo("/api/core/messages/send").map(({ headers }) => headers.get("idempotency-key"));
    expect(keys).toHaveLength(20);
    expect(new Set(keys).size).toBe(10);
  });
});

describe("a parallel call is not made again", () => {
  it("after a 409 (CLI-6, SND-23)", async () => {
    const { client, emulator, requests } = await startWithToken();
    const idempotencyKey = "key-1";
    await client.messages.send(sendOf(emulator), { idempotencyKey });
    const before = requests.length;
    const calls = Array.from({ length: 10 }, () =>
      client.messages.send(sendOf(emulator, { text: "other" }), { idempotencyKey }),
    );
    const errors = await Promise.all(calls.map((call) => failureOf(call, ConflictError)));
    expect(errors.map(({ attempts }) => attempts)).toEqual(calls.map(() => 1));
    expect(requests.length - before).toBe(10);
  });

  it("when its client is unknown: one token request for all (CLI-4)", async () => {
    const { client, requests } = await startClient({ clientSecret: "wrong" });
    const calls = Array.from({ length: 10 }, () => client.whoami());
    const errors = await Promise.all(calls.map((call) => failureOf(call, OAuthError)));
    expect(new Set(errors.map(({ error }) => error))).toEqual(new Set(["invalid_client"]));
    expect(requests.map(({ path }) => path)).toEqual([TOKEN_PATH]);
  });

  it("after a second 401 (CLI-3, AUT-5)", async () => {
    const { client, emulator, sentTo, refreshes } = await startWithToken();
    emulator.control.faults.add({
      match: { route: `GET ${WHOAMI_PATH}` },
      action: { type: "status", status: 401, code: "UNAUTHORIZED" },
    });
    const calls = Array.from({ length: 10 }, () => client.whoami());
    const errors = await Promise.all(calls.map((call) => failureOf(call, UnauthorizedError)));
    expect(errors.map(({ attempts }) => attempts)).toEqual(calls.map(() => 2));
    expect(sentTo(WHOAMI_PATH)).toHaveLength(21);
    expect(refreshes()).toBe(1);
  });
});
