/** The listener over real sockets: JSON where an answer is possible, and a process that stays up (GEN-2, GEN-10). */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../src/emulator/index.ts";
import { connectTo, listen, type RawAnswer, raw } from "./raw-socket.ts";
import { tokenOf } from "./support.ts";

const WRAPPER = {
  error: { code: expect.any(String), message: expect.stringMatching(/^[A-Z].+\.$/), details: {} },
  requestId: expect.stringMatching(/^req_[0-9a-f]{6}_\d{6}$/),
};

function refuses({ status, head, body }: RawAnswer, expected: number): void {
  expect(body).toEqual(WRAPPER);
  expect(status).toBe(expected);
  expect(head).toMatch(/^content-type: application\/json\r?$/im);
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

describe("the listener, closed", () => {
  it("ends delayed calls at once, without doing their work", async () => {
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
