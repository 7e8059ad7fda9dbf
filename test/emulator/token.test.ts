/** The token route: what it takes, what it refuses, and in which order (TOK). */
import { describe, expect, it } from "vitest";
import { call, start, tokenOf } from "./support.ts";
import { credentials, FORM, form, GRANT, refuses, TOKEN_PATH } from "./token-calls.ts";

describe("POST /api/auth/token", () => {
  it("answers with exactly three fields, without a bearer token (TOK-1, TOK-5)", async () => {
    const emulator = await start();
    const { status, body } = await form(emulator, { ...GRANT, ...credentials(emulator) });
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^[\da-f]{64}$/),
      token_type: "bearer",
      expires_in: 3600,
    });
  });

  it("is not for caches and says nothing of how to authenticate (TOK-21)", async () => {
    const emulator = await start();
    const right = await form(emulator, { ...GRANT, ...credentials(emulator) });
    expect(right.headers.get("cache-control")).toBe("no-store");
    const wrong = await form(emulator, { ...GRANT, client_id: "x", client_secret: "y" });
    expect(wrong.headers.get("cache-control")).toBe("no-store");
    expect(wrong.headers.get("www-authenticate")).toBeNull();
  });

  it("says how to authenticate with that reading, on a 401 only (TOK-21)", async () => {
    const emulator = await start({ unspecified: { "token.wwwAuthenticate": true } });
    const wrong = await form(emulator, { ...GRANT, client_id: "x", client_secret: "y" });
    expect(wrong.headers.get("www-authenticate")).toBe('Basic realm="token", charset="UTF-8"');
    expect((await form(emulator, GRANT)).headers.get("www-authenticate")).toBeNull();
  });

  it.each([
    "application/x-www-form-urlencoded",
    "application/x-www-form-urlencoded;charset=UTF-8",
    "Application/X-WWW-Form-URLEncoded ; Charset=utf-8",
  ])("takes a form as %s (TOK-2)", async (type) => {
    const emulator = await start();
    expect((await form(emulator, { ...GRANT, ...credentials(emulator) }, { "content-type": type })).status).toBe(200);
  });

  it.each(["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"])(
    "takes JSON as %s (TOK-2)",
    async (type) => {
      const emulator = await start();
      const body = { ...GRANT, ...credentials(emulator) };
      expect((await call(emulator, "POST", TOKEN_PATH, { body, headers: { "content-type": type } })).status).toBe(200);
    },
  );

  it("takes JSON without a content type (GEN-8)", async () => {
    const emulator = await start();
    const body = new TextEncoder().encode(JSON.stringify({ ...GRANT, ...credentials(emulator) }));
    const response = await emulator.handle(new Request(`${emulator.url}${TOKEN_PATH}`, { method: "POST", body }));
    expect(response.status).toBe(200);
  });

  it.each(["text/plain", "multipart/form-data; boundary=x", "application/jsonx", "application/vnd.api+json"])(
    "refuses %s with 400, not 415 (TOK-20)",
    async (type) => {
      const emulator = await start();
      const body = { ...GRANT, ...credentials(emulator) };
      refuses(
        await call(emulator, "POST", TOKEN_PATH, { body, headers: { "content-type": type } }),
        400,
        "invalid_request",
      );
    },
  );

  it.each([
    ["{", "application/json"],
    ["[]", "application/json"],
    ['"grant_type"', "application/json"],
    ["null", "application/json"],
    ['{"grant_type":"client_credentials","client_id":1,"client_secret":"x"}', "application/json"],
    ['{"grant_type":null,"client_id":"x","client_secret":"x"}', "application/json"],
    [`{"grant_type":${"[".repeat(100)}${"]".repeat(100)}}`, "application/json"],
    ["grant_type=client_credentials&client_id=%zz&client_secret=x", FORM["content-type"]],
    ["grant_type=client_credentials&client_id=%ff&client_secret=x", FORM["content-type"]],
    ["grant_type=client_credentials&client_id=x&client_secret=%", FORM["content-type"]],
  ])("refuses the malformed body %s (TOK-15)", async (body, type) => {
    const emulator = await start();
    refuses(
      await call(emulator, "POST", TOKEN_PATH, { body, headers: { "content-type": type } }),
      400,
      "invalid_request",
    );
  });

  it("refuses a body over 1 MiB (GEN-10)", async () => {
    const emulator = await start();
    const body = { ...GRANT, ...credentials(emulator), padding: "x".repeat(1_048_576) };
    refuses(await call(emulator, "POST", TOKEN_PATH, { body }), 400, "invalid_request");
  });

  it.each(["grant_type", "client_id", "client_secret", "scope"])(
    "refuses %s twice in a form (TOK-19)",
    async (name) => {
      const emulator = await start();
      const fields = new URLSearchParams({ ...GRANT, ...credentials(emulator), scope: "a" });
      fields.append(name, fields.get(name) ?? "");
      refuses(
        await call(emulator, "POST", TOKEN_PATH, { body: fields.toString(), headers: FORM }),
        400,
        "invalid_request",
      );
    },
  );

  it.each([
    {},
    { client_id: "client_main" },
    { client_secret: "x" },
    { client_id: "client_main", client_secret: "" },
    { client_id: "", client_secret: "x" },
  ])("refuses missing credentials: %j (TOK-6)", async (fields) => {
    const emulator = await start();
    refuses(await form(emulator, { ...GRANT, ...(fields as Record<string, string>) }), 400, "invalid_request");
    refuses(await call(emulator, "POST", TOKEN_PATH, { body: { ...GRANT, ...fields } }), 400, "invalid_request");
  });

  it("refuses an empty body as missing credentials (TOK-6)", async () => {
    const emulator = await start();
    refuses(await call(emulator, "POST", TOKEN_PATH), 400, "invalid_request");
    refuses(await call(emulator, "POST", TOKEN_PATH, { body: "", headers: FORM }), 400, "invalid_request");
  });

  it.each(["password", "authorization_code", "refresh_token", "CLIENT_CREDENTIALS", " client_credentials"])(
    "refuses the grant %s (TOK-4, TOK-7)",
    async (grant) => {
      const emulator = await start();
      const fields = { ...credentials(emulator), grant_type: grant };
      refuses(await form(emulator, fields), 400, "unsupported_grant_type");
    },
  );

  it("refuses a missing or empty grant as an invalid request (TOK-16)", async () => {
    const emulator = await start();
    refuses(await form(emulator, credentials(emulator)), 400, "invalid_request");
    refuses(await form(emulator, { grant_type: "", ...credentials(emulator) }), 400, "invalid_request");
  });

  it("refuses an unknown client and a wrong secret alike (TOK-8)", async () => {
    const emulator = await start();
    const unknown = await form(emulator, { ...GRANT, client_id: "nobody", client_secret: emulator.clientSecret });
    const wrong = await form(emulator, { ...GRANT, client_id: emulator.clientId, client_secret: "wrong" });
    refuses(unknown, 401, "invalid_client");
    expect(wrong.text).toBe(unknown.text);
  });

  it("refuses another client's secret (TOK-8)", async () => {
    const emulator = await start();
    const { main, other } = emulator.fixtures.clients;
    const fields = { ...GRANT, client_id: main.clientId, client_secret: other.clientSecret };
    refuses(await form(emulator, fields), 401, "invalid_client");
  });

  it("refuses an inactive client (TOK-9)", async () => {
    const emulator = await start();
    const fields = { ...GRANT, ...credentials(emulator.fixtures.clients.inactive) };
    refuses(await form(emulator, fields), 401, "invalid_client");
  });

  it("refuses a client of an inactive account (TOK-10)", async () => {
    const emulator = await start();
    const fields = { ...GRANT, ...credentials(emulator.fixtures.clients.inactiveAccount) };
    refuses(await form(emulator, fields), 401, "invalid_client");
  });

  it("fails with server_error when a fault says so (TOK-11)", async () => {
    const fault = {
      match: { route: "POST /api/auth/token" },
      action: { type: "status", status: 500 },
      times: 1,
    } as const;
    const emulator = await start({ faults: [fault] });
    const fields = { ...GRANT, ...credentials(emulator) };
    refuses(await form(emulator, fields), 500, "server_error");
    expect((await form(emulator, fields)).status).toBe(200);
  });

  it("knows no error but the four, whatever a fault asks for (TOK-12)", async () => {
    const action = { type: "status", status: 429, code: "RATE_LIMITED", retryAfterSeconds: 7 } as const;
    const emulator = await start({ faults: [{ match: { route: "POST /api/auth/token" }, action }] });
    const called = await form(emulator, { ...GRANT, ...credentials(emulator) });
    refuses(called, 429, "server_error");
    expect(called.headers.get("retry-after")).toBe("7");
  });

  it("decides in this order: body, credentials, grant, secret (TOK-15)", async () => {
    const emulator = await start();
    const wrong = { client_id: "x", client_secret: "y" };
    const broken = "grant_type=password&grant_type=password";
    refuses(await call(emulator, "POST", TOKEN_PATH, { body: broken, headers: FORM }), 400, "invalid_request");
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

  it("gives the same tokens for the same seed, and others for another", async () => {
    const tokens = async (seed: string) => {
      const emulator = await start({ seed });
      return [await tokenOf(emulator), await tokenOf(emulator)];
    };
    const first = await tokens("one");
    expect(await tokens("one")).toEqual(first);
    expect(await tokens("two")).not.toEqual(first);
  });

  it("gives tokens that the seed alone does not tell: the client's secret decides them as well", async () => {
    const first = await start({ clientSecret: "one" });
    const second = await start({ clientSecret: "two" });
    expect(await tokenOf(second)).not.toBe(await tokenOf(first));
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

  it("ignores unknown fields with a warning that does not name them (GEN-9)", async () => {
    const emulator = await start();
    const fields = { ...GRANT, ...credentials(emulator), scope: "a" };
    expect((await form(emulator, fields)).status).toBe(200);
    expect((await call(emulator, "POST", TOKEN_PATH, { body: { ...fields, more: [1] } })).status).toBe(200);
    const warnings = emulator.control.requests().map((request) => request.warnings);
    expect(warnings).toEqual([["1 unknown field was ignored"], ["2 unknown fields were ignored"]]);
  });

  it.each([{ unspecified: { unknownFields: "reject" } }, { profile: "strict" }] as const)(
    "ignores them with %j as well, as OAuth has it (GEN-9)",
    async (options) => {
      const emulator = await start(options);
      const fields = { ...GRANT, ...credentials(emulator), scope: "a", audience: "b" };
      expect((await form(emulator, fields)).status).toBe(200);
      expect((await call(emulator, "POST", TOKEN_PATH, { body: fields })).status).toBe(200);
    },
  );

  it.each(["GET", "PUT", "DELETE", "PATCH"])("answers %s in the OAuth shape too (GEN-3)", async (method) => {
    const emulator = await start();
    refuses(await call(emulator, method, TOKEN_PATH), 400, "invalid_request");
  });
});
