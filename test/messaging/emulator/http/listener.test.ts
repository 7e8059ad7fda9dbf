/** The listener over real sockets: JSON where an answer is possible, in the shape of its path, and a process that stays up (GEN-2, GEN-10). */

import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../../src/internal/clock.ts";
import { silentLogger } from "../../../../src/internal/logger.ts";
import { writeResponse } from "../../../../src/messaging/emulator/http/listener.ts";
import type { Emulator } from "../../../../src/messaging/emulator/index.ts";
import { connectTo, listen, type RawAnswer, raw, readAll } from "../raw-socket.ts";
import { tokenOf } from "../support.ts";

const CORE = {
  error: { code: expect.stringMatching(/^[A-Z_]+$/), message: expect.stringMatching(/^[A-Z].+\.$/), details: {} },
  requestId: expect.stringMatching(/^req_[0-9a-f]{6}_\d{6}$/),
};

function refuses({ status, head, body }: RawAnswer, expected: number, shape: object = CORE): void {
  expect([status, body]).toEqual([expected, shape]);
  expect(head).toMatch(/^content-type: application\/json\r?$/im);
  expect(head).toMatch(/^cache-control: no-store\r?$/im);
  expect(head).not.toMatch(/node|express/i);
}

async function staysUp(emulator: Emulator): Promise<void> {
  const token = await tokenOf(emulator);
  const response = await fetch(`${emulator.url}/api/core/whoami`, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ apiClientId: "ac_main" });
}

const LAST = "Connection: close\r\n\r\n";

describe("the listener, given what is no request", () => {
  it.each([
    ["a line of noise", "hello, is it me you are looking for?\r\n\r\n", 400],
    ["a TLS greeting", Uint8Array.of(0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3), 400],
    [
      "a length and chunks",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      400,
    ],
    ["a header of 20,000 characters", `GET / HTTP/1.1\r\nHost: localhost\r\nx: ${"y".repeat(20_000)}\r\n\r\n`, 431],
    ["no Host header", `GET /api/core/whoami HTTP/1.1\r\n${LAST}`, 400],
  ])("refuses %s, and stays up", async (_name, bytes, status) => {
    const emulator = await listen();
    expect((await raw(emulator, bytes)).status).toBe(status);
    await staysUp(emulator);
  });

  it.each([
    ["TRACE", `TRACE /api/core/whoami HTTP/1.1\r\nHost: localhost\r\n${LAST}`, 404],
    ["an empty Host header", `GET //api/core/whoami HTTP/1.1\r\nHost:\r\n${LAST}`, 400],
    ["a Host header with a path", `GET /x HTTP/1.1\r\nHost: a/b\r\n${LAST}`, 400],
    ["a Host header with credentials", `GET /x HTTP/1.1\r\nHost: a@b\r\n${LAST}`, 400],
    ["a Host header with a port beyond all", `GET /x HTTP/1.1\r\nHost: a:99999\r\n${LAST}`, 400],
  ])("refuses %s in JSON", async (_name, bytes, status) => {
    const emulator = await listen();
    refuses(await raw(emulator, bytes), status);
    await staysUp(emulator);
  });

  it.each([
    ["in the middle of a body", "POST /api/auth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ngrant"],
    ["in the middle of a header", "POST /api/auth/token HTTP/1.1\r\nHo"],
    [
      "in the middle of a body that is too long",
      `POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n${"x".repeat(2_000_000)}`,
    ],
    ["after CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"],
    ["before its answer", "GET /api/core/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n"],
  ])("bears a client that resets the connection %s", async (_name, bytes) => {
    const emulator = await listen();
    for (let i = 0; i < 20; i++) {
      const socket = await connectTo(emulator);
      await new Promise((resolve) => socket.write(bytes, resolve));
      socket.resetAndDestroy();
    }
    await staysUp(emulator);
  });
});

it("the closed listener ends delayed calls at once, without doing their work", async () => {
  const match = { route: "POST /api/core/numbers/search" };
  const emulator = await listen({ faults: [{ match, action: { type: "delay", ms: 600_000 } }] });
  const headers = { authorization: `Bearer ${await tokenOf(emulator)}` };
  const calls = Array.from({ length: 30 }, () =>
    fetch(`${emulator.url}/api/core/numbers/search`, { method: "POST", headers, body: "{}" }).catch(() => "broken"),
  );
  await expect.poll(() => emulator.control.faults.list()[0]?.played).toBe(30);
  await emulator.close();
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["broken"]));
  const [, ...delayed] = emulator.control.requests();
  expect(delayed.map(({ status }) => status)).toEqual(Array(30).fill(0));
});

