/** What holds on all routes: shapes, unknown paths, bodies, request ids (GEN). */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { type Called, call, ready, send, start, startAgain, tokenOf } from "../support.ts";

const INBOUND = "/api/core/webhooks/inbound";

function refuses({ status, body, headers }: Called, expected: number, code: string): void {
  expect(body).toEqual({
    error: { code, message: expect.stringMatching(/\w\.$/), details: expect.any(Object) },
    requestId: expect.stringMatching(/^req_[0-9a-f]{6}_\d{6}$/),
  });
  expect(Array.isArray(body.error.details)).toBe(false);
  expect(status).toBe(expected);
  expect(headers.get("content-type")).toBe("application/json");
}

describe("answers of core routes", () => {
  it("carry an id of their own on each failure, and none on success (GEN-4)", async () => {
    const { emulator, token } = await ready();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      ids.push((await call(emulator, "GET", "/api/core/none", { token })).body.requestId);
      const success = await call(emulator, "GET", "/api/core/whoami", { token });
      expect(success.text).not.toContain("req_");
      expect([...success.headers.values()].join()).not.toContain("req_");
    }
    expect(new Set(ids).size).toBe(5);
  });

  it("have no version in their paths (GEN-5)", async () => {
    const { emulator, token } = await ready();
    for (const path of ["/api/v1/core/whoami", "/api/core/v1/whoami", "/v1/api/core/whoami"]) {
      refuses(await call(emulator, "GET", path, { token }), 404, "NOT_FOUND");
    }
  });

  it.each(["x-api-key", "api-key", "x-auth-token"])("take no permanent key in %s (GEN-6)", async (name) => {
    const emulator = await start();
    const headers = { [name]: emulator.clientSecret };
    refuses(await call(emulator, "GET", "/api/core/whoami", { headers }), 401, "UNAUTHORIZED");
  });
});

describe("unknown paths and methods", () => {
  it.each([
    ["GET", "/api/core"],
    ["GET", "/api/core/"],
    ["GET", "/api/core/none"],
    ["GET", "/api/core/whoami/"],
    ["GET", "/api/core/who%61mi"],
    ["GET", "/api/core/numbers/num_000001"],
    ["PATCH", "/api/core/numbers/a/b"],
    ["PATCH", "/api/core/numbers/%zz"],
    ["PATCH", "/api/core/numbers/"],
    ["POST", "/api/core/whoami"],
    ["GET", "/api/core/messages/send"],
    ["DELETE", "/api/core/numbers"],
    ["OPTIONS", "/api/core/whoami"],
  ])("%s %s gives 401 without a token and 404 with one (GEN-7)", async (method, path) => {
    const { emulator, token } = await ready();
    refuses(await call(emulator, method, path), 401, "UNAUTHORIZED");
    refuses(await call(emulator, method, path, { token }), 404, "NOT_FOUND");
  });

  const elsewhere = ["/", "/favicon.ico", "/api", "/api/corex/whoami", "/api/auth", "/api/auth/token/", "/whoami"];
  it.each(elsewhere)("%s is no part of the service: 404 without a token too (GEN-7)", async (path) => {
    const emulator = await start();
    refuses(await call(emulator, "GET", path), 404, "NOT_FOUND");
  });

  const readable = ["/api/core/whoami", "/api/core/webhooks", "/api/core/numbers", "/_emulator/health"];

  it.each(readable)("GET %s is answered in JSON, and HEAD as it is, without a body (GEN-1, GEN-7)", async (path) => {
    const { emulator, token } = await ready({ port: 0 });
    const headers = { authorization: `Bearer ${token}` };
    const [got, told] = [
      await fetch(emulator.url + path, { headers }),
      await fetch(emulator.url + path, { headers, method: "HEAD" }),
    ];
    const text = await got.text();
    for (const answer of [got, told]) {
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
      expect(answer.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
    }
    expect([await told.text(), told.headers.get("cache-control")]).toEqual(["", got.headers.get("cache-control")]);
    const handled = await emulator.handle(new Request(emulator.url + path, { method: "HEAD" }));
    expect(handled.body).toBeNull();
  });

  it.each([
    ["/api/core/whoami", false, 401],
    ["/api/core/none", true, 404],
    ["/api/core/messages/send", true, 404],
    ["/api/auth/token", true, 400],
    ["/_emulator/none", true, 404],
    ["/_emulator/reset", true, 405],
  ])("HEAD %s with a token: %s gives %i, without a body (GEN-7)", async (path, hasToken, status) => {
    const { emulator, token } = await ready();
    const answer = await call(emulator, "HEAD", path, hasToken ? { token } : {});
    expect([answer.status, answer.text]).toEqual([status, ""]);
  });

  it("lets HEAD open no event stream that stays (GEN-7)", async () => {
    const { emulator } = await ready({ port: 0 });
    const response = await fetch(`${emulator.url}/_emulator/stream`, { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });
});

it("a base path is before every route, and routes without it do not exist (GEN-13)", async () => {
  const { emulator, token } = await ready({ basePath: "/sms/eu/" });
  expect(emulator.url).toMatch(/\/sms\/eu$/);
  expect((await call(emulator, "GET", "/api/core/whoami", { token })).status).toBe(200);
  const { origin } = new URL(emulator.url);
  for (const path of ["/api/core/whoami", "/api/auth/token", "/sms/eux/api/core/whoami", "/sms"]) {
    const headers = { authorization: `Bearer ${token}` };
    const response = await emulator.handle(new Request(`${origin}${path}`, { headers }));
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining("/sms/eu/api/core") } });
  }
});

