/** `oncehook send` against the emulated service. */
import { Readable } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createEmulator, type EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { sendCommand } from "../../../src/tools/cli/send.ts";
import { runHere } from "./here.ts";
import { newFile, newServer, startHanging } from "./place.ts";
import { Running } from "./running.ts";

/** The service, and the flags that reach it. */
async function startService(options: EmulatorOptions = {}) {
  const emulator = await createEmulator({ port: 0, ...options });
  onTestFinished(() => emulator.close());
  const reach = [`--base-url=${emulator.url}`, `--client-id=${emulator.clientId}`];
  const secret = `--client-secret-file=${newFile(`${emulator.clientSecret}\n`)}`;
  const text = `--text-file=${newFile("Hello\n")}`;
  const send = (...args: string[]) =>
    runHere(sendCommand(), [...reach, secret, `--from=${emulator.fixtures.numbers.full}`, text, ...args]);
  return { emulator, send };
}

/** Another service, which answers every send so; and the flags that reach it. */
async function startAnswering(answer: object | string): Promise<string[]> {
  const url = await newServer((request, response) => {
    const isToken = request.url === "/api/auth/token";
    const body = isToken ? { access_token: "token", token_type: "Bearer", expires_in: 900 } : answer;
    response
      .writeHead(isToken ? 200 : 202, { "content-type": "application/json" })
      .end(typeof body === "string" ? body : JSON.stringify(body));
  });
  return [`--base-url=${url}`, "--client-id=cli_1"];
}

