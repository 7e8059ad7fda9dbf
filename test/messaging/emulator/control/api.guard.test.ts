/** Who may use the control API, and what it says to bad calls; over real sockets, with headers as they come. */
import { describe, expect, it } from "vitest";
import { CONTROL_ROUTES } from "../../../../src/messaging/emulator/control/routes.ts";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { raw } from "../raw-socket.ts";
import { call, start } from "../support.ts";

/** A request exactly as written: no header but those given, and the end of the connection. */
const request = (emulator: Emulator, line: string, headers: readonly string[], body = "") =>
  raw(emulator, [`${line} HTTP/1.1`, ...headers, "Connection: close", "", body].join("\r\n"));

const JSON_BODY = ["Content-Type: application/json", "Content-Length: 2"];
const CALLS = [
  { line: "GET /_emulator/health", headers: [], body: "" },
  { line: "POST /_emulator/tokens/revoke", headers: JSON_BODY, body: "{}" },
  { line: "POST /_emulator/reset", headers: ["Content-Length: 0"], body: "" },
  { line: "PATCH /_emulator/clients/ac_main", headers: JSON_BODY, body: "{}" },
  { line: "DELETE /_emulator/faults", headers: [], body: "" },
] as const;

describe("the guard of the control API", () => {
  const own = (port: string) => [
    [`localhost:${port}`, null],
    ["localhost", null],
    ["LOCALHOST:1", null],
    [`127.0.0.1:${port}`, null],
    ["127.8.9.1", null],
    [`[::1]:${port}`, null],
    [`localhost:${port}`, `http://localhost:${port}`],
    [`127.0.0.1:${port}`, `http://127.0.0.1:${port}`],
  ];
  const foreign = (port: string) => [
    ["evil.example", null],
    [`evil.example:${port}`, null],
    ["localhost.evil.example", null],
    ["127.0.0.1.evil.example", null],
    ["notlocalhost", null],
    ["192.168.1.5", null],
    ["[::2]", null],
    ["0.0.0.0", null],
    [`evil.example:${port}`, `http://evil.example:${port}`],
    [`localhost:${port}`, "http://evil.example"],
    [`localhost:${port}`, "null"],
    [`localhost:${port}`, `https://localhost:${port}`],
    [`localhost:${port}`, "http://localhost:3000"],
    [`localhost:${port}`, `http://127.0.0.1:${port}`],
    [`localhost:${port}`, `http://localhost:${port}.evil.example`],
    [`localhost:${port}`, ""],
  ];
  const matrix = async (pairs: (port: string) => (string | null)[][], expected: number) => {
    const emulator = await start({ port: 0 });
    const before = emulator.control.exportState();
    for (const [host, origin] of pairs(new URL(emulator.url).port)) {
      for (const { line, headers, body } of CALLS) {
        const origins = origin === null ? [] : [`Origin: ${origin}`];
        const answer = await request(emulator, line, [`Host: ${host}`, ...origins, ...headers], body);
        expect([line, host, origin, answer.status]).toEqual([line, host, origin, expected]);
        expect(answer.head).not.toMatch(/access-control-/i);
        if (expected === 403)
          expect(answer.body).toEqual({ error: { code: "FORBIDDEN", message: expect.any(String) } });
      }
    }
    if (expected === 403) expect(emulator.control.exportState()).toEqual(before);
  };

  it("lets this machine's programs and the emulator's own pages in, on every method", () => matrix(own, 200));

  it("keeps foreign hosts and origins out, on every method, and nothing changes", () => matrix(foreign, 403));

  it.each([
    ["cross-site", 403],
    ["same-site", 403],
    ["same-origin", 200],
    ["none", 200],
  ])("answers a browser's Sec-Fetch-Site: %s with %i", async (site, status) => {
    const emulator = await start({ port: 0 });
    const answer = await request(emulator, "GET /_emulator/state", ["Host: localhost", `Sec-Fetch-Site: ${site}`]);
    expect(answer.status).toBe(status);
  });

  it("guards a base path's controls as well, and lets a request line's own host not pass for the header", async () => {
    const emulator = await start({ port: 0, basePath: "/sms" });
    expect((await request(emulator, "GET /sms/_emulator/health", ["Host: evil.example"])).status).toBe(403);
    expect((await request(emulator, "GET /sms/_emulator/health", ["Host: localhost"])).status).toBe(200);
    const absolute = "GET http://localhost/sms/_emulator/health";
    expect((await request(emulator, absolute, ["Host: evil.example"])).status).toBe(403);
  });

  it("leaves the API itself to every page that knows its address", async () => {
    const emulator = await start({ port: 0 });
    const headers = ["Host: localhost", "Origin: http://evil.example"];
    expect((await request(emulator, "GET /api/core/whoami", headers)).status).toBe(401);
  });
});