describe("the listener, given unusual requests", () => {
  const WHOAMI = "/api/core/whoami";

  const get = (path: string, ...lines: string[]) => [`GET ${path} HTTP/1.1`, ...lines].join("\r\n");
  const HOST = "Host: localhost";
  const CLOSE = "Connection: close";

  it.each([
    ["an upgrade to web sockets", get(WHOAMI, HOST, "Upgrade: websocket", "Connection: upgrade, close")],
    ["an upgrade to HTTP/2", get(WHOAMI, HOST, "Upgrade: h2c", "Connection: upgrade, close")],
    ["an absolute address", get(`http://elsewhere.example${WHOAMI}`, HOST, CLOSE)],
    ["HTTP/1.0 without a Host header", `GET ${WHOAMI} HTTP/1.0`],
    ["a body with GET", get(WHOAMI, HOST, "Content-Length: 2", CLOSE)],
    ["an IPv6 Host header", get(WHOAMI, "Host: [::1]:4010", CLOSE)],
  ])("answers %s as usual", async (_name, head) => {
    const emulator = await listen();
    const authorization = `Authorization: Bearer ${await tokenOf(emulator)}`;
    const answer = await raw(emulator, `${head}\r\n${authorization}\r\n\r\n${head.includes("Length") ? "{}" : ""}`);
    expect([answer.status, answer.body.apiClientId]).toEqual([200, "ac_main"]);
  });

  it("takes a path of two slashes for a path, not for a host (GEN-7)", async () => {
    const emulator = await listen();
    refuses(await raw(emulator, `GET //elsewhere.example${WHOAMI} HTTP/1.1\r\nHost: localhost\r\n${LAST}`), 404);
    refuses(await raw(emulator, `OPTIONS * HTTP/1.1\r\nHost: localhost\r\n${LAST}`), 404);
  });

  it("takes two Authorization headers for none that is valid (AUT-2)", async () => {
    const emulator = await listen();
    const header = `Authorization: Bearer ${await tokenOf(emulator)}\r\n`;
    refuses(await raw(emulator, `GET ${WHOAMI} HTTP/1.1\r\nHost: localhost\r\n${header}${header}${LAST}`), 401);
  });
});

const MIB = 1_048_576;
const SEARCH = "/api/core/numbers/search";

function post(emulator: Emulator, token: string, body: string | Uint8Array): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return fetch(`${emulator.url}${SEARCH}`, { method: "POST", headers, body: body as string });
}

/** A search of exactly so many bytes. */
function searchOf(length: number): string {
  return `{"city":"${"x".repeat(length - 11)}"}`;
}

describe("bodies over a socket", () => {
  it("reads a body of 1 MiB, and refuses one byte more (GEN-10)", async () => {
    const emulator = await listen();
    const token = await tokenOf(emulator);
    const fits = await post(emulator, token, searchOf(MIB));
    expect(await fits.text()).toContain("state"); // Read and understood: a city needs a state.
    const long = await post(emulator, token, searchOf(MIB + 1));
    expect(long.status).toBe(400);
    expect(await long.json()).toMatchObject({
      error: { code: "INVALID_REQUEST", message: expect.stringMatching("1 MiB") },
    });
  });

  it("answers while more is on its way, and reads the next request on the same connection (GEN-10)", async () => {
    const emulator = await listen();
    const token = await tokenOf(emulator);
    const socket = await connectTo(emulator);
    const head = `POST ${SEARCH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${3 * MIB}\r\n\r\n`;
    socket.write(`${head}${"x".repeat(2 * MIB)}`);
    const [first] = await once(socket, "data");
    expect(String(first)).toMatch(/^HTTP\/1\.1 400 /);
    socket.write("x".repeat(MIB));
    const rest = readAll(socket);
    socket.write("GET /api/core/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    expect((await rest).head).toMatch(/HTTP\/1\.1 401 /);
  });

  it("reads chunked bodies, and ones that come byte by byte", async () => {
    const emulator = await listen();
    const body = `grant_type=client_credentials&client_id=${emulator.clientId}&client_secret=${emulator.clientSecret}`;
    const headers = { "content-type": "application/x-www-form-urlencoded", connection: "close" };
    const outgoing = request(`${emulator.url}/api/auth/token`, { method: "POST", headers });
    for (const byte of body) outgoing.write(byte);
    outgoing.end();
    const [response] = await once(outgoing, "response");
    expect(response.statusCode).toBe(200);
    response.resume();
  });
});

it("a streamed answer leaves no listener behind, however often it waits for its reader", async () => {
  const listeners: number[] = [];
  let outgoing: ServerResponse | undefined;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      listeners.push(["close", "drain", "error"].reduce((sum, name) => sum + (outgoing?.listenerCount(name) ?? 0), 0));
      if (listeners.length > 30) controller.close();
      else controller.enqueue(Buffer.alloc(MIB));
    },
  });
  const server = createServer((_, response) => {
    outgoing = response;
    void writeResponse(new Response(body), response);
  });
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect((await response.arrayBuffer()).byteLength).toBe(30 * MIB);
  // The first pieces are asked for ahead.
  expect(Math.max(...listeners.slice(5))).toBe(Math.min(...listeners.slice(5)));
});

