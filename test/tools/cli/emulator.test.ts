/** `oncehook emulator`: as a real process, what it prints and how it ends; in this one, what it refuses. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { emulatorCommand } from "../../../src/tools/cli/emulator.ts";
import { runHere } from "./here.ts";
import { newFolder, newServer, startHanging } from "./place.ts";
import { type Announced, COMMAND, Running, runToEnd } from "./running.ts";

const text = expect.stringMatching(/./);
const CREDENTIALS = { apiClientId: text, clientId: text, clientSecret: text };
const NUMBER_ID = expect.stringMatching(/^num_/);

describe("oncehook emulator, with the flags of every command,", () => {
  it("prints no hints with --quiet", async () => {
    const running = new Running(["emulator", "--quiet", "--port=0"]);
    await running.printed(/client id +client_main\n[\s\S]*foreign +num_\w+\n/);
    running.signal("SIGTERM");
    const { code, output, errors } = await running.exit;
    expect([code, output, errors]).toEqual([0, expect.not.stringMatching(/Try:|Ctrl-C/), ""]);
  });

  it("prints the stack of a mistake with --debug", async () => {
    const { code, errors } = await runToEnd(["emulator", "--port=http", "--debug"]);
    expect([code, errors]).toEqual([2, expect.stringMatching(/^error: --port takes .*\n[\s\S]*\n +at /)]);
  });
});

describe("oncehook emulator --json", () => {
  it("prints exactly one line, the object that programs read", async () => {
    const running = new Running(["emulator", "--json", "--port", "0"]);
    const announced = await running.announced();
    expect(announced).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      apiClientId: "ac_main",
      clientId: "client_main",
      clientSecret: expect.stringMatching(/^.{16,}$/),
      webhookSecret: expect.stringMatching(/^.{16,}$/),
      fixtures: {
        clients: { main: CREDENTIALS, other: CREDENTIALS, inactive: CREDENTIALS, inactiveAccount: CREDENTIALS },
        numbers: {
          ...{ full: NUMBER_ID, noCampaign: NUMBER_ID, smsOff: NUMBER_ID },
          ...{ mmsOff: NUMBER_ID, inactive: NUMBER_ID, foreign: NUMBER_ID },
        },
      },
    });
    const { url, fixtures } = announced;
    const answers = await Promise.all(Object.values(fixtures.clients).map((client) => askToken(url, client)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 401]);
    running.signal("SIGTERM");
    const { code, output, errors } = await running.exit;
    expect([code, output, errors]).toEqual([0, `${JSON.stringify(announced)}\n`, ""]);
  });
});

describe("oncehook emulator", () => {
  it("prints where it is, who one is there, and a command that works as it stands", async () => {
    const secret = 'it\'s "quoted" & $HOME';
    const running = new Running(["emulator", "--port=0", "--base-path=/sms"], { ONCEHOOK_CLIENT_SECRET: secret });
    const [text, command = ""] = await running.printed(/Try:\n([\s\S]*?)\n\n.*ends it\.\n/);
    expect(text).toContain("Ctrl-C");
    expect(running.output).toMatch(/^The service is emulated at http:\/\/127\.0\.0\.1:\d+\/sms\n/);
    for (const said of ["client_main", secret, "num_000001", "/sms/_emulator", "webhook secret"])
      expect(running.output).toContain(said);
    const answer = execFileSync("sh", ["-c", command], { encoding: "utf8" });
    expect(JSON.parse(answer)).toMatchObject({ token_type: "bearer", expires_in: 3600 });
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const)(
    "closes and ends with 0 on %s",
    { tags: "full" },
    async (signal) => {
      const running = new Running(["emulator", "--port=0"]);
      const [url] = await running.printed(/http:\S+/);
      running.signal(signal);
      expect(await running.exit).toMatchObject({ code: 0, signal: null, errors: "" });
      await expect(fetch(url)).rejects.toThrow();
    },
  );

  it.each([
    [[], /^The service is emulated at (\S+)\n/],
    [["--json"], /^\{"url":"(.*?)",.*\}\n$/],
  ])("ends with what runs beside it, and with its code: %j", async (flags, pattern) => {
    const { code, output, errors } = await runHere(emulatorCommand(), ["--port=0", "--exec=exit 3", ...flags]);
    expect([code, errors]).toEqual([3, ""]);
    const [, url = ""] = pattern.exec(output) ?? [];
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  });

  it("waits for no attempt when it is told to end", { tags: "full" }, async () => {
    const hanging = await startHanging();
    const args = ["emulator", "--json", "--port=0", "--lifecycle=instant", "--attempt-timeout=600000"];
    const running = new Running([...args, `--delivery-url=${hanging.url}`]);
    await send(await running.announced());
    await hanging.asked;
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 0, errors: "" });
  });

  it("says in one line that a port is in use, and ends with 1", async () => {
    const { port } = new URL(await newServer());
    const { code, output, errors } = await runHere(emulatorCommand(), [`--port=${port}`]);
    const message = `Cannot listen on 127.0.0.1, port ${port}: it is in use. Choose another --port, or 0 for any free one.`;
    expect([code, output, errors]).toEqual([1, "", `error: ${message}\n`]);
  });

  it.each([
    ["an address of another machine", "192.0.2.1", "it is not an address of this machine"],
    ["a name without an address", "nosuchhost.invalid", "it is not an address of this machine"],
  ])("blames --host for %s, and ends with 1", async (_, host, reason) => {
    const args = ["--port=0", `--host=${host}`, "--control-token=t", "--seed=s"];
    const { code, output, errors } = await runHere(emulatorCommand(), args);
    const message = `Cannot listen on ${host}, port 0: ${reason}. Choose another --host; 127.0.0.1 is the default.`;
    expect([code, output, errors]).toEqual([1, "", `error: ${message}\n`]);
  });

  it.each([
    ["emulator --json --port=0", 141],
    ["emulator --port=0 --exec='echo started >&2'", 141],
    ["--help", 0],
  ])("says nothing of it when nobody reads what %s prints", { tags: "full" }, async (args, code) => {
    // The reader has ended before the command starts.
    const script = `{ until [ -e gone ]; do sleep 0.1; done; "$0" "$1" ${args}; echo $? >code; } | { exec <&-; : >gone; }; cat code`;
    const { stdout, stderr } = spawnSync("sh", ["-c", script, process.execPath, COMMAND], {
      cwd: newFolder(),
      encoding: "utf8",
      timeout: 20_000,
    });
    expect([stdout, stderr]).toEqual([`${code}\n`, ""]);
  });

  it.skipIf(!existsSync("/dev/full"))("says why its first line cannot be written", { tags: "full" }, async () => {
    const command = ["-c", '"$0" "$1" emulator --port=0 >/dev/full', process.execPath, COMMAND];
    const { status, stderr } = spawnSync("sh", command, { encoding: "utf8", timeout: 20_000 });
    expect([status, stderr]).toEqual([1, "error: Cannot write to standard output: ENOSPC.\n"]);
  });

  it.each([
    ["--profile=nice", /^error: Option --profile must be one of "default", "strict", "hostile"; it is "nice"\.\n$/],
    ["--base-path=sms", /^error: Option --base-path must be a path such as "\/sms"; it is "sms"\.\n$/],
    ["--secret=", /^error: Option --secret must be a text that is not empty\.\n$/],
    ["--inbound-url=me:pass@app", /^error: Option --inbound-url must be an http or https URL\.\n$/],
    ["--unspecified=overlapMs=-1", /^error: Option --unspecified overlapMs must be a whole number .*; it is "-1"\.\n$/],
    ["--unspecified=overlap=1", /^error: --unspecified has no option "overlap"\. Did you mean "overlapMs"\?\n$/],
    ["--allow-private-targets=8.8.8.0/24", /, or set --allow-public-targets\.\n$/],
    ["--exec=", /^error: --exec takes a shell command\.\n$/],
    ["--exec=  ", /^error: --exec takes a shell command\.\n$/],
    ["--port=65536", /^error: Option --port must be a whole number from 0 to 65535/],
    [
      "--host=0.0.0.0",
      /^error: Option --control-token is required when the emulator listens beyond loopback[^;]*\.\n$/,
    ],
    ["--clock=fast", /^error: Option --clock must be "real", "virtual" or a speed/],
    ["--fault={}", /^error: A fault rule takes/],
    [
      "--import=/proc/none.json",
      /^error: --import takes a file with what GET \/_emulator\/state answered, .*\(ENOENT\)/,
    ],
    ["--import=README.md", /^error: --import takes a file .*\(no JSON\)/],
    ["--import=package.json", /^error: The emulator did not export this state: /],
  ])("refuses %j with a line and no stack, and ends with 2", async (arg, message) => {
    const { code, output, errors } = await runHere(emulatorCommand(), ["--port=0", arg]);
    expect(errors).toMatch(message);
    expect(errors.trimEnd()).not.toMatch(/\n|\bat /);
    expect([code, output]).toEqual([2, ""]);
  });
});

function askToken(url: string, client: Pick<Announced, "clientId" | "clientSecret">): Promise<Response> {
  const credentials = { client_id: client.clientId, client_secret: client.clientSecret };
  const body = new URLSearchParams({ grant_type: "client_credentials", ...credentials });
  return fetch(`${url}/api/auth/token`, { method: "POST", body });
}

const SEND = { to: ["+14155550123"], messageType: "SMS", externalReference: "order-1" };

async function send({ url, fixtures, ...client }: Announced): Promise<void> {
  const { access_token: token } = (await (await askToken(url, client)).json()) as { access_token: string };
  const response = await fetch(`${url}/api/core/messages/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": "key-1" },
    body: JSON.stringify({ ...SEND, sendFrom: fixtures.numbers.full }),
  });
  expect(response.status).toBe(202);
}
