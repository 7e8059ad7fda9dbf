/** The token: asked for once whatever the parallelism, used until shortly before its end, renewed once it is refused. */
import { describe, expect, it } from "vitest";
import { OAuthError, UnauthorizedError } from "../../../src/messaging/client/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { SMS } from "./operations.ts";
import {
  failureOf,
  fault,
  SEND_PATH,
  type StartOptions,
  type Step,
  startClient,
  startServer,
  startTokens,
  TOKEN_PATH,
  tokenBody,
  until,
  WHOAMI_PATH,
} from "./support.ts";

const MINUTE = 60_000;
const PARALLEL = 1_000;

const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

describe("the token request", () => {
  it("names the client in its form body by default (CLI-1)", async () => {
    const { client, emulator, requests } = await startClient();
    await client.whoami();
    const [asked] = requests;
    expect(asked?.headers.get("content-type")).toBe("application/x-www-form-urlencoded");
    expect(asked?.headers.get("authorization")).toBeNull();
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      grant_type: "client_credentials",
      client_id: emulator.clientId,
      client_secret: emulator.clientSecret,
    });
  });

  it("names the client by HTTP Basic, form-encoded, so that a colon in the id does not end it (CLI-1, TOK-18)", async () => {
    const credentials = { clientId: "client:main é", clientSecret: "a secret:with+all%of&it=ß" };
    const { client, requests } = await startClient({ authMethod: "basic", emulator: credentials });
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
    expect(requests[0]?.headers.get("authorization")).toMatch(/^Basic [\w+/]+=*$/);
    expect(requests[0]?.body).toBe("grant_type=client_credentials");
  });

  it("takes any credentials in the form body", async () => {
    const { client } = await startClient({ emulator: { clientId: "a&b=c", clientSecret: "+%ß &secret" } });
    expect((await client.whoami()).apiClientStatus).toBe("ACTIVE");
  });
});

describe("the token", () => {
  it("is asked for once for 1,000 parallel calls that have none, and once when it has expired (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, emulator, sentTo, tokenRequests } = await startClient({ clock });
    await Promise.all(many(PARALLEL, () => client.whoami()));
    expect(tokenRequests()).toBe(1);
    await clock.advance(60 * MINUTE);
    await emulator.clock.advance(60 * MINUTE);
    await Promise.all(many(PARALLEL, () => client.whoami()));
    expect(tokenRequests()).toBe(2);
    expect(sentTo(WHOAMI_PATH).length).toBe(2 * PARALLEL);
  });

  it("is renewed from five minutes before its end, and no call waits for that (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, sentTo, tokenRequests } = await startClient({ clock });
    await client.whoami();
    await clock.advance(55 * MINUTE - 1);
    await client.whoami();
    expect(tokenRequests()).toBe(1);
    await clock.advance(1);
    await client.whoami();
    await clock.advance(0);
    await client.whoami();
    const used = sentTo(WHOAMI_PATH).map(({ headers }) => headers.get("authorization"));
    expect(tokenRequests()).toBe(2);
    expect(used[2]).toBe(used[0]);
    expect(used[3]).not.toBe(used[0]);
  });

  it("ages from before it was asked for, not from when the answer came (CLI-2)", async () => {
    const clock = createFakeClock();
    const slow: Step = async (_, response) => {
      await clock.advance(20_000);
      response.end(JSON.stringify(tokenBody("slow", 60)));
    };
    const { client, tokenRequests } = await startTokens(slow, { clock });
    await client.whoami();
    await clock.advance(36_999);
    await client.whoami();
    expect(tokenRequests()).toBe(2);
    await clock.advance(60_000);
    await client.whoami();
  });

  it("does not age by the wall clock, which may jump (CLI-2)", async () => {
    const clock = createFakeClock();
    const { client, tokenRequests } = await startClient({ clock });
    await client.whoami();
    clock.set(clock.now() + 24 * 60 * MINUTE);
    await client.whoami();
    expect(tokenRequests()).toBe(1);
  });

  it.each<[expiresIn: unknown, endsAfterSeconds: number]>([
    [100, 95],
    ["100", 95],
    ...["100.5", "1e2", " 100", "", "soon", -1, true, [], null, {}, undefined].map((x): [unknown, number] => [
      x,
      3_595,
    ]),
  ])(
    "with expires_in %j counts as live for %i s, a little less than it says (CLI-2, TOK-13)",
    async (expires_in, seconds) => {
      const clock = createFakeClock();
      const { client, tokenRequests } = await startTokens({ body: { ...tokenBody("t"), expires_in } }, { clock });
      await client.whoami();
      await clock.advance(seconds * 900 - 1);
      await client.whoami();
      expect(tokenRequests()).toBe(1);
      await clock.advance(seconds * 100 + 1);
      await client.whoami();
      expect(tokenRequests()).toBe(2);
    },
  );

  it("serves the calls that wait for it even when it ends at once", async () => {
    const { client, tokenRequests } = await startTokens({ body: tokenBody("t", 0) });
    await Promise.all(many(5, () => client.whoami()));
    expect(tokenRequests()).toBe(1);
  });

  it("is sent as it is, whatever it looks like, and never read (CLI-2)", async () => {
    const { client, requests } = await startTokens({ body: tokenBody("~not.a.jwt~!") });
    await client.whoami();
    expect(requests.at(-1)?.headers.get("authorization")).toBe("Bearer ~not.a.jwt~!");
  });
});

