/** What the flags of `oncehook emulator` mean, as a table. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Command } from "commander";
import { afterAll, describe, expect, it, vi } from "vitest";
import { SetupError } from "../../../src/errors.ts";
import { createEmulator, type EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { settingsFrom } from "../../../src/messaging/emulator/options.ts";
import {
  addEmulatorFlags,
  type EmulatorInput,
  emulatorInput,
  FLAGS,
  flagOf,
} from "../../../src/tools/cli/emulator-options.ts";

function read(...argv: string[]): EmulatorInput {
  const command = addEmulatorFlags(new Command("emulator"))
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  return emulatorInput(command.parse(argv, { from: "user" }));
}

const DUPLICATE = { match: { webhook: true }, action: { type: "duplicate" } } as const;
const GATEWAY = { match: { route: "GET /api/core/numbers" }, action: { type: "badGateway" }, times: 2 } as const;

const EXPORT = join(mkdtempSync(join(tmpdir(), "oncehook-import-")), "state.json");
writeFileSync(EXPORT, JSON.stringify({ version: 1, tables: {} }));
afterAll(() => rmSync(dirname(EXPORT), { recursive: true }));

const FAULTS = `--fault ${JSON.stringify(DUPLICATE)} --fault ${JSON.stringify(GATEWAY).replaceAll(" ", "\\u0020")}`;
const OPEN = { port: 8080, host: "0.0.0.0", controlToken: "t", seed: "s" };
const START = { startAt: 1_767_225_600_000 };

const TABLE: readonly (readonly [argv: string, options: EmulatorOptions])[] = [
  ["--port 0", { port: 0 }],
  ["--port=8080 --host 0.0.0.0 --control-token t --seed s", OPEN],
  ["--base-path /sms", { basePath: "/sms" }],
  [`--import ${EXPORT} --keep 10000`, { import: { version: 1, tables: {} }, keep: 10_000 }],
  ["--clock virtual", { clock: "virtual" }],
  ["--clock x60", { clock: "x60" }],
  ["--start-at 1767225600000", START],
  ["--start-at 2026-01-01T00:00:00Z", START],
  ["--start-at 2026-01-01T01:00+01:00", START],
  ["--timestamp-clock emulator", { timestampClock: "emulator" }],
  ["--inbound-url http://127.0.0.1:3000/in", { inboundUrl: "http://127.0.0.1:3000/in" }],
  ["--delivery-url http://127.0.0.1:3000/out", { deliveryUrl: "http://127.0.0.1:3000/out" }],
  ["--secret s", { webhookSecret: "s" }],
  ["--client-id me --client-secret s", { clientId: "me", clientSecret: "s" }],
  ["--profile hostile", { profile: "hostile" }],
  ["--lifecycle manual --no-magic", { lifecycle: "manual", magic: false }],
  [FAULTS, { faults: [DUPLICATE, GATEWAY] }],
  [
    "--unspecified timestampUnit=s --unspecified overlapMs=5 --unspecified sameSequence=true",
    { unspecified: { timestampUnit: "s", overlapMs: 5, sameSequence: true } },
  ],
  [
    "--unspecified allRejected=400 --unspecified webhooks.routes=404 --unspecified webhooks.contentType=text/x;a=b",
    { unspecified: { allRejected: 400, "webhooks.routes": "404", "webhooks.contentType": "text/x;a=b" } },
  ],
  [
    "--allow-private-targets 10.0.0.0/8 --allow-private-targets 172.16.0.0/12",
    { allowPrivateTargets: ["10.0.0.0/8", "172.16.0.0/12"] },
  ],
  ["--allow-public-targets --attempt-timeout 500", { allowPublicTargets: true, attemptTimeoutMs: 500 }],
];

describe("emulatorInput()", () => {
  it("listens on port 4010 and runs with the real clock unless told otherwise", () => {
    expect(read()).toEqual({ options: { port: 4010, clock: "real" }, json: false, quiet: false, exec: undefined });
  });

  it.each(TABLE)("reads %s", (argv, expected) => {
    const { options } = read(...argv.split(" "));
    expect(options).toEqual({ port: 4010, clock: "real", ...expected });
    expect(() => settingsFrom(options)).not.toThrow();
  });

  it("reads the command's own flags", () => {
    expect(read("--json", "--exec", "node app.js")).toMatchObject({ json: true, exec: "node app.js" });
    expect(read("--quiet", "--debug")).toMatchObject({ json: false, quiet: true });
  });

  it.each([
    ["--port http", /^--port takes a whole number, not "http"\.$/],
    ["--port -1", /^--port takes a whole number, not "-1"/],
    ["--keep 1e3", /^--keep takes a whole number/],
    ["--attempt-timeout 10s", /^--attempt-timeout takes a whole number/],
    ["--start-at yesterday", /^--start-at takes epoch milliseconds or a time/],
    ["--fault {", /^--fault takes a rule as JSON/],
    ["--unspecified timestampUnit", /^--unspecified takes name=value/],
    ["--unspecified =s", /^--unspecified takes name=value/],
    ["--unspecified timestampUnits=s", /Did you mean "timestampUnit"/],
  ])("refuses %s with what to write instead", (argv, message) => {
    const reading = () => read(...argv.split(" "));
    expect(reading).toThrow(SetupError);
    expect(reading).toThrow(message);
  });

  it("takes secrets from the environment, and from flags before it", () => {
    vi.stubEnv("ONCEHOOK_CLIENT_SECRET", "env-client");
    vi.stubEnv("ONCEHOOK_WEBHOOK_SECRET", "env-webhook");
    vi.stubEnv("ONCEHOOK_CONTROL_TOKEN", "env-token");
    try {
      const given = { clientSecret: "env-client", webhookSecret: "env-webhook", controlToken: "env-token" };
      expect(read().options).toMatchObject(given);
      expect(read("--secret", "flag").options).toMatchObject({ clientSecret: "env-client", webhookSecret: "flag" });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe("FLAGS", () => {
  it("has a flag for every option of createEmulator() that is no code", async () => {
    const error: unknown = await createEmulator({ qqqqqqqqqqqqqqqqqqqqqqqqqqqq: 1 } as EmulatorOptions).catch((e) => e);
    const known = /Known: (.*)\.$/.exec((error as Error).message)?.[1]?.split(", ") ?? [];
    expect(known.length).toBeGreaterThan(20);
    const code = ["systemClock", "logger"];
    expect(Object.keys(FLAGS).sort()).toEqual(known.filter((name) => !code.includes(name)).sort());
  });

  it("is covered by the table above", () => {
    const read = new Set(TABLE.flatMap(([, options]) => Object.keys(options)));
    expect(Object.keys(FLAGS).filter((name) => !read.has(name))).toEqual([]);
  });

  it("names the flag of an option", () => {
    const flags = (["webhookSecret", "startAt", "magic", "logger"] as const).map(flagOf);
    expect(flags).toEqual(["--secret", "--start-at", "--no-magic", undefined]);
  });
});
