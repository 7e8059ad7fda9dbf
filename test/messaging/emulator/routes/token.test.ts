/** The token route: what it takes, what it refuses, and in which order (TOK). */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { call, start, tokenOf } from "../support.ts";
import { basic, credentials, FORM, form, GRANT, refuses, TOKEN_PATH } from "../token-calls.ts";

const FORM_TYPE = FORM["content-type"];
const JSON_TYPE = "application/json";
const SECRET = "the-secret";
const PAIR = { client_id: "client_main", client_secret: SECRET };
const RIGHT = { ...GRANT, ...PAIR };

const encoded = (fields: object) => new URLSearchParams(fields as Record<string, string>).toString();
const post = (emulator: Emulator, body: string, type: string) =>
  call(emulator, "POST", TOKEN_PATH, { body, headers: { "content-type": type } });

describe("POST /api/auth/token", () => {
  it("answers with exactly three fields, without a bearer token, and not for caches (TOK-1, TOK-5, TOK-21)", async () => {
    const emulator = await start();
    const { status, body, headers } = await form(emulator, { ...GRANT, ...credentials(emulator) });
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    const access_token = expect.stringMatching(/^[\da-f]{64}$/);
    expect(body).toEqual({ access_token, token_type: "bearer", expires_in: 3600 });
  });

  it.each([
    [false, null],
    [true, 'Basic realm="token", charset="UTF-8"'],
  ])("says how to authenticate by a reading alone (%s), on a 401 only (TOK-21)", async (reading, expected) => {
    const emulator = await start({ unspecified: { "token.wwwAuthenticate": reading } });
    const { headers } = await form(emulator, { ...GRANT, client_id: "x", client_secret: "y" });
    expect([headers.get("www-authenticate"), headers.get("cache-control")]).toEqual([expected, "no-store"]);
    expect((await form(emulator, GRANT)).headers.get("www-authenticate")).toBeNull();
  });

  it.each([
    ...[FORM_TYPE, `${FORM_TYPE};charset=UTF-8`, "Application/X-WWW-Form-URLEncoded ; Charset=utf-8"],
    ...[JSON_TYPE, "application/json; charset=utf-8", "APPLICATION/JSON"],
  ])("takes a body as %s (TOK-2)", async (type) => {
    const emulator = await start({ clientSecret: SECRET });
    const body = /json/i.test(type) ? JSON.stringify(RIGHT) : encoded(RIGHT);
    expect((await post(emulator, body, type)).status).toBe(200);
  });

  it("takes JSON without a content type (GEN-8)", async () => {
    const emulator = await start({ clientSecret: SECRET });
    const body = new TextEncoder().encode(JSON.stringify(RIGHT));
    const response = await emulator.handle(new Request(`${emulator.url}${TOKEN_PATH}`, { method: "POST", body }));
    expect(response.status).toBe(200);
  });

  const refusal = (rule: string, body: string, type: string, error = "invalid_request") =>
    [rule, body, type, error] as const;
  const MISSING = [{}, { client_id: "client_main" }, { client_secret: "x" }, { ...PAIR, client_secret: "" }];
  it.each([
    ...["text/plain", "multipart/form-data; boundary=x", "application/jsonx", "application/vnd.api+json"].map((type) =>
      refusal("TOK-20", JSON.stringify(RIGHT), type),
    ),
    ...[
      ...["{", "[]", '"grant_type"', "null", `{"grant_type":${"[".repeat(100)}${"]".repeat(100)}}`],
      JSON.stringify({ ...RIGHT, client_id: 1 }),
      JSON.stringify({ ...RIGHT, grant_type: null }),
    ].map((body) => refusal("TOK-15", body, JSON_TYPE)),
    ...["client_id=%zz&client_secret=x", "client_id=%ff&client_secret=x", "client_id=x&client_secret=%"].map((pair) =>
      refusal("TOK-15", `${encoded(GRANT)}&${pair}`, FORM_TYPE),
    ),
    ...Object.entries({ ...RIGHT, scope: "a" }).map(([name, value]) =>
      refusal("TOK-19", `${encoded({ ...RIGHT, scope: "a" })}&${name}=${value}`, FORM_TYPE),
    ),
    ...[...MISSING, { ...PAIR, client_id: "" }].flatMap((fields) => [
      refusal("TOK-6", encoded({ ...GRANT, ...fields }), FORM_TYPE),
      refusal("TOK-6", JSON.stringify({ ...GRANT, ...fields }), JSON_TYPE),
    ]),
    ...[FORM_TYPE, JSON_TYPE].map((type) => refusal("TOK-6", "", type)),
    ...[PAIR, { grant_type: "", ...PAIR }].map((fields) => refusal("TOK-16", encoded(fields), FORM_TYPE)),
    ...["password", "authorization_code", "refresh_token", "CLIENT_CREDENTIALS", " client_credentials"].map(
      (grant_type) => refusal("TOK-4, TOK-7", encoded({ ...RIGHT, grant_type }), FORM_TYPE, "unsupported_grant_type"),
    ),
    refusal("GEN-10", JSON.stringify({ ...RIGHT, padding: "x".repeat(1_048_576) }), JSON_TYPE),
  ])("refuses by %s (case %#)", async (_, body, type, error) => {
    refuses(await post(await start({ clientSecret: SECRET }), body, type), 400, error);
  });

  it("refuses an unknown client and a wrong secret alike (TOK-8)", async () => {
    const emulator = await start();
    const unknown = await form(emulator, { ...GRANT, client_id: "nobody", client_secret: emulator.clientSecret });
    const wrong = await form(emulator, { ...GRANT, client_id: emulator.clientId, client_secret: "wrong" });
    refuses(unknown, 401, "invalid_client");
    expect(wrong.text).toBe(unknown.text);
  });

  it.each([
    ["another client's secret (TOK-8)", "main", "other"],
    ["an inactive client (TOK-9)", "inactive", "inactive"],
    ["a client of an inactive account (TOK-10)", "inactiveAccount", "inactiveAccount"],
  ] as const)("refuses %s", async (_, id, secret) => {
    const emulator = await start();
    const { clients } = emulator.fixtures;
    const fields = { client_id: clients[id].clientId, client_secret: clients[secret].clientSecret };
    refuses(await form(emulator, { ...GRANT, ...fields }), 401, "invalid_client");
  });

  it("decides in this order: body, credentials, grant, secret (TOK-15)", async () => {
    const emulator = await start();
    const wrong = { client_id: "x", client_secret: "y" };
    refuses(await post(emulator, "grant_type=password&grant_type=password", FORM_TYPE), 400, "invalid_request");
    refuses(await form(emulator, { grant_type: "password" }), 400, "invalid_request");
    refuses(await form(emulator, { grant_type: "password", ...wrong }), 400, "unsupported_grant_type");
    refuses(await form(emulator, { ...GRANT, ...wrong }), 401, "invalid_client");
  });

  it("keeps several tokens of a client valid at once (TOK-14)", async () => {
    const emulator = await start();
    const tokens = [await tokenOf(emulator), await tokenOf(emulator), await tokenOf(emulator)];
    expect(new Set(tokens).size).toBe(3);
    for (const token of tokens) expect((await call(emulator, "GET", "/api/core/whoami", { token })).status).toBe(200);
  });

  it("gives the same tokens for the same seed and client's secret, and others for another of either", async () => {
    const tokens = async (seed: string, clientSecret: string) => {
      const emulator = await start({ seed, clientSecret });
      return [await tokenOf(emulator), await tokenOf(emulator)];
    };
    const first = await tokens("one", "a");
    expect(await tokens("one", "a")).toEqual(first);
    for (const others of [await tokens("two", "a"), await tokens("one", "b")]) expect(others).not.toEqual(first);
  });

  it("forgets expired tokens when it gives out new ones", async () => {
    const emulator = await start();
    for (let i = 0; i < 50; i++) await tokenOf(emulator);
    await emulator.clock.advance(3_600_000);
    const token = await tokenOf(emulator);
    expect(Object.keys(emulator.control.exportState().tables.tokens ?? {})).toEqual([token]);
  });

  it("keeps 10,000 live tokens, the newest ones", async () => {
    const emulator = await start();
    const oldest = await tokenOf(emulator);
    const { version, tables } = emulator.control.exportState();
    const token = (accessToken: string) => ({ ...(tables.tokens?.[oldest] as object), accessToken });
    const more = Array.from({ length: 9_999 }, (_, i) => `token-${i}`);
    const tokens = { ...tables.tokens, ...Object.fromEntries(more.map((name) => [name, token(name)])) };
    emulator.control.importState({ version, tables: { ...tables, tokens } });
    const newest = await tokenOf(emulator);
    const status = async (name: string) => (await call(emulator, "GET", "/api/core/whoami", { token: name })).status;
    expect(await Promise.all([oldest, "token-0", newest].map(status))).toEqual([401, 200, 200]);
    expect(Object.keys(emulator.control.exportState().tables.tokens ?? {}).length).toBe(10_000);
  });

  it.each([{}, { unspecified: { unknownFields: "reject" } }, { profile: "strict" }] as const)(
    "ignores unknown fields with a warning that does not name them, as OAuth has it, with %j as well (GEN-9)",
    async (options) => {
      const emulator = await start({ ...options, clientSecret: SECRET });
      const fields = { ...RIGHT, scope: "a" };
      expect((await form(emulator, fields)).status).toBe(200);
      expect((await call(emulator, "POST", TOKEN_PATH, { body: { ...fields, more: [1] } })).status).toBe(200);
      const warnings = emulator.control.requests().map((request) => request.warnings);
      expect(warnings).toEqual([["1 unknown field was ignored"], ["2 unknown fields were ignored"]]);
    },
  );

  it.each(["GET", "PUT", "DELETE", "PATCH"])("answers %s in the OAuth shape too (GEN-3)", async (method) => {
    refuses(await call(await start(), method, TOKEN_PATH), 400, "invalid_request");
  });
});