describe("a 401", () => {
  it.each([
    ...["UNAUTHORIZED", "TOKEN_ENDED", null].map((code): [string, Step] => {
      return [`the code ${code}`, { status: 401, body: { error: { code } } }];
    }),
    ["a page of a proxy", { status: 401, body: "<html>" }],
  ] as [string, Step][])(
    "with %s gets one new token and one retry, beyond maxRetries (CLI-3, GEN-11)",
    async (_, refusal) => {
      const { client, tokenRequests } = await startServer([refusal, 200], { maxRetries: 0 });
      expect((await client.whoami().withResponse()).attempts).toBe(2);
      expect(tokenRequests()).toBe(2);
    },
  );

  it("with the code of another refusal gets no new token: the code is authoritative (CLI-3, GEN-12)", async () => {
    const { client, tokenRequests } = await startServer({ status: 401, body: { error: { code: "FORBIDDEN" } } });
    await client.whoami().catch(() => {});
    expect(tokenRequests()).toBe(1);
  });

  it("that comes twice throws, without a loop; the new token is not used by the next call (CLI-3)", async () => {
    const { client, sentTo, tokenRequests } = await startServer([401, 401, 200]);
    expect(await failureOf(client.whoami(), UnauthorizedError)).toMatchObject({ status: 401, attempts: 2 });
    expect(tokenRequests()).toBe(2);
    expect((await client.whoami().withResponse()).attempts).toBe(1);
    expect(new Set(sentTo(WHOAMI_PATH).map(({ headers }) => headers.get("authorization"))).size).toBe(3);
  });

  it("of a client that has become inactive ends with the token route's word (AUT-5, CLI-4)", async () => {
    const { client, emulator, tokenRequests } = await startClient();
    await client.whoami();
    emulator.control.updateClient("ac_main", { status: "INACTIVE" });
    const error = await failureOf(client.whoami(), OAuthError);
    expect(error).toMatchObject({ error: "invalid_client", operation: "whoami", attempts: 1 });
    expect(tokenRequests()).toBe(2);
  });

  it("after a retried failure still gets its new token, and a failure after it its retries (CLI-3, CLI-5)", async () => {
    const { client, tokenRequests } = await startServer([500, 401, 500, 200]);
    expect((await client.whoami().withResponse()).attempts).toBe(4);
    expect(tokenRequests()).toBe(2);
  });

  it("in the middle of a send repeats it with the same key and bytes (CLI-3, SND-22)", async () => {
    const revoked = fault(`POST ${SEND_PATH}`, { type: "revokeToken" }, 1);
    const { client, emulator, sentTo } = await startClient({ emulator: { faults: [revoked] } });
    const { idempotencyKey } = await client.messages.send(SMS);
    const sends = sentTo(SEND_PATH);
    expect(new Set(sends.map(({ body }) => body)).size).toBe(1);
    const keys = sends.map(({ headers }) => headers.get("idempotency-key"));
    expect(keys).toEqual([idempotencyKey, idempotencyKey]);
    expect(emulator.control.messages().length).toBe(1);
  });
});

