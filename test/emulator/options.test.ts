/** Options of `createEmulator()`: every mistake is told before anything starts, and what is listened on. */
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { createEmulator, type EmulatorOptions } from "../../src/emulator/index.ts";
import { settingsFrom } from "../../src/emulator/options.ts";
import { SetupError } from "../../src/errors.ts";
import { type Logger, silentLogger } from "../../src/internal/logger.ts";

/** As a caller without types gives them. */
const given = (options: Record<string, unknown>) => settingsFrom(options as EmulatorOptions);

describe("an option of the wrong kind", () => {
  it.each([
    ["basePath", 5],
    ["basePath", null],
    ["faults", {}],
    ["faults", null],
    ["systemClock", {}],
    ["systemClock", null],
    ["clock", null],
    ["clock", 60],
    ["clock", "x0"],
    ["logger", 5],
    ["logger", null],
    ["logger", { warn() {} }],
    ["allowPrivateTargets", "10.0.0.0/8"],
    ["allowPrivateTargets", [10]],
    ["allowPrivateTargets", null],
    ["unspecified", null],
    ["magic", "no"],
    ["magic", null],
    ["allowPublicTargets", 1],
  ])("is refused by its name: %s as %j", (option, value) => {
    expect(() => given({ [option]: value })).toThrow(SetupError);
    expect(() => given({ [option]: value })).toThrow(option === "unspecified" ? /unspecified/ : `"${option}"`);
  });
});

describe("option basePath", () => {
  it.each(["/.", "/..", "/sms/..", "/./sms", "/sms/../v1/"])("refuses %j, which no request would reach", (basePath) => {
    expect(() => given({ basePath })).toThrow(SetupError);
    expect(() => given({ basePath })).toThrow(/"basePath" must be .*without/);
  });

  it.each(["/.well-known", "/v1.2", "/...", "/sms/", ""])("takes %j", (basePath) => {
    expect(given({ basePath }).basePath).toBe(basePath.replace(/\/$/, ""));
  });
});

describe("option clientId", () => {
  it.each(["client_other", "client_inactive", "client_inactive_account"])(
    "refuses %j, which is another client's",
    (clientId) => {
      expect(() => given({ clientId })).toThrow(SetupError);
      expect(() => given({ clientId })).toThrow(/"clientId" must be .*client_other/);
    },
  );
});

describe("option controlToken", () => {
  it.each(["käse", "to\nken", " token", "token ", "\u007f", "\u{1f600}"])(
    "refuses %j, which no header can carry",
    (token) => {
      expect(() => given({ controlToken: token })).toThrow(/"controlToken" must be .* header/);
    },
  );

  it.each(["t", "two words", '~!{}"\\'])("takes %j", (token) => {
    expect(given({ controlToken: token }).controlToken).toBe(token);
  });
});

describe("option host", () => {
  const beyond = { controlToken: "t", seed: "ours" };

  it.each([
    ["0", "0.0.0.0"],
    ["0x0", "0.0.0.0"],
    ["0.0", "0.0.0.0"],
    ["::0", "::"],
    ["0:0:0:0:0:0:0:0", "::"],
    ["[::]", "::"],
    ["::ffff:0.0.0.0", "0.0.0.0"],
    ["127.1", "127.0.0.1"],
    ["LOCALHOST", "localhost"],
    ["0:0:0:0:0:0:0:1", "::1"],
    ["my-host.example", "my-host.example"],
  ])("reads %s as %s", (written, host) => {
    expect(given({ host: written, ...beyond }).host).toBe(host);
  });

  it.each(["0.", "1.2.3.4.5", "4294967296", "a b", "http://localhost", "localhost:80", "[localhost]", "a/b", 5])(
    "refuses %j",
    (host) => {
      expect(() => given({ host, ...beyond })).toThrow(/"host" must be/);
    },
  );

  it.each(["0.0.0.0", "::", "192.168.1.5", "my-host.example"])(
    "asks beyond loopback for a token and a seed: %s",
    (host) => {
      expect(() => given({ host, seed: "ours" })).toThrow(/"controlToken" is required/);
      expect(() => given({ host, controlToken: "t" })).toThrow(/"seed" is required/);
      expect(() => given({ host, controlToken: "t", seed: "oncehook" })).toThrow(/"seed"/);
      expect(given({ host, ...beyond }).host).toBe(host);
    },
  );

  it.each(["localhost", "127.0.0.1", "127.8.9.1", "::1"])("asks for neither on loopback: %s", (host) => {
    expect(given({ host }).host).toBe(host);
  });

  it.each([
    ["0", "127.0.0.1"],
    ["::0", "[::1]"],
  ])("has an address to connect to when it is everywhere: %s", async (host, name) => {
    const emulator = await createEmulator({ host, ...beyond, logger: silentLogger });
    try {
      expect(new URL(emulator.url).hostname).toBe(name);
      const headers = { authorization: "Bearer t" };
      expect((await fetch(`${emulator.url}/_emulator/health`, { headers })).status).toBe(200);
      expect(await statusOf(emulator.url, "a-name-of-this-machine.example")).toBe("200");
    } finally {
      await emulator.close();
    }
  });

  it.each(["192.0.2.1", "no-such-host.invalid"])("is blamed when nothing can listen on it: %s", async (host) => {
    const options = { host, ...beyond, logger: silentLogger };
    await expect(createEmulator(options)).rejects.toMatchObject({ code: "invalid_option", fields: { option: "host" } });
    await expect(createEmulator(options)).rejects.toThrow(/"host"/);
  });
});

it("option logger is guarded: one that throws fails nothing", () => {
  const broken = () => {
    throw new Error("full");
  };
  const logger: Logger = { debug: broken, info: broken, warn: broken, error: broken };
  expect(() => settingsFrom({ logger }).logger.error({}, "text")).not.toThrow();
});

/** The status of a control call with this Host header. */
function statusOf(url: string, host: string): Promise<string | undefined> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ""));
  socket.end(`GET /_emulator/health HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer t\r\nConnection: close\r\n\r\n`);
  return new Promise((resolve, reject) => {
    socket.once("data", (head) => resolve(String(head).split(" ")[1]));
    socket.once("error", reject);
  });
}