describe("oncehook send", () => {
  it("prints accepted and rejected recipients as the service tells them, and ends with 3", async () => {
    const { emulator, send } = await startService();
    const { code, output, errors } = await send("--to=+14155550101", "--to=nobody", "--idempotency-key=key-1");
    expect(code).toBe(3);
    expect(output).toMatch(/^QUEUED {2}msg_\w+ {2}\+14155550101\nINVALID_RECIPIENT {2}- {2}nobody {2}.*\n$/);
    expect(errors).toContain("The idempotency key is key-1.\n");
    expect(errors).toContain("The line break at the end of the text is not sent.\n");
    const [message] = emulator.control.messages();
    expect(message).toMatchObject({ text: "Hello", externalReference: "key-1" });
  });

  it("prints recipients that are told otherwise than specified: they were accepted, or rejected, all the same", async () => {
    const results = [{ to: "+14155550101", messageId: 12345, status: { is: "QUEUED" } }, null];
    const errors = [{ to: "+14155550102" }, { to: "\u001b[2J", error: { code: null, message: "No" } }];
    const { send } = await startService({ port: null });
    const reach = await startAnswering({ results, errors });
    const { code, output, errors: remarks } = await send("--to=+14155550101", ...reach);
    expect([code, output.trimEnd().split("\n")]).toEqual([
      3,
      ['{"is":"QUEUED"}  12345  +14155550101', "-  -  -", "-  -  +14155550102  -", "-  -  \\u001b[2J  No"],
    ]);
    expect(remarks).toContain("An answer of the service is not as specified.\n");
  });

  it("sends nothing twice under the key that it printed", async () => {
    const { emulator, send } = await startService();
    const first = JSON.parse((await send("--to=+14155550101", "--json")).output);
    expect(first).toEqual({
      idempotencyKey: expect.stringMatching(/^[\da-f-]{36}$/),
      externalReference: first.idempotencyKey,
      allRejected: false,
      results: [{ to: "+14155550101", messageId: expect.any(String), status: "QUEUED" }],
      errors: [],
    });
    const again = await send("--to=+14155550101", "--json", `--idempotency-key=${first.idempotencyKey}`);
    // It was given the key, so it says nothing of it where a program reads.
    expect([again.code, JSON.parse(again.output), again.errors]).toEqual([0, first, ""]);
    expect(emulator.control.messages()).toHaveLength(1);
  });

  it("takes the text from standard input, without a byte order mark", async () => {
    const { emulator, send } = await startService();
    const input = vi
      .spyOn(process, "stdin", "get")
      .mockReturnValue(Readable.from([Buffer.from("\uFEFFGrüße\n")]) as never);
    const { code } = await send("--to=+14155550101", "--text-file=-", "--quiet").finally(() => input.mockRestore());
    expect(code).toBe(0);
    expect(emulator.control.messages()).toMatchObject([{ text: "Grüße" }]);
  });

  it("says in a line what the service refuses, with its code", async () => {
    const { emulator, send } = await startService();
    const { code, output, errors } = await send("--to=+14155550101", `--from=${emulator.fixtures.numbers.noCampaign}`);
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toMatch(
      /^error: messages\.send was answered with 400 INVALID_REQUEST \(request \S+\): The .+\.\n$/m,
    );
  });

  it("says that nothing listens at --base-url, and how to repeat a send whose answer may be lost", async () => {
    const { emulator, send } = await startService();
    await emulator.close();
    const { code, errors } = await send("--to=+14155550101", "--quiet", "--idempotency-key=key-2");
    expect(code).toBe(1);
    expect(errors).toMatch(/^error: .*\. It failed with ECONNREFUSED: check --base-url, .*\. Repeat it /m);
    expect(errors).toMatch(/ Repeat it with --idempotency-key key-2: nothing is sent twice\.\n$/);
  });

  it.each(["", "<html>", { results: [] }, { results: [], errors: null }])(
    "says how to repeat a send that was accepted with %j, which tells of no recipient (CLI-6)",
    async (answer) => {
      const { send } = await startService({ port: null });
      const reach = await startAnswering(answer);
      const { code, output, errors } = await send("--to=+14155550101", "--quiet", "--idempotency-key=key-4", ...reach);
      expect([code, output]).toEqual([1, ""]);
      expect(errors).toMatch(
        /^error: The answer to messages\.send is not as specified: .* By its status the send was accepted\. Repeat it with --idempotency-key key-4: nothing is sent twice\.\n$/m,
      );
    },
  );

  it.each([["--json"], ["--quiet"], ["--debug"]])(
    "has told the key that it made before it asks, with %s",
    { tags: "full" },
    async (flag) => {
      const { url, asked } = await startHanging();
      const reach = [`--base-url=${url}`, "--client-id=cli_1", `--client-secret-file=${newFile("a-secret")}`];
      const text = `--text-file=${newFile("Hello")}`;
      const sending = new Running(["send", ...reach, "--from=num_000001", "--to=+14155550101", text, flag]);
      await asked;
      sending.signal("SIGKILL");
      const { output, errors } = await sending.exit;
      expect([output, errors]).toEqual(["", expect.stringMatching(/^The idempotency key is [\da-f-]{36}\.\n$/)]);
    },
  );

  it.each([
    [["--from=+14155550100"], /^error: --from must be a numberId/m],
    [
      ["--base-url=http://api.example.com"],
      /^error: --base-url must be https, because the client's secret is sent there/m,
    ],
    [["--base-url=http://emulator:4010"], /^error: --base-url must be https, .+: --allow-private-http takes it/m],
    [["--base-url=http://api.example.com", "--allow-private-http"], /^error: --base-url must be https/m],
    [["--idempotency-key=two words"], /^error: --idempotency-key must be 1 to 255 visible ASCII characters$/m],
    [["--reference="], /^error: --reference must be /m],
    [["--client-id="], /^error: --client-id is missing/m],
  ])("refuses %j in the words of the command line", async (args, message) => {
    const { send } = await startService({ port: null });
    const { code, output, errors } = await send("--to=+14155550101", ...args);
    expect([code, output]).toEqual([2, ""]);
    expect(errors).toMatch(message);
    // Nothing was tried that could be repeated.
    expect(errors).not.toContain("The idempotency key is");
  });

  it("calls a private host over http where it is told to, and says why it got no answer", async () => {
    const { send } = await startService({ port: null });
    const host = ["--base-url=http://nowhere.test:4010", "--allow-private-http"];
    const { code, errors } = await send("--to=+14155550101", ...host);
    expect([code, errors]).toEqual([1, expect.stringMatching(/failed with (?:ENOTFOUND|EAI_AGAIN): check --base-url/)]);
  });

  it("remarks nothing of a line break where there is none", async () => {
    const { emulator, send } = await startService();
    const { code, errors } = await send("--to=+14155550101", `--text-file=${newFile("Hello")}`);
    expect([code, errors]).toEqual([0, expect.not.stringContaining("at the end of the text")]);
    expect(emulator.control.messages()).toMatchObject([{ text: "Hello" }]);
  });

  it("says what is wrong with the file of the text", async () => {
    const { send } = await startService({ port: null });
    const of = async (path: string) => {
      const { code, errors } = await send("--to=+14155550101", `--text-file=${path}`);
      return [code, errors];
    };
    expect(await of("nowhere")).toEqual([1, "error: Cannot read the file of --text-file, nowhere: ENOENT.\n"]);
    expect(await of("/dev/null")).toEqual([2, expect.stringContaining("The text is empty")]);
    const latin1 = newFile(Buffer.from("Gr\xfc\xdfe", "latin1"));
    expect(await of(latin1)).toEqual([
      2,
      expect.stringMatching(/^error: The file of --text-file, .* is not UTF-8 text/),
    ]);
    const large = newFile("x".repeat(65_537));
    expect(await of(large)).toEqual([2, expect.stringMatching(/--text-file, .* larger than 64 KiB\.\n$/)]);
  });
});
