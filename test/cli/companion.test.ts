/** `--exec`: a command beside the emulator, with what it needs to find it, ended with it and ending it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Running, runs } from "./running.ts";

const begin = (command: string) => new Running(["emulator", "--json", "--port=0", `--exec=${command}`]);
/** A Node programme as a shell command; it must hold no single quote. */
const node = (programme: string) => `"${process.execPath}" -e '${programme}'`;

/** Goes on after signals that are trapped, but not for ever, whoever forgets it. */
const A_WHILE = "for i in 1 2 3 4 5; do sleep 1 & wait; done";

const GET_TOKEN = `
  const { SERVICE_BASE_URL, SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET } = process.env;
  const token = () => fetch(SERVICE_BASE_URL + "/api/auth/token", { method: "POST", body: new URLSearchParams({
    grant_type: "client_credentials", client_id: SERVICE_CLIENT_ID, client_secret: SERVICE_CLIENT_SECRET }) });
`;

describe("oncehook emulator --exec", () => {
  it("starts the command once the emulator answers, with what it needs in its environment", async () => {
    const running = begin(
      node(`${GET_TOKEN}
      token().then(({ status }) => console.log(JSON.stringify({ status, secret: process.env.WEBHOOK_SECRET })));`),
    );
    const { code, output, errors } = await running.exit;
    const [first = "", second = "", ...rest] = output.trimEnd().split("\n");
    expect([code, errors, rest]).toEqual([0, "", []]);
    expect(JSON.parse(second)).toEqual({ status: 200, secret: JSON.parse(first).webhookSecret });
  });

  it("goes through the shell, and ends with the command's exit code", { tags: "full" }, async () => {
    expect(await begin("echo one && echo two >&2; exit 7").exit).toMatchObject({
      code: 7,
      output: expect.stringMatching(/^\{.*\}\none\n$/),
      errors: "two\n",
    });
    expect(await begin("no-such-command-anywhere").exit).toMatchObject({ code: 127 });
    expect(await begin("exit 5").exit).toMatchObject({ code: 5 });
    expect(await begin("CODE=6 sh -c 'exit $CODE'").exit).toMatchObject({ code: 6 });
  });

  it("ends with 128 + the number of the signal that ended the command", async () => {
    expect(await begin("kill -KILL $$").exit).toMatchObject({ code: 137, signal: null });
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const)(
    "passes %s on, and stays until the command has ended",
    { tags: "full" },
    async (signal) => {
      const app = writeApp(`${GET_TOKEN}
      setTimeout(() => {}, 60000);
      process.on("${signal}", () => token().then(({ status }) => process.exit(status === 200 ? 9 : 8)));
      console.log("up");`);
      const running = begin(`"${process.execPath}" ${app} 2>&1`);
      await running.printed(/^up$/m);
      running.signal(signal);
      expect(await running.exit).toMatchObject({ code: 9, errors: "" });
    },
  );

  it("starts nothing more of the command after a signal", { tags: "full" }, async () => {
    const running = begin("echo $$ up; sleep 300; echo more");
    await started(running);
    running.signal("SIGTERM");
    const { code, output } = await running.exit;
    expect([code, output]).toEqual([143, expect.not.stringContaining("more")]);
  });

  it("leaves nothing of the command's processes running when SIGTERM ends it", { tags: "full" }, async () => {
    const running = begin("sleep 300 & echo $!; sleep 300 & echo $!; echo $$ up; wait");
    const pids = await started(running);
    expect(pids.map(runs)).toEqual([true, true, true]);
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 143, signal: null });
    expect(pids.map(runs)).toEqual([false, false, false]);
  });

  it("ends what the command leaves behind, even when it takes no SIGTERM", { tags: "full" }, async () => {
    const running = begin('sleep 300 & echo $!; trap "" TERM; sleep 300 & echo $!; echo $$ up');
    const pids = await started(running);
    expect(await running.exit).toMatchObject({ code: 0 });
    expect(pids.map(runs)).toEqual([false, false, false]);
  });

  it("kills a command that does not listen at the second signal", { tags: "full" }, async () => {
    const running = begin(`trap "echo heard" TERM; sleep 300 & echo $!; echo $$ up; ${A_WHILE}`);
    const pids = await started(running);
    running.signal("SIGTERM");
    await running.printed(/^heard$/m);
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 143 });
    await expect.poll(() => pids.map(runs)).toEqual(pids.map(() => false));
  });
});

describe("a test that is over", () => {
  it.each([["sleep 300 & echo $!; echo $$ up; wait"], [`trap "" TERM; sleep 300 & echo $!; echo $$ up; ${A_WHILE}`]])(
    "leaves nothing of %s",
    { tags: "full" },
    async (command) => {
      const running = begin(command);
      const pids = await started(running);
      await running.end();
      await expect.poll(() => pids.map(runs)).toEqual(pids.map(() => false));
    },
  );
});

/** A Node programme as a file; gone with the test. */
function writeApp(programme: string): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-app-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "app.cjs"), programme);
  return join(folder, "app.cjs");
}

/** The pids that the command printed before "up". */
async function started(running: Running): Promise<number[]> {
  const [lines] = await running.printed(/^(?:\d+\n)*\d+ up$/m);
  return lines.split("\n").map((line) => Number.parseInt(line, 10));
}
