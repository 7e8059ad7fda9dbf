/** The proxy that breaks calls: each fault, as a bare `fetch` meets it, and whether the service did what was asked. */
import { describe, expect, it, onTestFinished } from "vitest";
import { listen } from "../emulator/raw-socket.ts";
import { FAULTS, type Fault, seededFaults, startFaultProxy } from "./fault-proxy.ts";

const REQUEST = { to: ["+14155550123"], messageType: "SMS", text: "hello", externalReference: "order-1" };

/** One send with a fault; what came of it at both ends. */
async function sendThrough(fault: Fault | null) {
  const emulator = await listen({ lifecycle: "manual" });
  const leaving = new AbortController();
  const proxy = await startFaultProxy({
    upstream: emulator.url,
    choose({ path }) {
      if (!path.endsWith("/send")) return null;
      // These wait until the client gives up.
      if (fault === "late" || fault?.startsWith("silent")) setImmediate(() => leaving.abort());
      return fault;
    },
    revoke: () => void emulator.control.revokeTokens(),
    abort: () => leaving.abort(new Error("aborted")),
  });
  onTestFinished(() => proxy.close());
  const { clientId, clientSecret, fixtures } = emulator;
  const form = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
  const issued = await fetch(`${proxy.url}/api/auth/token`, { method: "POST", body: new URLSearchParams(form) });
  const { access_token } = (await issued.json()) as { access_token: string };
  const given = `Bearer ${access_token}`;
  const headers = { authorization: given, "content-type": "application/json", "idempotency-key": "key-1" };
  const body = JSON.stringify({ ...REQUEST, sendFrom: fixtures.numbers.full });
  const sent = { method: "POST", headers, body, signal: leaving.signal };
  const client = await fetch(`${proxy.url}/api/core/messages/send`, sent)
    .then(async (response) => `${response.status} ${response.headers.get("content-type")} ${await response.text()}`)
    .catch((error: Error) => `${error.message}: ${(error.cause as { code?: string } | undefined)?.code}`);
  await proxy.idle();
  return { client, messages: emulator.control.messages().length, calls: proxy.calls };
}

const EXPECTED: Readonly<Record<Fault, readonly [client: RegExp, messages: number]>> = {
  "cut before": [/^fetch failed: UND_ERR_SOCKET/, 0],
  "cut after": [/^fetch failed: UND_ERR_SOCKET/, 1],
  "cut in the body": [/^terminated: UND_ERR_SOCKET/, 1],
  "reset before": [/^fetch failed: ECONNRESET/, 0],
  "reset after": [/^fetch failed: ECONNRESET/, 1],
  // Whether the client still reads what came before the reset is the kernel's choice.
  "reset in the body": [/^(terminated|fetch failed): (ECONNRESET|UND_ERR_SOCKET)/, 1],
  "silent before": [/aborted/, 0],
  "silent after": [/aborted/, 1],
  late: [/aborted/, 1],
  "page before": [/^502 text\/html/, 0],
  "page after": [/^502 text\/html/, 1],
  "error after": [/^500 application\/json .*SERVER_ERROR/, 1],
  "revoked before": [/^401 application\/json .*UNAUTHORIZED/, 0],
  "revoked after": [/^401 application\/json .*UNAUTHORIZED/, 1],
  "aborted before": [/^aborted/, 0],
  "aborted after": [/^aborted/, 1],
};

describe("startFaultProxy()", () => {
  it.each(FAULTS)("breaks a call: %s", async (fault) => {
    const [seen, messages] = EXPECTED[fault];
    const outcome = await sendThrough(fault);
    expect(outcome.client).toMatch(seen);
    expect(outcome.messages).toBe(messages);
  });

  it("lets everything else through as it is, and keeps what came", async () => {
    const { client, messages, calls } = await sendThrough(null);
    expect(client).toMatch(/^202 application\/json .*"QUEUED"/);
    expect(messages).toBe(1);
    expect(calls).toMatchObject([
      { method: "POST", path: "/api/auth/token", idempotencyKey: null, fault: null },
      { path: "/api/core/messages/send", idempotencyKey: "key-1", contentType: "application/json" },
    ]);
    expect(JSON.parse(calls[1]?.body ?? "")).toMatchObject(REQUEST);
  });
});

describe("seededFaults()", () => {
  const request = (body: string, path = "/api/core/messages/send") => {
    return { method: "POST", path, idempotencyKey: "key-1", contentType: null, body };
  };
  const bodies = Array.from({ length: 2_000 }, (_, index) => `body ${index}`);

  it("chooses by content and time, whatever the order of arrival", () => {
    const [one, other] = [seededFaults("seed", 0.3), seededFaults("seed", 0.3)];
    const forwards = bodies.map((body) => one(request(body)));
    const backwards = bodies.toReversed().map((body) => other(request(body)));
    expect(backwards.reverse()).toEqual(forwards);
    expect(forwards.filter((fault) => fault !== null).length).toBeGreaterThan(500);
    expect(forwards.filter((fault) => fault !== null).length).toBeLessThan(700);
    expect(new Set(forwards)).toEqual(new Set([null, ...FAULTS]));
  });

  it("lets a call through that comes often enough", () => {
    const choose = seededFaults("seed", 0.5);
    expect(Array.from({ length: 50 }, () => choose(request("same")))).toContain(null);
  });

  it("neither aborts nor refuses token requests", () => {
    const choose = seededFaults("seed", 1);
    const chosen = new Set(bodies.map((body) => choose(request(body, "/api/auth/token"))));
    expect([...chosen].filter((fault) => /^(aborted|revoked)/.test(fault ?? ""))).toEqual([]);
    expect(chosen).toContain("page after");
  });
});
