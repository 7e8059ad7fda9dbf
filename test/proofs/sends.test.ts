/** A few hundred sends through the fault proxy, and clients with a fault of their own, which the judge must see. Long form: `npm run prove -- sends`. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../src/messaging/client/index.ts";
import { judge } from "./sends-judge.ts";
import { clientSender, type Evidence, runSends, type Sender, type Sent, type Target } from "./sends-run.ts";

/** Few lanes and time enough, so that on a busy machine only the silent requests end in a time-out. */
const LANES = 12;
const TIMEOUT_MS = 1_000;
/** One thread has both ends: where a request takes long, all do. */
const LIMIT_MS = 120_000;

describe("client.messages.send() over connections that break", () => {
  it("sends exactly one message per recipient and key, with the same bytes each time (CLI-5, SND-17, SND-22)", {
    tags: "full",
    timeout: LIMIT_MS,
  }, async () => {
    const evidence = await runSends({
      lanes: LANES,
      count: 300,
      seed: "short",
      createSender: clientSender(TIMEOUT_MS),
    });
    expect(judge(evidence)).toEqual([]);
    const failed = evidence.sends.filter(({ first }) => !first.ok);
    expect(failed.length).toBeGreaterThan(5);
    expect(evidence.calls.length).toBeGreaterThan(200);
  });
});

/** A client that a user might write: three attempts, each with the key that `keyFor` says. */
function scripted(keyFor: (given: string) => string): (target: Target) => Sender {
  return ({ baseUrl, clientId, clientSecret }) => {
    let token: string | null = null;
    const post = (path: string, body: string | URLSearchParams, headers: Record<string, string> = {}) =>
      fetch(`${baseUrl}${path}`, { method: "POST", headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const issued = async () => {
      const form = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
      const answer = await post("/api/auth/token", new URLSearchParams(form));
      return ((await answer.json()) as { access_token: string }).access_token;
    };
    const attempt = async (body: string, key: string) => {
      token ??= await issued();
      const headers = { authorization: `Bearer ${token}`, "idempotency-key": key };
      const sent = await post("/api/core/messages/send", body, headers);
      if (sent.status === 401) token = null;
      if (sent.status !== 202) throw new Error(`${sent.status}`);
      return { idempotencyKey: key, ...((await sent.json()) as { results: [] }) };
    };
    return async (request, { idempotencyKey = randomUUID() }) => {
      for (let attempts = 1; ; attempts++) {
        const key = keyFor(idempotencyKey);
        try {
          return await attempt(JSON.stringify(request), key);
        } catch (cause) {
          const facts = { operation: "messages.send", attempts, idempotencyKey: key };
          if (attempts === 3) throw new ConnectionError("failed", facts, { cause });
        }
      }
    };
  };
}

describe("judge()", () => {
  it(
    "has nothing against a client that keeps its key",
    async () => {
      expect(
        judge(await runSends({ lanes: LANES, count: 30, seed: "one key", createSender: scripted((key) => key) })),
      ).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    "sees the doubles of a client that makes a new key for each attempt (SND-22)",
    async () => {
      const problems = judge(
        await runSends({ lanes: LANES, count: 30, seed: "new keys", createSender: scripted(() => randomUUID()) }),
      );
      expect(problems).toContainEqual(expect.stringMatching(/^double: .* has \d messages$/));
      expect(problems).toContainEqual(expect.stringMatching(/^keys: order-\d+ was sent with \d keys$/));
    },
    LIMIT_MS,
  );

  const request = { sendFrom: "num_1", to: ["+1"], messageType: "SMS", externalReference: "order-1" } as const;
  const success = { ok: true, idempotencyKey: "key-1", messageIds: ["msg_1"] } as const;
  const failure = (idempotencyKey: string | null, attempts = 3) => {
    return { ok: false, error: new ConnectionError("", { operation: "", attempts, idempotencyKey }) } as const;
  };
  const one = new Map([["order-1 to +1", ["msg_1"]]]);
  const none = new Map<string, string[]>();
  const callOf = (key: string | null, text = "") => ({
    method: "POST",
    path: "/api/core/messages/send",
    idempotencyKey: key,
    contentType: "application/json",
    body: JSON.stringify({ ...request, text }),
    fault: null,
  });
  const evidenceOf = (fields: Partial<Evidence>, sent: Partial<Sent> = {}): Evidence => ({
    sends: [{ request, first: success, last: success, ...sent }],
    ledgers: { first: one, last: one },
    calls: [callOf("key-1"), callOf("key-1")],
    ...fields,
  });

  it.each<[problem: string, evidence: Evidence]>([
    ["lost: order-1 to +1 ended in success and has no message", evidenceOf({ ledgers: { first: none, last: one } })],
    [
      "other: order-1 to +1 was told of another message",
      evidenceOf({}, { first: { ...success, messageIds: ["msg_2"] } }),
    ],
    [
      "untyped: order-1 ended in Error: no",
      evidenceOf({}, { first: { ok: false, error: Object.assign(new Error("no"), { idempotencyKey: "key-1" }) } }),
    ],
    ["storm: order-1 took 5 attempts", evidenceOf({}, { first: failure("key-1", 5) })],
    ["keyless: order-1 ended in an error without its key", evidenceOf({}, { first: failure(null) })],
    ["rekeyed: order-1 was sent again with another key", evidenceOf({}, { first: failure("key-2") })],
    ["lost: order-1 to +1 has 0 messages in the end", evidenceOf({ ledgers: { first: one, last: none } })],
    [
      "double: order-1 to +1 has 2 messages in the end",
      evidenceOf({ ledgers: { first: one, last: new Map([["order-1 to +1", ["msg_1", "msg_2"]]]) } }),
    ],
    [
      "phantom: order-2 to +1 was never sent",
      evidenceOf({ ledgers: { first: one, last: new Map([...one, ["order-2 to +1", ["msg_2"]]]) } }),
    ],
    ["bytes: key key-1 was sent with 2 bodies", evidenceOf({ calls: [callOf("key-1"), callOf("key-1", "hi")] })],
    ["keyless: a send had no key", evidenceOf({ calls: [callOf(null)] })],
  ])("says: %s", (problem, evidence) => {
    expect(judge(evidence)).toEqual([problem]);
  });

  it("says what was never sent", () => {
    const [problem] = judge(evidenceOf({}, { first: failure("key-1"), last: failure("key-1") }));
    expect(problem).toMatch(/^unsent: order-1 /);
  });
});
