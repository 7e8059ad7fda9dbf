/** `--exec`: a command beside the emulator, with what it needs to find it, ended with it and ending it. */
import { describe, expect, it } from "vitest";
import { newFile } from "./place.ts";
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

  it("shares its output and its errors with the command", { tags: "full" }, async () => {
    const { code, output, errors } = await begin("echo one && echo two >&2; exit 7").exit;
    expect([code, output, errors]).toEqual([7, expect.stringMatching(/^\{.*\}\none\n$/), "two\n"]);
  });

  it("ends with 128 + the number of the signal that ended the command", async () => {
    expect(await begin("kill -KILL $$").exit).toMatchObject({ code: 137, signal: null });
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const)(
    "passes %s on, and stays until the command has ended",
    { tags: "full" },
    async (signal) => {
      const app = newFile(`${GET_TOKEN}
      setTimeout(() => {}, 60000);
      process.on("${signal}", () => token().then(({ status }) => process.exit(status === 200 ? 9 : 8)));
      console.log("up");`);
      const running = begin(`"${process.execPath}" ${app} 2>&1`);
      await running.printed(/^up$/m);
      running.signal(signal);
      expect(await running.exit).toMatchObject({ code: 9, errors: "" });
    },
  );

  it.each<[what: string, command: string, signals: number, code: number]>([
    ["starts nothing more of the command after a signal", "echo $$ up; sleep 300; echo more", 1, 143],
    ["leaves none of its processes running", "sleep 300 & echo $!; sleep 300 & echo $!; echo $$ up; wait", 1, 143],
    ["ends what takes no SIGTERM", 'sleep 300 & echo $!; trap "" TERM; sleep 300 & echo $!; echo $$ up', 0, 0],
    ["kills at the second signal", `trap "echo heard" TERM; sleep 300 & echo $!; echo $$ up; ${A_WHILE}`, 2, 143],
  ])("%s", { tags: "full" }, async (_, command, signals, code) => {
    const running = begin(command);
    const pids = await started(running);
    if (signals > 0) running.signal("SIGTERM");
    if (signals > 1) {
      await running.printed(/^heard$/m);
      running.signal("SIGTERM");
    }
    const exit = await running.exit;
    expect([exit.code, exit.signal, exit.output]).toEqual([code, null, expect.not.stringContaining("more")]);
    await expect.poll(() => pids.map(runs)).toEqual(pids.map(() => false));
  });
});

/** The pids that the command printed before "up". */
async function started(running: Running): Promise<number[]> {
  const [lines] = await running.printed(/^(?:\d+\n)*\d+ up$/m);
  return lines.split("\n").map((line) => Number.parseInt(line, 10));
}
