/** What the listener itself refuses: in the error shape of the path that was asked for, and only for this machine's names. */
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { listen, type RawAnswer, raw } from "./raw-socket.ts";

const OAUTH = { error: expect.stringMatching(/^[a-z_]+$/), error_description: expect.stringMatching(/^[A-Z].+\.$/) };
const CORE = {
  error: { code: expect.stringMatching(/^[A-Z_]+$/), message: expect.stringMatching(/^[A-Z].+\.$/), details: {} },
  requestId: expect.stringMatching(/^req_/),
};
const CONTROL = { error: { code: expect.stringMatching(/^[A-Z_]+$/), message: expect.any(String) } };
const TOKEN = "/api/auth/token";
const LAST = "Connection: close\r\n\r\n";

function refuses({ status, head, body }: RawAnswer, expected: [status: number, body: object]): void {
  expect([status, body]).toEqual(expected);
  expect(head).toMatch(/^content-type: application\/json\r?$/im);
  expect(head).toMatch(/^cache-control: no-store\r?$/im);
}

describe("the listener's own refusals", () => {
  it.each([
    ["a Host that is none", `POST ${TOKEN}?a=b HTTP/1.1\r\nHost: a/b\r\n${LAST}`, [400, OAUTH]],
    ["a roundabout path", `POST /x/../api/auth/token HTTP/1.1\r\nHost: a/b\r\n${LAST}`, [400, OAUTH]],
    ["an absolute address", `POST http://a.example${TOKEN} HTTP/1.1\r\nHost: a/b\r\n${LAST}`, [400, OAUTH]],
    [
      "TRACE",
      `TRACE ${TOKEN} HTTP/1.1\r\nHost: localhost\r\n${LAST}`,
      [400, { error: "invalid_request", error_description: "The token route takes POST." }],
    ],
    [
      "a foreign Host",
      `POST ${TOKEN} HTTP/1.1\r\nHost: evil.example\r\n${LAST}`,
      [403, { ...OAUTH, error: "invalid_request" }],
    ],
  ] as const)("have OAuth's shape on the token path: %s (GEN-3)", async (_name, bytes, [status, body]) => {
    refuses(await raw(await listen(), bytes), [status, body]);
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
      refuses(await raw(emulator, `POST ${path} HTTP/1.1\r\nHost: a/b\r\n${LAST}`), [400, shape]);
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
      refuses(answer, [500, shape]);
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
      refuses(answer, [403, shape]);
      expect(answer.text).toMatch(/Host header.*localhost.*option \\"host\\"/);
    }
    expect(emulator.control.requests()).toEqual([]);
  });

  it("is refused before its body is read", async () => {
    const head = "POST /api/core/messages/send HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n";
    const answer = await raw(await listen(), `${head}${LAST}{`);
    expect(answer.status).toBe(403);
  });

  it("is no obstacle for loopback names, nor for HTTP/1.0 without one", async () => {
    const emulator = await listen();
    for (const host of ["localhost", "LOCALHOST:1", "127.0.0.1:4010", "127.8.9.1", "[::1]:4010"])
      expect([host, (await raw(emulator, request("/api/core/whoami", host))).status]).toEqual([host, 401]);
    expect((await raw(emulator, `GET /api/core/whoami HTTP/1.0\r\n\r\n`)).status).toBe(401);
  });

  it("is not looked for beyond loopback, where names cannot be known, nor in handle", async () => {
    const emulator = await listen({ host: "0.0.0.0", controlToken: "the-token", seed: "of-its-own" });
    expect((await raw(emulator, request("/api/core/whoami", "emulator:4010"))).status).toBe(401);
    const own = await listen();
    expect((await own.handle(new Request("http://sms.example/api/core/whoami"))).status).toBe(401);
  });
});