const OAUTH = { error: expect.stringMatching(/^[a-z_]+$/), error_description: expect.stringMatching(/^[A-Z].+\.$/) };
const CONTROL = { error: { code: expect.stringMatching(/^[A-Z_]+$/), message: expect.any(String) } };
const TOKEN = "/api/auth/token";

describe("the listener's own refusals", () => {
  it.each([
    ["a Host that is none", `POST ${TOKEN}?a=b HTTP/1.1\r\nHost: a/b\r\n${LAST}`, 400],
    ["a roundabout path", `POST /x/../api/auth/token HTTP/1.1\r\nHost: a/b\r\n${LAST}`, 400],
    ["an absolute address", `POST http://a.example${TOKEN} HTTP/1.1\r\nHost: a/b\r\n${LAST}`, 400],
    ["TRACE", `TRACE ${TOKEN} HTTP/1.1\r\nHost: localhost\r\n${LAST}`, 400],
    ["a foreign Host", `POST ${TOKEN} HTTP/1.1\r\nHost: evil.example\r\n${LAST}`, 403],
  ] as const)("have OAuth's shape on the token path: %s (GEN-3)", async (_name, bytes, status) => {
    refuses(await raw(await listen(), bytes), status, { ...OAUTH, error: "invalid_request" });
  });

  it("have OAuth's shape on the token path behind a base path, and the wrapper on all others (GEN-2, GEN-3)", async () => {
    const emulator = await listen({ basePath: "/sms" });
    const shapes = {
      [`/sms${TOKEN}`]: OAUTH,
      "/sms/api/core/whoami": CORE,
      [TOKEN]: CORE,
      "/sms/_emulator/health": CONTROL,
    };
    for (const [path, shape] of Object.entries(shapes))
      refuses(await raw(emulator, `POST ${path} HTTP/1.1\r\nHost: a/b\r\n${LAST}`), 400, shape);
  });

  it.each([
    [TOKEN, { error: "server_error", error_description: expect.any(String) }],
    ["/api/core/whoami", CORE],
    ["/_emulator/clock", CONTROL],
  ])("are a 500 in the shape of %s when the emulator itself fails, whatever the logger does", async (path, shape) => {
    let fails = false;
    const now = () => {
      if (fails) throw new Error("no time");
      return systemClock.now();
    };
    const error = () => {
      throw new Error("the disk is full");
    };
    const emulator = await listen({
      clock: "real",
      systemClock: { ...systemClock, now, monotonic: now },
      logger: { ...silentLogger, error },
    });
    fails = true;
    try {
      const answer = await raw(emulator, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${LAST}`);
      refuses(answer, 500, shape);
    } finally {
      fails = false;
    }
  });
});

describe("a page whose name was made to point here (DNS rebinding)", () => {
  const request = (path: string, host: string) => `POST ${path} HTTP/1.1\r\nHost: ${host}\r\n${LAST}`;

  it.each([
    ["/api/core/messages/send", { ...CORE, error: { ...CORE.error, code: "FORBIDDEN" } }],
    ["/", CORE],
    ["/_emulator/reset", { error: { code: "FORBIDDEN", message: expect.any(String) } }],
  ])("is refused at %s, with what to do about it", async (path, shape) => {
    const emulator = await listen();
    for (const host of ["evil.example", "localhost.evil.example:4010", "192.168.1.5", "[::2]", "0.0.0.0"]) {
      const answer = await raw(emulator, request(path, host));
      refuses(answer, 403, shape);
      expect(answer.text).toMatch(/Host header.*localhost.*option \\"host\\"/);
    }
    expect(emulator.control.requests()).toEqual([]);
  });

  it("is refused before its body is read", async () => {
    const head = "POST /api/core/messages/send HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n";
    const answer = await raw(await listen(), `${head}${LAST}{`);
    expect(answer.status).toBe(403);
  });

  it("is not looked for beyond loopback, where names cannot be known, nor in handle", async () => {
    const emulator = await listen({ host: "0.0.0.0", controlToken: "the-token", seed: "of-its-own" });
    expect((await raw(emulator, request("/api/core/whoami", "emulator:4010"))).status).toBe(401);
    const own = await listen();
    expect((await own.handle(new Request("http://sms.example/api/core/whoami"))).status).toBe(401);
  });
});