describe("the control token", () => {
  it("is asked for on every route when it is set, and compared exactly", async () => {
    const emulator = await start({ controlToken: "the-token" });
    const status = async (method: string, path: string, authorization?: string) => {
      const headers = authorization === undefined ? {} : { authorization };
      return (await call(emulator, method, `/_emulator${path}`, { headers })).status;
    };
    for (const { method, path } of CONTROL_ROUTES) {
      expect([path, await status(method, path)]).toEqual([path, 401]);
      expect([path, await status(method, path, "Bearer the-toke")]).toEqual([path, 401]);
    }
    for (const wrong of ["Bearer the-tokenx", "Bearer ", "Basic the-token", "the-token", "Bearer  the-token"]) {
      expect([wrong, await status("GET", "/health", wrong)]).toEqual([wrong, 401]);
    }
    expect(await status("GET", "/health", "Bearer the-token")).toBe(200);
    expect(await status("GET", "/health", "bearer the-token")).toBe(200);
    expect(await status("GET", "/nowhere")).toBe(401);
  });

  it("is what keeps others out where every name can be the emulator's", async () => {
    const emulator = await start({ host: "0.0.0.0", port: 0, controlToken: "the-token", seed: "ours" });
    const token = "Authorization: Bearer the-token";
    expect((await request(emulator, "GET /_emulator/state", ["Host: emulator:4010"])).status).toBe(401);
    expect((await request(emulator, "GET /_emulator/health", ["Host: emulator:4010", token])).status).toBe(200);
    const page = ["Host: emulator:4010", "Origin: http://evil.example", token];
    expect((await request(emulator, "GET /_emulator/health", page)).status).toBe(403);
  });

  it("comes on top of the host that was bound", async () => {
    const emulator = await start({ host: "emulator.internal", port: null, controlToken: "the-token", seed: "ours" });
    const status = async (host: string) =>
      (await call(emulator, "GET", "/_emulator/health", { headers: { host, authorization: "Bearer the-token" } }))
        .status;
    expect(await status("emulator.internal:4010")).toBe(200);
    expect(await status("other.internal")).toBe(403);
  });
});

describe("bad calls of the control API", () => {
  const deep = `{"media":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
  const NO_UTF8 = new Uint8Array([34, 255, 34]);
  const JSON_TYPE = "application/json";
  const FORM = "application/x-www-form-urlencoded";
  const cases: [what: string, method: string, path: string, status: number, type?: string, (string | Uint8Array)?][] = [
    ["an unknown route", "GET", "/nowhere", 404],
    ["no route at all", "GET", "", 404],
    ["a wrong method", "PUT", "/reset", 405],
    ["a wrong method on a path with a parameter", "DELETE", "/clients/ac_main", 405],
    ["a form", "POST", "/recover", 415, FORM, "since=0"],
    ["a text that is JSON", "POST", "/recover", 415, "text/plain", '{"since":0}'],
    ["an empty form", "POST", "/reset", 415, FORM, ""],
    ["another JSON type", "POST", "/recover", 415, "application/jsonp", "{}"],
    ["a missing body", "POST", "/recover", 400],
    ["broken JSON", "POST", "/recover", 400, JSON_TYPE, "{"],
    ["bytes that are no UTF-8", "POST", "/recover", 400, JSON_TYPE, NO_UTF8],
    ["an array", "POST", "/recover", 400, JSON_TYPE, "[]"],
    ["a body nobody asked for", "POST", "/reset", 400, JSON_TYPE, "{}"],
    ["a query nobody asked for", "GET", "/clock?x=1", 400],
    ["JSON too deep", "POST", "/inbound", 400, JSON_TYPE, deep],
    ["a body over 1 MiB", "POST", "/inbound", 413, JSON_TYPE, " ".repeat(1_048_577)],
  ];

  it.each(cases)("%s: %s %s gets %i, in JSON", async (_, method, path, status, type, body) => {
    const emulator = await start();
    const before = emulator.control.exportState();
    const headers = type === undefined ? {} : { "content-type": type };
    const called = await call(emulator, method, `/_emulator${path}`, { headers, body });
    expect(called.status).toBe(status);
    expect(called.headers.get("content-type")).toBe("application/json");
    expect(called.body).toEqual({ error: { code: expect.stringMatching(/^[A-Z_]+$/), message: expect.any(String) } });
    expect(called.text).not.toMatch(/<|\.ts|at /);
    expect(emulator.control.exportState()).toEqual(before);
  });

  it("get 415 for a body that says nothing of its type", async () => {
    const emulator = await start({ port: 0 });
    const headers = ["Host: localhost", "Content-Length: 11"];
    expect((await request(emulator, "POST /_emulator/recover", headers, '{"since":0}')).status).toBe(415);
  });

  it("are told which methods a route has", async () => {
    const emulator = await start();
    const { headers } = await call(emulator, "PUT", "/_emulator/faults");
    expect(headers.get("allow")).toBe("GET, HEAD, POST, DELETE");
  });

  it("take application/json with parameters", async () => {
    const emulator = await start();
    const headers = { "content-type": "Application/JSON; charset=utf-8" };
    expect((await call(emulator, "POST", "/_emulator/recover", { headers, body: '{"since":0}' })).status).toBe(200);
  });
});
