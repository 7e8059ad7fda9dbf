/** The request log: what it keeps, that no secret is ever in it (TOK-22), and how much of calls that anybody can make. */
import { describe, expect, it } from "vitest";
import { redactedText } from "../../../../src/messaging/emulator/http/request-log.ts";
import type { Emulator, RequestRecord } from "../../../../src/messaging/emulator/index.ts";
import { ROUTES } from "../../../../src/messaging/emulator/routes/table.ts";
import { call, ready, send, start, tokenOf } from "../support.ts";
import { basic, credentials, FORM, form, GRANT, TOKEN_PATH } from "../token-calls.ts";

const last = (emulator: Emulator): RequestRecord => {
  const record = emulator.control.requests().at(-1);
  if (record === undefined) throw new Error("nothing was logged");
  return record;
};

/** No encoding of it ends with another one's middle: whatever of it is found was it. */
const MARK = "MARKED-7f3a";

/** Everything that the log says, also as an event stream and an export would show it. */
function logged(emulator: Emulator): string {
  return JSON.stringify([emulator.control.requests(), emulator.control.exportState().tables.requests]);
}

describe("the request log", () => {
  it("keeps who asked for what and what was answered", async () => {
    const { emulator, token } = await ready();
    const body = { city: "Fresno", state: "CA" };
    const called = await call(emulator, "POST", "/api/core/numbers/search?x=1", { token, body });
    expect(last(emulator)).toEqual({
      number: 2,
      at: emulator.clock.now(),
      method: "POST",
      path: "/api/core/numbers/search",
      apiClientId: "ac_main",
      headers: { authorization: "[redacted]", "content-type": "application/json" },
      body,
      status: 200,
      responseBody: called.body,
      warnings: [],
      faults: [],
    });
  });

  it("keeps refusals, with no client where none was proven", async () => {
    const emulator = await start();
    await call(emulator, "GET", "/api/core/none");
    expect(last(emulator)).toMatchObject({ status: 401, apiClientId: null, responseBody: { code: "UNAUTHORIZED" } });
  });

  it("keeps a token request's harmless fields and its client (TOK-22)", async () => {
    const emulator = await start();
    await form(emulator, { ...GRANT, ...credentials(emulator), scope: "a" });
    expect(last(emulator)).toMatchObject({
      apiClientId: "ac_main",
      body: { ...GRANT, client_id: "client_main", client_secret: "[redacted]", "other fields": "[redacted]" },
      responseBody: { access_token: "[redacted]", token_type: "bearer", expires_in: 3600 },
    });
  });

  it("keeps flags and times whose names only sound like secrets", async () => {
    const { emulator, token } = await ready();
    await call(emulator, "PATCH", "/api/core/webhooks/inbound", { token, body: { signingEnabled: true, secret: "a" } });
    await call(emulator, "PATCH", "/api/core/webhooks/inbound", { token, body: { signingEnabled: true, secret: "b" } });
    expect(last(emulator)).toMatchObject({
      body: { signingEnabled: true, secret: "[redacted]" },
      responseBody: { hasCurrentSecret: true, hasPreviousSecret: true, previousSecretValidUntil: expect.any(Number) },
    });
  });

  it("keeps what an address says but its user name and password", async () => {
    const { emulator, token } = await ready();
    const webhookInboundOverride = "http://127.0.0.1:9/hooks@home?x=a@b#c@d";
    await call(emulator, "PATCH", "/api/core/numbers/num_000001", { token, body: { webhookInboundOverride } });
    expect(last(emulator).body).toEqual({ webhookInboundOverride });
    const text = "a@b.example, mailto:a@b.example and http: @ 10";
    await send(emulator, token, { text });
    expect(last(emulator).body).toMatchObject({ text });
    for (const url of ["http://u:p@127.0.0.1:9/x", "HTTP://u@127.0.0.1:9/x", "https://u:p@q:r@127.0.0.1:9/x"]) {
      await call(emulator, "PATCH", "/api/core/numbers/num_000001", { token, body: { webhookInboundOverride: url } });
      const scheme = url.slice(0, url.indexOf("u"));
      expect(last(emulator).body).toEqual({ webhookInboundOverride: `${scheme}127.0.0.1:9/x` });
    }
  });

  it("keeps 16 KiB of a body, and says that it was cut", async () => {
    const { emulator, token } = await ready();
    const text = "x".repeat(500_000);
    await send(emulator, token, { text });
    const { body } = last(emulator);
    expect(body).toMatch(/^\{"sendFrom":"num_000001".*x \[cut, \d+ in all\]$/);
    expect(String(body).length).toBeLessThan(16_500);
    await call(emulator, "PATCH", "/api/core/webhooks/inbound", {
      token,
      body: { secret: `${MARK}${"s".repeat(100_000)}`, signingEnabled: true },
    });
    expect(logged(emulator).includes(MARK)).toBe(false);
  });

  it("keeps nothing of a body over 1 MiB, nor of what is neither JSON nor a form", async () => {
    const emulator = await start();
    await call(emulator, "POST", TOKEN_PATH, { body: "x".repeat(1_048_577) });
    expect(last(emulator).body).toBe("[longer than 1 MiB]");
    await call(emulator, "POST", TOKEN_PATH, { body: "hello" });
    expect(last(emulator).body).toBe("[5 bytes]");
    await call(emulator, "GET", "/api/core/whoami");
    expect(last(emulator).body).toBe("");
  });
});

it("redactedText() takes a time that grows with the text's length, and no faster", () => {
  const begun = performance.now();
  redactedText("token".repeat(50_000));
  expect(performance.now() - begun).toBeLessThan(2_000);
});

describe("a marked secret", () => {
  const json = (value: unknown) => JSON.stringify(value);
  const encoded = encodeURIComponent;
  const addresses = (secret: string) =>
    json([
      `http://u:${secret}@h/`,
      `http://${secret}@h`,
      ` https:/u:${secret}@h`,
      `http:\\\\u:${secret}@h`,
      `http:u:${secret}@h:99999`,
      `http://u:\t${secret}@h`,
      `http://u:${secret}@`,
      `ftp://a@${secret}@h/`,
    ]).replace(/^\[(.*)\]$/s, '{"secret":"","urls":[$1]}');
  const BODIES: readonly (readonly [string, string])[] = [
    ["a form", `grant_type=client_credentials&client_id=client_main&client_secret=${MARK}`],
    ["a form with the secret twice", `client_secret=${MARK}&client_secret=${MARK}`],
    ["a form with an encoded name", `client%5Fsecret=${MARK}`],
    ["a form with a broken name", `client_secret:${MARK}`],
    ["a form of the secret alone", MARK],
    ["a form with an empty name", `=${MARK}`],
    ["a form with id and secret swapped", `client_id=${MARK}&client_secret=client_main`],
    ["a form that cannot be decoded", `client_secret=${MARK}&x=%zz`],
    ["a form in another case", `Client_Secret=${MARK}&CLIENT_SECRET=${MARK}`],
    ["a form with the secret as the grant", `grant_type=${MARK}&scope=${MARK}`],
    ["a form with semicolons", `grant_type=client_credentials;client_secret=${MARK}`],
    ["JSON", json({ ...GRANT, client_id: "client_main", client_secret: MARK, secret: MARK })],
    ["JSON in a form's place", json({ client_secret: `${MARK}=` })],
    ["JSON with other types", json({ client_secret: [MARK], secret: { a: MARK }, access_token: [[MARK]] })],
    [
      "JSON with other spellings",
      json({ clientSecret: MARK, Authorization: `Bearer ${MARK}`, SECRET: MARK, apiKey: MARK }),
    ],
    ["JSON with other names", json({ secrets: [MARK], webhookSecretValue: MARK, signingKey: MARK, secretText2: MARK })],
    ["JSON with other signs", json({ "client-secret": MARK, "Client Secret": MARK, "api.key": MARK, password1: MARK })],
    [
      "JSON with texts as flags",
      json({ signingSecretEnabled: MARK, previousSecretValidUntil: MARK, token_type: MARK }),
    ],
    ["JSON with the secret in addresses", addresses(MARK)],
    ["JSON with the secret deep inside", json({ a: [{ b: { secret: MARK, generatedSecret: MARK } }] })],
    ["JSON with id and secret swapped", json({ ...GRANT, client_id: MARK, client_secret: "client_main" })],
    ["broken JSON", `{"client_secret":"${MARK}=="`],
    ["broken JSON with a form's look", `{"client_secret"="${MARK}"&secret=${MARK}}`],
    ["two JSON objects", `{"secret":"${MARK}"}{"secret":"${MARK}"}`],
    ["an array", json([{ secret: MARK }])],
    ["a text", json(MARK)],
    ["an encoded pair", encoded(`client_secret=${MARK}`)],
  ];
  const TYPES = [FORM["content-type"], "application/json", "text/plain", "multipart/form-data; boundary=x", ""];
  const HEADERS = [
    basic(`client_main:${MARK}`),
    basic(`client%5Fmain:${encoded(MARK)}`),
    { authorization: `Basic ${MARK}` },
    { authorization: `Bearer ${MARK}` },
    { authorization: MARK, cookie: `token=${MARK}`, "proxy-authorization": `Basic ${MARK}` },
    { "x-api-key": MARK, "api-key": MARK, "x-auth-token": MARK, "x-client-secret": MARK },
  ];
  const base64 = Buffer.from(`client_main:${MARK}`).toString("base64");

  it.each(BODIES)("is never in the log: %s, to any route, with any content type (TOK-22)", async (_name, body) => {
    const emulator = await start();
    // On the core routes a secret's own name is all that tells it from data.
    const routes = /client_?secret|secret|"[^"]*":/i.test(body)
      ? ROUTES
      : ROUTES.filter(({ kind }) => kind === "token");
    const token = await tokenOf(emulator);
    let calls = 0;
    for (const { method, path } of routes.filter((route) => route.method !== "GET")) {
      for (const type of TYPES) {
        const headers = { "content-type": type, ...(path === TOKEN_PATH ? {} : { authorization: `Bearer ${token}` }) };
        const called = await call(emulator, method, path.replace("{numberId}", "num_000001"), { body, headers });
        expect(called.text.includes(MARK)).toBe(false);
        calls++;
      }
    }
    expect(emulator.control.requests().length).toBe(calls + 1);
    expect(calls).toBeGreaterThanOrEqual(TYPES.length);
    expect(logged(emulator).includes(MARK)).toBe(false);
  });

  it.each(HEADERS)("is never in the log: headers %j, to every route (TOK-22)", async (headers) => {
    const emulator = await start();
    for (const { method, path } of ROUTES) await call(emulator, method, path, { headers });
    await call(emulator, "GET", "/api/core/none", { headers });
    expect(emulator.control.requests().length).toBe(ROUTES.length + 1);
    expect(logged(emulator).includes(MARK)).toBe(false);
    expect(logged(emulator).includes(base64)).toBe(false);
  });

  it.each([
    `${TOKEN_PATH}/${MARK}`,
    `${TOKEN_PATH}${MARK}`,
    `${TOKEN_PATH}//${MARK}/x`,
    `/API/auth/TOKEN/${MARK}`,
    `/other${TOKEN_PATH}/${MARK}`,
  ])("is never in the log: behind the token path, %s (TOK-22)", async (path) => {
    const emulator = await start();
    await call(emulator, "POST", path);
    expect(last(emulator).path).toMatch(/^\/.*token\/*\[redacted\]$/i);
    expect(logged(emulator).includes(MARK)).toBe(false);
    await call(emulator, "POST", `${TOKEN_PATH}/`);
    expect(last(emulator).path).toBe(`${TOKEN_PATH}/`);
  });

  it("is never in the log or in deliveries: in a webhook's address", async () => {
    const url = `http://user:${MARK}@127.0.0.1:9/hooks`;
    const emulator = await start({ lifecycle: "instant" });
    const token = await tokenOf(emulator);
    for (const kind of ["inbound", "delivery"])
      await call(emulator, "PATCH", `/api/core/webhooks/${kind}`, {
        token,
        body: { endpointUrl: url, enabled: true, signingEnabled: true },
        headers: { referer: url },
      });
    const override = { webhookInboundOverride: url };
    await call(emulator, "PATCH", "/api/core/numbers/num_000001", { token, body: override });
    await send(emulator, token);
    emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: "hello" });
    await emulator.clock.idle();
    expect(emulator.control.deliveries().map(({ attempts }) => attempts[0]?.url)).toEqual(
      Array(4).fill("http://127.0.0.1:9/hooks"),
    );
    const { text } = await call(emulator, "GET", "/_emulator/deliveries");
    for (const shown of [text, logged(emulator)]) expect(shown.includes(MARK)).toBe(false);
  });

  it("is never in the log: a query, a token given out, a secret generated (TOK-22)", async () => {
    const emulator = await start();
    await call(emulator, "POST", `${TOKEN_PATH}?client_secret=${MARK}`);
    const token = await tokenOf(emulator);
    const { body } = await call(emulator, "PATCH", "/api/core/webhooks/inbound", {
      token,
      body: { signingEnabled: true },
    });
    expect(body.generatedSecret).toMatch(/./);
    const everything = logged(emulator);
    for (const secret of [MARK, token, body.generatedSecret, emulator.clientSecret])
      expect(everything.includes(secret)).toBe(false);
  });

  it("is in no line of the emulator's own log", async () => {
    const lines: unknown[] = [];
    const keep = (...line: unknown[]) => void lines.push(line);
    const logger = { debug: keep, info: keep, warn: keep, error: keep };
    const { emulator, token } = await ready({ logger, clientSecret: MARK, webhookSecret: MARK });
    await form(emulator, { ...GRANT, client_id: "x", client_secret: MARK });
    await send(emulator, token);
    await emulator.clock.advance(60_000);
    expect(JSON.stringify(lines)).not.toContain(MARK);
  });
});

const CUT = / \[cut, \d+ in all\]$/;

describe("the request log's bounds", () => {
  it("keep 1 KiB of a path", async () => {
    const emulator = await start();
    const path = `/${"p".repeat(1023)}`;
    await call(emulator, "GET", path);
    expect(last(emulator).path).toBe(path);
    await call(emulator, "GET", `${path}q`);
    expect(last(emulator).path).toBe(`${path} [cut, 1025 in all]`);
  });

  it("keep 1 KiB of a header's name and value, and say that they were cut", async () => {
    const { emulator, token } = await ready();
    const value = "v".repeat(1024);
    const headers = { [`n${value}`]: "n", "x-long": `${value}vv`, "x-short": value };
    await call(emulator, "GET", "/api/core/whoami", { token, headers });
    const name = `n${"v".repeat(1023)} [cut, 1025 in all]`;
    const kept = { [name]: "n", "x-long": `${value} [cut, 1026 in all]`, "x-short": value };
    expect(last(emulator).headers).toEqual({ authorization: "[redacted]", ...kept });
  });

  it("keep 64 headers, and say how many there were", async () => {
    const emulator = await start();
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "v"]));
    await call(emulator, "GET", "/", { headers: many(64) });
    expect(last(emulator).headers).toEqual(many(64));
    await call(emulator, "GET", "/", { headers: many(70) });
    const { headers } = last(emulator);
    expect(Object.keys(headers)).toHaveLength(65);
    expect(headers["[cut]"]).toBe("70 in all");
  });

  it("keep about 4 KiB of headers together", async () => {
    const emulator = await start();
    const headers = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`x-${i}`, "v".repeat(1000)]));
    await call(emulator, "GET", "/", { headers });
    expect(JSON.stringify(last(emulator).headers).length).toBeLessThan(5500);
    expect(last(emulator).headers["[cut]"]).toBe("16 in all");
  });

  it.each(["/api/core/messages/send", "/api/auth/token", "/elsewhere"])(
    "keep 1 KiB of a body from a caller that proved nothing, of one that did 16 (%s)",
    async (path) => {
      const emulator = await start();
      const body = { text: "x".repeat(10_000) };
      await call(emulator, "POST", path, { body });
      const { status, ...record } = last(emulator);
      expect([400, 401, 404]).toContain(status);
      expect(JSON.stringify(record).length).toBeLessThan(2000);
      if (path !== "/api/auth/token") expect(record.body).toMatch(CUT);
      const token = await tokenOf(emulator);
      await send(emulator, token, body);
      expect(last(emulator).body).toMatchObject(body);
    },
  );

  it("keep 16 KiB of a body that a fault rule answered, for that is somebody's test", async () => {
    const action = { type: "status", status: 500 } as const;
    const emulator = await start({ faults: [{ match: { route: "POST /api/core/messages/send" }, action }] });
    const body = { text: "x".repeat(10_000) };
    await call(emulator, "POST", "/api/core/messages/send", { body });
    expect(last(emulator)).toMatchObject({ status: 500, body });
  });

  it("keep a long body whole that is short without its secrets", async () => {
    const { emulator, token } = await ready();
    const body = { secret: "s".repeat(20_000), signingEnabled: true };
    await call(emulator, "PATCH", "/api/core/webhooks/inbound", { token, body });
    expect(last(emulator).body).toEqual({ secret: "[redacted]", signingEnabled: true });
  });

  it("cut no character in two", async () => {
    const emulator = await start();
    await call(emulator, "POST", "/elsewhere", { body: { t: `${"x".repeat(1017)}😀${"x".repeat(100)}` } });
    expect(last(emulator).body).toMatch(/x. \[cut, \d+ in all\]$/);
    expect(String(last(emulator).body)).not.toMatch(/[\ud800-\udfff]/);
  });

  it("hold no more memory than what they keep", { tags: "full" }, async () => {
    const emulator = await start();
    const bytes = `{"text":"${"x".repeat(1_000_000)}"}`;
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 200; i++) await call(emulator, "POST", "/elsewhere", { body: bytes });
    expect(emulator.control.requests()).toHaveLength(200);
    // What is still to be collected, in place of a collection that cannot be asked for: 200 whole bodies would be 200 MB.
    await expect.poll(() => process.memoryUsage().heapUsed - before, { timeout: 5000 }).toBeLessThan(100_000_000);
  });
});