describe("POST /api/auth/token with HTTP Basic", () => {
  const grant = (emulator: Emulator, headers: Record<string, string>, fields = {}) =>
    form(emulator, { ...GRANT, ...fields }, headers);

  it.each([
    ["as sent", "client_main", "s", "client_main:s"],
    ["with colons in the secret: the first one ends the id", "id", "se:cr:et", "id:se:cr:et"],
    ["form-encoded, both halves", "cli_a:b c", "s%+é:t", "cli%5Fa%3Ab+c:s%25%2B%C3%A9%3At"],
    ["as sent, though they look encoded", "a%5Fb", "100%+", "a%5Fb:100%+"],
  ])("takes credentials %s (TOK-3, TOK-18)", async (_, clientId, clientSecret, text) => {
    const emulator = await start({ clientId, clientSecret });
    for (const scheme of ["Basic", "basic", "BASIC", "bAsIc"]) {
      const headers = { authorization: basic(text).authorization.replace("Basic", scheme) };
      expect((await grant(emulator, headers)).status).toBe(200);
      expect((await call(emulator, "POST", TOKEN_PATH, { body: GRANT, headers })).status).toBe(200);
    }
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

  it.each(["id:", ":secret", ":"])("refuses the half pair %s as missing credentials (TOK-6)", async (text) => {
    refuses(await grant(await start(), basic(text)), 400, "invalid_request");
  });

  it("takes the same credentials in the body as well, whole or one half, and no others, even right ones (TOK-17)", async () => {
    const emulator = await start({ clientId: "a_b", clientSecret: "c+d" });
    const other = credentials(emulator.fixtures.clients.other);
    for (const header of [basic("a_b:c+d"), basic("a%5Fb:c%2Bd")]) {
      for (const fields of [credentials(emulator), { client_id: "a_b" }])
        expect((await grant(emulator, header, fields)).status).toBe(200);
      for (const fields of [other, { client_id: other.client_id }, { client_secret: "x" }])
        refuses(await grant(emulator, header, fields), 400, "invalid_request");
    }
  });

  it("looks at no other scheme: a bearer token is no credential here (TOK-1)", async () => {
    const emulator = await start();
    const header = { authorization: `Bearer ${await tokenOf(emulator)}` };
    refuses(await grant(emulator, header), 400, "invalid_request");
    expect((await grant(emulator, header, credentials(emulator))).status).toBe(200);
  });
});
