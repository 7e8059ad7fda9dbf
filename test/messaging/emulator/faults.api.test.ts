import { describe, expect, it } from "vitest";
import type { Emulator, FaultRule } from "../../../src/messaging/emulator/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { type RawAnswer, raw } from "./raw-socket.ts";
import { type Called, call, send, start, tokenOf } from "./support.ts";

type Action = Extract<FaultRule, { match: { route: string } }>["action"];

const SEND = "POST /api/core/messages/send";
const TOKEN = "POST /api/auth/token";

/** Calls a route. */
async function callRoute(emulator: Emulator, token: string, route: string): Promise<Called> {
  if (route === SEND) return send(emulator, token, {}, { "idempotency-key": "key-1" });
  const [method = "", path = ""] = route.split(" ");
  const { clientId: client_id, clientSecret: client_secret } = emulator;
  const credentials = { grant_type: "client_credentials", client_id, client_secret };
  return call(emulator, method, path, {
    token,
    ...(method === "GET" ? {} : { body: route === TOKEN ? credentials : {} }),
  });
}

/** An emulator whose next call of a route goes wrong, and a token for it. */
async function withFault(route: string, action: Action, options: Parameters<typeof start>[0] = {}) {
  const emulator = await start(options);
  const token = await tokenOf(emulator);
  emulator.control.faults.add({ match: { route }, action, times: 1 });
  return { emulator, token };
}

describe("a fault that answers with a status", () => {
  it("makes the token route a server_error in the OAuth shape (TOK-11, TOK-12)", async () => {
    const { emulator, token } = await withFault(TOKEN, { type: "status", status: 500 });
    const { status, body } = await callRoute(emulator, token, TOKEN);
    expect(status).toBe(500);
    expect(body).toEqual({ error: "server_error", error_description: expect.any(String) });
    expect((await callRoute(emulator, token, TOKEN)).status).toBe(200);
  });

  it("makes a search an UPSTREAM_ERROR with the provider's status (SEA-8)", async () => {
    const route = "POST /api/core/numbers/search";
    const { emulator, token } = await withFault(route, { type: "status", status: 502 });
    const { status, body } = await callRoute(emulator, token, route);
    expect([status, body.error.code]).toEqual([502, "UPSTREAM_ERROR"]);
    expect(Number.isInteger(body.error.details.providerStatus)).toBe(true);
  });

  it("makes the token route one of too many in the OAuth shape (GEN-11, TOK-12)", async () => {
    const { emulator, token } = await withFault(TOKEN, { type: "status", status: 429, retryAfterSeconds: 0 });
    const { status, body, headers } = await callRoute(emulator, token, TOKEN);
    expect([status, body.error, headers.get("retry-after")]).toEqual([429, "server_error", "0"]);
  });

  it.each([
    [{ status: 400 }, "INVALID_REQUEST", null],
    [{ status: 401 }, "UNAUTHORIZED", null],
    [{ status: 403 }, "FORBIDDEN", null],
    [{ status: 404 }, "NOT_FOUND", null],
    [{ status: 409 }, "CONFLICT", null],
    [{ status: 422 }, "INVALID_REQUEST", null],
    [{ status: 503 }, "SERVER_ERROR", null],
    [{ status: 429, retryAfterSeconds: 7 }, "RATE_LIMITED", "7"],
    [{ status: 418, code: "TEAPOT" }, "TEAPOT", null],
  ])("says with %j the code %s, and sends nothing (GEN-11, GEN-12, SND-29)", async (fields, code, retryAfter) => {
    const { emulator, token } = await withFault(SEND, { type: "status", ...fields });
    const { status, body, headers } = await send(emulator, token);
    expect([status, body.error.code, headers.get("retry-after")]).toEqual([fields.status, code, retryAfter]);
    expect(emulator.control.messages()).toEqual([]);
  });
});

describe("a fault that delays", () => {
  it.each([TOKEN, "GET /api/core/whoami", SEND])("holds %s back for its real time", async (route) => {
    const clock = createFakeClock();
    const { emulator, token } = await withFault(route, { type: "delay", ms: 30_000 }, { systemClock: clock });
    let answered = false;
    const calling = callRoute(emulator, token, route).finally(() => {
      answered = true;
    });
    await clock.advance(29_999);
    expect(answered).toBe(false);
    await clock.advance(1);
    expect((await calling).status).toBeLessThan(300);
  });
});