describe("bodies", () => {
  const nested = (depth: number) => `{"signingEnabled":false,"x":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  const long = (length: number) => `{"signingEnabled":false,"x":"${"y".repeat(length - 31)}"}`;
  const patch = (emulator: Emulator, token: string, body: unknown, headers = {}) =>
    call(emulator, "PATCH", INBOUND, { token, body, headers });

  it.each([
    ["nothing", ""],
    ["half of one", '{"signingEnabled":true'],
    ["a form", "signingEnabled=true"],
    ["an array", '[{"signingEnabled":true}]'],
    ["null", "null"],
    ["a number", "1"],
    ["a text", '"signingEnabled"'],
    ["two objects", '{"signingEnabled":true}{}'],
    ["a comment", '{"signingEnabled":true} // yes'],
    ["bytes that are no UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
    ["100,000 brackets", "[".repeat(100_000)],
    ["65 levels", nested(64)],
    ["1 MiB and a byte", long(1_048_577)],
  ])("are refused when they are %s instead of a JSON object (GEN-8, GEN-10)", async (_name, body) => {
    const { emulator, token } = await ready();
    refuses(await patch(emulator, token, body), 400, "INVALID_REQUEST");
  });

  it.each<readonly [type: string, body: string]>([
    ...[
      "application/json",
      "application/json;charset=utf-8",
      "text/plain",
      "application/x-www-form-urlencoded",
      "",
    ].map((type) => [type, '{"signingEnabled":false}'] as const),
    ["application/json", nested(63)],
    ["application/json", long(1_048_576)],
  ])("are read as JSON with the content type %j, at 64 levels and of 1 MiB (GEN-8, GEN-10)", async (type, body) => {
    const { emulator, token } = await ready();
    expect((await patch(emulator, token, body, { "content-type": type })).status).toBe(200);
  });

  it("are read without a content type (GEN-8)", async () => {
    const { emulator, token } = await ready();
    const body = new TextEncoder().encode('{"signingEnabled":false}');
    const headers = { authorization: `Bearer ${token}` };
    const request = new Request(`${emulator.url}${INBOUND}`, { method: "PATCH", body, headers });
    expect(request.headers.has("content-type")).toBe(false);
    expect((await emulator.handle(request)).status).toBe(200);
  });
});

describe("unknown fields", () => {
  it("are ignored, with a warning in the request log (GEN-9)", async () => {
    const { emulator, token } = await ready();
    const body = { signingEnabled: false, endpointURL: "http://127.0.0.1/", more: { a: 1 } };
    expect((await call(emulator, "PATCH", INBOUND, { token, body })).status).toBe(200);
    expect(emulator.control.requests().at(-1)?.warnings).toEqual([
      'unknown field "endpointURL" was ignored',
      'unknown field "more" was ignored',
    ]);
  });

  it("are refused with that reading, also in nested objects (GEN-9)", async () => {
    const { emulator, token } = await ready({ unspecified: { unknownFields: "reject" } });
    const body = { signingEnabled: false, x: 1 };
    const top = await call(emulator, "PATCH", INBOUND, { token, body });
    refuses(top, 400, "INVALID_REQUEST");
    expect(top.body.error.details).toEqual({ unknownFields: ["x"] });
    const item = { storageKey: "k", mimeType: "image/png", byteLength: 1 };
    const media = [item, { ...item, width: 640 }];
    const nested = await send(emulator, token, { messageType: "MMS", media });
    refuses(nested, 400, "INVALID_REQUEST");
    expect(nested.body.error.details).toEqual({ unknownFields: ["media.1.width"] });
    expect((await send(emulator, token, { messageType: "MMS", media: [item] })).status).toBe(202);
  });

  it("are named in bounded number and length (GEN-9)", async () => {
    const { emulator, token } = await ready();
    const many = Object.fromEntries(Array.from({ length: 4000 }, (_, i) => [`${"n".repeat(200)}${i}`, i]));
    const { status } = await call(emulator, "PATCH", INBOUND, { token, body: { ...many, signingEnabled: false } });
    expect(status).toBe(200);
    const warnings = emulator.control.requests().at(-1)?.warnings ?? [];
    expect(warnings.length).toBe(20);
    expect(Math.max(...warnings.map(({ length }) => length))).toBeLessThan(150);
  });
});

it("has no rate limit (GEN-11)", async () => {
  const { emulator, token } = await ready();
  const calls = Array.from({ length: 300 }, () => call(emulator, "GET", "/api/core/whoami", { token }));
  expect((await Promise.all(calls)).every(({ status }) => status === 200)).toBe(true);
});

const INHERITED = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"];
const PATH = "/api/core/numbers/num_000001";

describe("field names that every object inherits", () => {
  it.each(INHERITED)("warns of %s in words, as of any unknown field (GEN-9)", async (name) => {
    const { emulator, token } = await ready();
    const { status } = await call(emulator, "PATCH", PATH, { token, body: `{"${name}":1}` });
    expect(status).toBe(200);
    expect(emulator.control.requests().at(-1)?.warnings).toEqual([`unknown field "${name}" was ignored`]);
  });

  it("keeps calls with them in an export, to all that reads names: bodies, headers, forms, queries", async () => {
    const first = await start();
    const token = await tokenOf(first);
    const form = { "content-type": "application/x-www-form-urlencoded" };
    for (const name of INHERITED) {
      const fields = `{"${name}":{"${name}":["${name}"]}}`;
      await call(first, "PATCH", PATH, { token, body: fields });
      await call(first, "POST", "/api/auth/token", { body: fields });
      await call(first, "POST", "/api/auth/token", { body: `${name}=${name}&grant_type=${name}`, headers: form });
      await call(first, "POST", `/api/core/messages/send?${name}=${name}`, {
        token,
        body: `{"to":["${name}"],"media":[{"${name}":1}]}`,
        headers: { [name]: name, "idempotency-key": name },
      });
      const query = await call(first, "GET", `/_emulator/events?${name}=${name}`);
      expect([name, query.status]).toEqual([name, 400]);
    }
    const requests = first.control.requests();
    expect(requests).toHaveLength(1 + 4 * INHERITED.length);
    const second = await startAgain(first);
    expect(second.control.requests()).toEqual(requests);
  });
});
