/** `oncehook verify` as a process: its files, its output and its exit codes. */
import { describe, expect, it } from "vitest";
import type { Capture } from "../../../../src/tools/cli/verify/capture.ts";
import { diagnosisText, verifyCommand } from "../../../../src/tools/cli/verify/command.ts";
import { runHere } from "../here.ts";
import { newFile } from "../place.ts";
import { runToEnd } from "../running.ts";
import { CONTENT, request, SECRET, withBody } from "./requests.ts";

function filesOf(capture: Capture) {
  const head = capture.headers.map(([name, value]) => `${name}: ${value}`).join("\r\n");
  return {
    parts: [`--headers=${newFile(head)}`, `--body=${newFile(capture.body)}`],
    whole: [`--request=${newFile(`POST / HTTP/1.1\r\n${head}\r\n\r\n${capture.body}`)}`],
    secret: [`--secret-file=${newFile(`${SECRET}\n`)}`],
  };
}

const verify = (args: readonly string[], environment?: NodeJS.ProcessEnv) =>
  runHere(verifyCommand(), args, environment);

describe("oncehook verify", () => {
  it("ends with 0 for a request that a receiver takes, step by step", async () => {
    const { whole, secret } = filesOf(request());
    const args = ["verify", ...whole, ...secret, "--quiet", "--at=2025-10-09T08:53:22Z"];
    const { code, output, errors } = await runToEnd(args);
    expect([code, errors]).toEqual([0, ""]);
    expect(output).toBe(
      `✓ headers         X-Service-Timestamp and X-Service-Signature are there
✓ timestamp       13 digits: milliseconds, 2025-10-09T08:53:21.234Z
✓ age             signed 766 ms before it arrived; up to 90 min is accepted
✓ signature form  64 characters: one of 32 bytes
✓ secret          a receiver accepts its form, read as utf8
✓ body            ${Buffer.byteLength(CONTENT)} bytes
✓ signature       made with this secret, of <timestamp>.<body>

Verified: a receiver with this secret accepts it.
`,
    );
  });

  it("ends with 3 for another, and says what to do in text and in JSON", async () => {
    const { parts, secret } = filesOf(withBody(`${CONTENT}\n`));
    const text = await verify([...parts, ...secret]);
    const json = await verify([...parts, "--json"], { ONCEHOOK_WEBHOOK_SECRET: SECRET });
    expect([text.code, json.code, json.errors]).toEqual([3, 3, ""]);
    expect(text.output).toMatch(/^✗ signature +not made with this secret/m);
    expect(text.output).toMatch(/\nNot verified: signature_mismatch\.\n\nCause \(body_line_break\): .*\nFix: .*\n$/);
    expect(text.errors).toMatch(/The line break at the end of .* is not taken for a part of the secret/);
    expect(JSON.parse(json.output)).toEqual({
      verified: false,
      code: "signature_mismatch",
      steps: expect.arrayContaining([{ name: "signature", ok: false, text: expect.any(String) }]),
      causes: [{ code: "body_line_break", proven: true, what: expect.any(String), fix: expect.any(String) }],
    });
  });

  it("refuses a body that no receiver takes", async () => {
    const { parts, secret } = filesOf(withBody("x".repeat(1_048_577)));
    const { code, errors } = await verify([...parts, ...secret, "--quiet"]);
    expect([code, errors]).toEqual([2, "error: The body is larger than any receiver accepts: 1 MiB.\n"]);
  });

  it.skipIf(process.platform === "win32")("reads no file that has no end", async () => {
    const { parts, secret } = filesOf(request());
    for (const args of [["--request=/dev/zero"], [parts[0]!, "--body=/dev/zero"], ["--headers=/dev/zero", parts[1]!]]) {
      const { code, errors } = await verify([...args, ...secret, "--quiet"]);
      expect([code, errors]).toEqual([2, "error: Cannot read /dev/zero: it is larger than 8192 KiB.\n"]);
    }
  });

  it.each([
    [[], 2, /^error: Give the request: --headers FILE and --body FILE, or --request FILE alone\.\n$/],
    [["--headers=h", "--request=r"], 2, /^error: Give the request/],
    [["--request=nowhere"], 1, /^error: Cannot read nowhere: ENOENT\.\n$/],
    [["--encoding=hexx"], 2, /^error: option '--encoding <encoding>' argument 'hexx' is invalid/],
    [["--toleranse"], 2, /Did you mean --tolerance\?/],
  ])("says of %j what is wrong with it", async (args, expected, message) => {
    const { code, output, errors } = await verify(args);
    expect([code, output]).toEqual([expected, ""]);
    expect(errors).toMatch(message);
  });
});

describe("diagnosisText()", () => {
  it("names the receiver's code where there is one", () => {
    const steps = [{ name: "body", ok: null, text: "was not looked at" } as const];
    const textOf = (code: "signature_mismatch" | null) =>
      diagnosisText({ verified: false, steps, causes: [], code }, (_style, text) => text);
    expect(textOf("signature_mismatch")).toContain("Not verified: signature_mismatch.");
    expect(textOf(null)).toBe("- body            was not looked at\n\nNot verified.\n");
  });
});