describe("a fault that resets the connection", () => {
  it.each(["before", "after"] as const)("breaks the token route's connection as well, %s it", async (when) => {
    const emulator = await start({ faults: [{ match: { route: TOKEN }, action: { type: "reset", when } }] });
    const { clientId: client_id, clientSecret: client_secret, url } = emulator;
    const body = new URLSearchParams({ grant_type: "client_credentials", client_id, client_secret });
    const response = await emulator.handle(new Request(`${url}/api/auth/token`, { method: "POST", body }));
    expect(response.type).toBe("error");
  });

  it("breaks the connection of HEAD as well, which a route plays as GET (GEN-7)", async () => {
    const action = { type: "reset", when: "before" } as const;
    const emulator = await start({ faults: [{ match: { route: "GET /api/core/whoami" }, action }] });
    const head = await emulator.handle(new Request(`${emulator.url}/api/core/whoami`, { method: "HEAD" }));
    expect(head.type).toBe("error");
  });
});

describe("a fault that cuts the answer short", () => {
  it.each([TOKEN, SEND])("promises all of the body of %s, and breaks off in it", async (route) => {
    const { emulator, token } = await withFault(route, { type: "truncate" });
    await expect(callRoute(emulator, token, route)).rejects.toThrow();
    expect((await callRoute(emulator, token, route)).status).toBeLessThan(300);
    expect(emulator.control.messages()).toHaveLength(route === SEND ? 1 : 0);
  });
});

describe("a fault that puts a proxy's page in the way", () => {
  it.each([TOKEN, SEND])("answers %s with a 502 that is no JSON", async (route) => {
    const [method = "", path = ""] = route.split(" ");
    const { emulator, token } = await withFault(route, { type: "badGateway" });
    const headers = { authorization: `Bearer ${token}` };
    const response = await emulator.handle(new Request(`${emulator.url}${path}`, { method, headers, body: "{}" }));
    expect([response.status, response.headers.get("content-type")]).toEqual([502, "text/html"]);
    expect(await response.text()).toMatch(/^<html>/);
    expect(emulator.control.messages()).toEqual([]);
  });
});

describe("a fault that revokes the token", () => {
  it("makes the call's own token unknown; a new one works (AUT-3, CLI-3)", async () => {
    const { emulator, token } = await withFault(SEND, { type: "revokeToken" });
    const other = await tokenOf(emulator);
    expect((await send(emulator, token)).body.error.code).toBe("UNAUTHORIZED");
    expect((await send(emulator, token)).status).toBe(401);
    expect((await send(emulator, other)).status).toBe(202);
    expect((await send(emulator, await tokenOf(emulator))).status).toBe(202);
  });

  it("changes nothing on the token route, which has none", async () => {
    const { emulator, token } = await withFault(TOKEN, { type: "revokeToken" });
    const { status, body } = await callRoute(emulator, "none", TOKEN);
    expect([status, typeof body.access_token]).toEqual([200, "string"]);
    expect((await send(emulator, token)).status).toBe(202);
  });
});

describe("over a real connection", () => {
  /** What comes over a connection of its own for a send. */
  function wire(emulator: Emulator, token: string): Promise<RawAnswer> {
    const sms = { to: ["+14155550123"], messageType: "SMS", externalReference: "order-1" };
    const body = JSON.stringify({ ...sms, sendFrom: emulator.fixtures.numbers.full });
    const lines = [
      ...["POST /api/core/messages/send HTTP/1.1", "host: localhost", "connection: close", "idempotency-key: key-1"],
      ...[`authorization: Bearer ${token}`, `content-length: ${body.length}`],
    ];
    return raw(emulator, `${lines.join("\r\n")}\r\n\r\n${body}`);
  }

  it.each(["before", "after"] as const)("a reset %s the commit: no byte, one send (SND-17, SND-22)", async (when) => {
    const { emulator, token } = await withFault(SEND, { type: "reset", when }, { port: 0 });
    expect(await wire(emulator, token)).toMatchObject({ status: 0, head: "" });
    expect(emulator.control.messages()).toHaveLength(when === "after" ? 1 : 0);
    expect((await wire(emulator, token)).status).toBe(202);
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it.each([1, 2])("a body is cut short at half of its promised length, once: call %i", async (call) => {
    const { emulator, token } = await withFault(SEND, { type: "truncate" }, { port: 0 });
    for (let before = 1; before < call; before++) await wire(emulator, token);
    const { status, head, text } = await wire(emulator, token);
    const promised = Number(/content-length: (\d+)/i.exec(head)?.[1]);
    expect([status, text.length]).toEqual([202, call === 1 ? Math.floor(promised / 2) : promised]);
  });
});
