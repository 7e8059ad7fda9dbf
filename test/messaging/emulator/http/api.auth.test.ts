/** The bearer token on core routes (AUT). */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { type Called, call, ready, send, start, tokenOf } from "../support.ts";

const WHOAMI = "/api/core/whoami";
const HOUR_MS = 3_600_000;

const whoami = (emulator: Emulator, authorization: string): Promise<Called> =>
  call(emulator, "GET", WHOAMI, { headers: { authorization } });

function unauthorized({ status, body, headers }: Called): void {
  expect(body).toMatchObject({ error: { code: "UNAUTHORIZED", details: {} }, requestId: expect.any(String) });
  expect(status).toBe(401);
  expect(headers.get("www-authenticate")).toBeNull();
}

describe("the bearer token", () => {
  it("is required (AUT-1, WHO-9)", async () => {
    const emulator = await start();
    unauthorized(await call(emulator, "GET", WHOAMI));
  });

  it.each([
    ["an empty header", () => ""],
    ["the scheme alone", () => "Bearer"],
    ["the scheme and a space", () => "Bearer "],
    ["the token alone", (token: string) => token],
    ["two tokens", (token: string) => `Bearer ${token} ${token}`],
    ["two headers in one", (token: string) => `Bearer ${token}, Bearer ${token}`],
    ["a comma at the end", (token: string) => `Bearer ${token},`],
    ["quotes", (token: string) => `Bearer "${token}"`],
    ["no space", (token: string) => `Bearer${token}`],
    ["a colon", (token: string) => `Bearer: ${token}`],
    ["another scheme", (token: string) => `Token ${token}`],
  ])("is not taken from %s (AUT-2)", async (_name, header) => {
    const emulator = await start();
    unauthorized(await whoami(emulator, header(await tokenOf(emulator))));
  });

  it("is not taken when it is unknown, or nearly known (AUT-3)", async () => {
    const { emulator, token } = await ready();
    for (const other of ["0".repeat(64), token.slice(0, -1), `${token}0`, token.toUpperCase(), "__proto__"]) {
      unauthorized(await whoami(emulator, `Bearer ${other}`));
    }
  });

  it("is not taken from the query or the body (AUT-1)", async () => {
    const { emulator, token } = await ready();
    unauthorized(await call(emulator, "GET", `${WHOAMI}?access_token=${token}`));
    unauthorized(await call(emulator, "POST", "/api/core/numbers/search", { body: { access_token: token } }));
  });

  it("lives for 3600 s of the emulator's time, and not at that very moment (TOK-13, AUT-4, AUT-11)", async () => {
    const { emulator, token } = await ready();
    await emulator.clock.advance(HOUR_MS - 1);
    expect((await whoami(emulator, `Bearer ${token}`)).status).toBe(200);
    await emulator.clock.advance(1);
    unauthorized(await whoami(emulator, `Bearer ${token}`));
    expect(emulator.control.exportState().tables.tokens).toEqual({});
  });

  it("is worth nothing while its client is inactive (AUT-5)", async () => {
    const { emulator, token } = await ready();
    emulator.control.updateClient("ac_main", { status: "INACTIVE" });
    unauthorized(await whoami(emulator, `Bearer ${token}`));
    emulator.control.updateClient("ac_main", { status: "ACTIVE" });
    expect((await whoami(emulator, `Bearer ${token}`)).status).toBe(200);
  });

  it("is worth nothing while the parent account is inactive (AUT-6)", async () => {
    const { emulator, token } = await ready();
    const others = await tokenOf(emulator, emulator.fixtures.clients.other);
    emulator.control.updateClient("ac_main", { accountStatus: "INACTIVE" });
    unauthorized(await whoami(emulator, `Bearer ${token}`));
    expect((await whoami(emulator, `Bearer ${others}`)).status).toBe(200);
  });

  it("is not replaced by client credentials (AUT-7)", async () => {
    const emulator = await start();
    const pair = Buffer.from(`${emulator.clientId}:${emulator.clientSecret}`).toString("base64");
    unauthorized(await whoami(emulator, `Basic ${pair}`));
    unauthorized(await whoami(emulator, `Bearer ${emulator.clientSecret}`));
  });

  it.each(["bearer", "BEARER", "bEaReR"])("is taken with the scheme written %s (AUT-9)", async (scheme) => {
    const emulator = await start();
    expect((await whoami(emulator, `${scheme} ${await tokenOf(emulator)}`)).status).toBe(200);
  });

  it("is asked for before anything else is looked at (AUT-8)", async () => {
    const emulator = await start();
    const { foreign } = emulator.fixtures.numbers;
    unauthorized(await call(emulator, "PATCH", "/api/core/webhooks/inbound", { body: "{" }));
    unauthorized(await call(emulator, "PATCH", "/api/core/numbers/none", { body: {} }));
    unauthorized(await call(emulator, "PATCH", `/api/core/numbers/${foreign}`, { body: {} }));
    unauthorized(await call(emulator, "POST", "/api/core/messages/send", { body: "x".repeat(1_048_577) }));
    const key = { "idempotency-key": "one" };
    await send(emulator, await tokenOf(emulator), {}, key);
    unauthorized(await send(emulator, "none", { text: "other" }, key));
    unauthorized(await send(emulator, "none", {}, {}));
  });

  it("gives way to the body only after the capability (AUT-8, AUT-10)", async () => {
    const emulator = await start({ unspecified: { "capabilities.enforce": true } });
    emulator.control.updateClient("ac_main", { capabilities: [] });
    const called = await call(emulator, "POST", "/api/core/numbers/search", {
      token: await tokenOf(emulator),
      body: "{",
    });
    expect([called.status, called.body.error.code]).toEqual([403, "FORBIDDEN"]);
  });
});

describe("capabilities", () => {
  const ROUTES = [
    ["numbers:read", "GET", "/api/core/numbers"],
    ["numbers:search", "POST", "/api/core/numbers/search"],
    ["numbers:update", "PATCH", "/api/core/numbers/num_000001"],
  ] as const;

  it.each(ROUTES)("matter only when enforced: %s for %s %s (AUT-10)", async (capability, method, path) => {
    const others = ROUTES.map(([name]) => name).filter((name) => name !== capability);
    for (const enforced of [false, true]) {
      const emulator = await start({ unspecified: { "capabilities.enforce": enforced } });
      const asked = { token: await tokenOf(emulator), body: method === "GET" ? undefined : {} };
      expect((await call(emulator, method, path, asked)).status).toBe(200);
      emulator.control.updateClient("ac_main", { capabilities: others });
      const { status, body } = await call(emulator, method, path, asked);
      expect([status, body.error?.code]).toEqual(enforced ? [403, "FORBIDDEN"] : [200, undefined]);
    }
  });

  it("never gate sends: no send capability is known (WHO-2)", async () => {
    const emulator = await start({ unspecified: { "capabilities.enforce": true } });
    emulator.control.updateClient("ac_main", { capabilities: [] });
    const token = await tokenOf(emulator);
    expect((await send(emulator, token)).status).toBe(202);
    expect((await call(emulator, "GET", WHOAMI, { token })).status).toBe(200);
  });
});
