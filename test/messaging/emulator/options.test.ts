/** Options of `createEmulator()`: every mistake is told before anything starts, and what is listened on. */
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.ts";
import { type Logger, silentLogger } from "../../../src/internal/logger.ts";
import { createEmulator, type EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { settingsFrom } from "../../../src/messaging/emulator/options.ts";

/** As a caller without types gives them. */
const given = (options: Record<string, unknown>) => settingsFrom(options as EmulatorOptions);

/** What an emulator beyond loopback needs. */
const beyond = { controlToken: "t", seed: "ours" };

type Row = readonly [option: string, value: unknown, told: RegExp];
const rows = (option: string, values: readonly unknown[], told = new RegExp(`"${option}"`)): Row[] =>
  values.map((value) => [option, value, told]);

describe("an option", () => {
  it.each<Row>([
    ...rows("basePath", [5, null]),
    ...rows("basePath", ["/.", "/..", "/sms/..", "/./sms", "/sms/../v1/"], /"basePath" must be .*without/),
    ...rows("faults", [{}, null]),
    ...rows("systemClock", [{}, null]),
    ...rows("clock", [null, 60, "x0"]),
    ...rows("logger", [5, null, { warn() {} }]),
    ...rows("allowPrivateTargets", ["10.0.0.0/8", [10], null]),
    ...rows("allowPublicTargets", [1]),
    ...rows("unspecified", [null], /unspecified/),
    ...rows("unspecified", [{ rejectionCode: "opted out" }], /rejectionCode/),
    ...rows("unspecified", [{ replay: "never" }], /"replay".*must be one of "stored", "current"/),
    ...rows("magic", ["no", null]),
    ...rows(
      "clientId",
      ["client_other", "client_inactive", "client_inactive_account"],
      /"clientId" must be .*client_other/,
    ),
    ...rows(
      "controlToken",
      ["käse", "to\nken", " token", "token ", "\u007f", "\u{1f600}"],
      /"controlToken" must be .* header/,
    ),
    ...rows(
      "host",
      ["0.", "1.2.3.4.5", "4294967296", "a b", "http://localhost", "localhost:80", "[localhost]", "a/b", 5],
      /"host" must be/,
    ),
  ])("%s refuses %j, and is named", (option, value, told) => {
    const options = { ...beyond, [option]: value };
    expect(() => given(options)).toThrow(SetupError);
    expect(() => given(options)).toThrow(told);
  });

  it.each([
    ...["/.well-known", "/v1.2", "/...", ""].map((path) => ["basePath", path, path] as const),
    ["basePath", "/sms/", "/sms"],
    ...["t", "two words", '~!{}"\\'].map((token) => ["controlToken", token, token] as const),
    ...["0", "0x0", "0.0", "::ffff:0.0.0.0"].map((host) => ["host", host, "0.0.0.0"] as const),
    ...["::0", "0:0:0:0:0:0:0:0", "[::]"].map((host) => ["host", host, "::"] as const),
    ["host", "127.1", "127.0.0.1"],
    ["host", "LOCALHOST", "localhost"],
    ["host", "0:0:0:0:0:0:0:1", "::1"],
    ["host", "my-host.example", "my-host.example"],
  ] as const)("%s reads %j as %j", (option, value, read) => {
    expect(given({ ...beyond, [option]: value })[option]).toBe(read);
  });
});

describe("option host", () => {
  it.each(["0.0.0.0", "::", "192.168.1.5", "my-host.example"])("needs token and seed beyond loopback: %s", (host) => {
    expect(() => given({ host, seed: "ours" })).toThrow(/"controlToken" is required/);
    expect(() => given({ host, controlToken: "t" })).toThrow(/"seed" is required/);
    expect(() => given({ host, controlToken: "t", seed: "oncehook" })).toThrow(/"seed"/);
    expect(given({ host, ...beyond }).host).toBe(host);
  });

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