/** A client with a token in hand, so that the only token requests to come are refreshes. */
async function startWithToken(options: StartOptions = {}) {
  const started = await startClient(options);
  await started.client.whoami();
  return { ...started, refreshes: () => started.tokenRequests() - 1 };
}

describe("parallel calls", () => {
  it("make one token request when the service says that it has expired, and send each message once (CLI-3, SND-22)", async () => {
    const { client, emulator, requests, sentTo, refreshes } = await startWithToken();
    await emulator.clock.advance(60 * MINUTE);
    const before = requests.length;
    const calls = many(PARALLEL, (index) => {
      if (index % 2 === 0) return client.whoami().withResponse();
      return client.messages.send({ ...SMS, externalReference: `order-${index}` }).withResponse();
    });
    const attempts = (await Promise.all(calls)).map((answer) => answer.attempts);
    expect(new Set(attempts)).toEqual(new Set([2]));
    expect(refreshes()).toBe(1);
    expect(requests.length - before).toBe(2_001);
    expect(emulator.control.messages({ limit: 10_000 })).toHaveLength(500);
    expect(new Set(sentTo(SEND_PATH).map(({ headers }) => headers.get("idempotency-key"))).size).toBe(500);
  });

  it("make one token request that fails for each with its own key, and the next call another one (CLI-4)", async () => {
    const refused = fault(`POST ${TOKEN_PATH}`, { type: "status", status: 401, code: "invalid_client" }, 1);
    const { client, tokenRequests } = await startClient({ emulator: { faults: [refused] } });
    const keys = many(PARALLEL, (index) => `key-${index}`);
    const calls = keys.map((idempotencyKey) => failureOf(client.messages.send(SMS, { idempotencyKey }), OAuthError));
    expect((await Promise.all(calls)).map(({ idempotencyKey }) => idempotencyKey)).toEqual(keys);
    expect(tokenRequests()).toBe(1);
    await client.whoami();
    expect(tokenRequests()).toBe(2);
  });

  it("are not made again after a second 401 (CLI-3, AUT-5)", async () => {
    const refused = fault(`GET ${WHOAMI_PATH}`, { type: "status", status: 401, code: "UNAUTHORIZED" });
    const { client, emulator, sentTo, refreshes } = await startWithToken();
    emulator.control.faults.add(refused);
    const errors = await Promise.all(many(10, () => failureOf(client.whoami(), UnauthorizedError)));
    expect(errors.map(({ attempts }) => attempts)).toEqual(errors.map(() => 2));
    expect(sentTo(WHOAMI_PATH)).toHaveLength(21);
    expect(refreshes()).toBe(1);
  });

  const inOrder = many(10, (index) => index);
  it.each([
    ["in their order", inOrder],
    ["in the opposite order", inOrder.toReversed()],
    ["from both ends", [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]],
  ])(
    "refresh a token once when ten 401s come %s, one by one, also where the new one reads the same (CLI-3)",
    async (_, order) => {
      const held: (() => void)[] = [];
      const refuse: Step = (_request, response) => held.push(() => response.writeHead(401).end("{}"));
      const steps = [...many(10, () => refuse), 200];
      const { client, tokenRequests } = await startServer(steps, {}, { body: tokenBody("always-the-same") });
      const calls = inOrder.map(() => client.whoami());
      await until(() => held.length === 10);
      for (const index of order) {
        held[index]?.();
        // The refresh ends before the next 401 comes: that one is about the old token, and must not end the new one.
        await calls[index];
      }
      expect(tokenRequests()).toBe(2);
    },
  );
});
