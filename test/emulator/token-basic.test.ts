/** Credentials by HTTP Basic: as sent, form-encoded, and what is neither (TOK-3, TOK-17, TOK-18). */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../src/emulator/index.ts";
import { call, start, tokenOf } from "./support.ts";
import { basic, credentials, form, GRANT, refuses, TOKEN_PATH } from "./token-calls.ts";

describe("POST /api/auth/token with HTTP Basic", () => {
  const grant = (emulator: Emulator, headers: Record<string, string>, fields = {}) =>
    form(emulator, { ...GRANT, ...fields }, headers);

  it("takes credentials as sent (TOK-3, TOK-18)", async () => {
    const emulator = await start();
    const header = basic(`${emulator.clientId}:${emulator.clientSecret}`);
    expect((await grant(emulator, header)).status).toBe(200);
    expect((await call(emulator, "POST", TOKEN_PATH, { body: GRANT, headers: header })).status).toBe(200);
  });

  it("splits at the first colon: the rest is the secret's (TOK-18)", async () => {
    const emulator = await start({ clientId: "id", clientSecret: "se:cr:et" });
    expect((await grant(emulator, basic("id:se:cr:et"))).status).toBe(200);
  });

  it("takes form-encoded credentials, both halves (TOK-18)", async () => {
    const emulator = await start({ clientId: "cli_a:b c", clientSecret: "s%+é:t" });
    expect((await grant(emulator, basic("cli%5Fa%3Ab+c:s%25%2B%C3%A9%3At"))).status).toBe(200);
  });

  it("compares as sent first: an encoded look is a name too (TOK-18)", async () => {
    const emulator = await start({ clientId: "a%5Fb", clientSecret: "100%+" });
    expect((await grant(emulator, basic("a%5Fb:100%+"))).status).toBe(200);
    refuses(await grant(emulator, basic("a_b:100%+")), 401, "invalid_client");
  });

  it.each([
    ["no base64", { authorization: "Basic !!!" }],
    ["an empty value", { authorization: "Basic " }],
    ["the scheme alone", { authorization: "Basic" }],
    ["two headers in one", { authorization: "Basic aWQ6c2VjcmV0, Basic aWQ6c2VjcmV0" }],
    ["no colon", basic("client_main")],
    ["no UTF-8", basic(Uint8Array.of(0x69, 0x3a, 0xff, 0xfe))],
  ])("refuses %s as an invalid client (TOK-18)", async (_name, header) => {
    const emulator = await start();
    refuses(await grant(emulator, header), 401, "invalid_client");
    refuses(await grant(emulator, header, credentials(emulator)), 401, "invalid_client");
  });

  it.each(["basic", "BASIC", "bAsIc"])("takes the scheme as %s (TOK-3)", async (scheme) => {
    const emulator = await start();
    const { authorization } = basic(`${emulator.clientId}:${emulator.clientSecret}`);
    expect((await grant(emulator, { authorization: authorization.replace("Basic", scheme) })).status).toBe(200);
  });

  it.each(["id:", ":secret", ":"])("refuses the half pair %s as missing credentials (TOK-6)", async (text) => {
    const emulator = await start();
    refuses(await grant(emulator, basic(text)), 400, "invalid_request");
  });

  it("takes the same credentials in the body as well, whole or one half (TOK-17)", async () => {
    const emulator = await start({ clientId: "a_b", clientSecret: "c+d" });
    const both = credentials(emulator);
    for (const header of [basic("a_b:c+d"), basic("a%5Fb:c%2Bd")]) {
      expect((await grant(emulator, header, both)).status).toBe(200);
      expect((await grant(emulator, header, { client_id: "a_b" })).status).toBe(200);
    }
  });

  it("refuses other credentials in the body, even right ones (TOK-17)", async () => {
    const emulator = await start();
    const { main, other } = emulator.fixtures.clients;
    const header = basic(`${main.clientId}:${main.clientSecret}`);
    refuses(await grant(emulator, header, credentials(other)), 400, "invalid_request");
    refuses(await grant(emulator, header, { client_id: other.clientId }), 400, "invalid_request");
    refuses(await grant(emulator, header, { client_secret: "x" }), 400, "invalid_request");
  });

  it("looks at no other scheme: a bearer token is no credential here (TOK-1)", async () => {
    const emulator = await start();
    const header = { authorization: `Bearer ${await tokenOf(emulator)}` };
    refuses(await grant(emulator, header), 400, "invalid_request");
    expect((await grant(emulator, header, credentials(emulator))).status).toBe(200);
  });
});
