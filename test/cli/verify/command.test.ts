/** `oncehook verify` as a process: its files, its output and its exit codes. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Capture } from "../../../src/cli/verify/capture.ts";
import { verifyCommand } from "../../../src/cli/verify/command.ts";
import { runHere } from "../here.ts";
import { runToEnd } from "../running.ts";
import { CONTENT, request, SECRET, withBody } from "./requests.ts";

function filesOf(capture: Capture, secret = SECRET) {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-verify-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const head = capture.headers.map(([name, value]) => `${name}: ${value}`).join("\r\n");
  return {
    parts: [`--headers=${file("headers", head)}`, `--body=${file("body", capture.body)}`],
    whole: [`--request=${file("request", `POST / HTTP/1.1\r\n${head}\r\n\r\n${capture.body}`)}`],
    secret: [`--secret-file=${file("secret", `${secret}\n`)}`],
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
✓ age             signed 766 ms before it arrived; up to 90 min is taken
✓ signature form  64 characters: one of 32 bytes
✓ secret          of a form that a receiver takes, read as utf8
✓ body            ${Buffer.byteLength(CONTENT)} bytes
✓ signature       made with this secret, of <timestamp>.<body>

Verified: a receiver with this secret takes it.
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

  it("prints the options to set with --guess", async () => {
    const encoded = Buffer.from(SECRET).toString("base64");
    const { parts, secret } = filesOf(request({ unit: "s", encoding: "base64" }), encoded);
    const text = await verify(["--guess", ...parts, ...secret]);
    const json = await verify(["--guess", "--json", ...parts, ...secret]);
    expect([text.code, json.code]).toEqual([0, 0]);
    expect(text.output).toContain('secrets: { secret: process.env.WEBHOOK_SECRET, encoding: "base64" },');
    expect(text.output).toContain('timestampFormat: "s",');
    expect(JSON.parse(json.output).guess.options).toEqual({
      ...{ secretEncoding: "base64", timestampFormat: '"s"', signatureEncoding: "base64" },
    });
    const again = await verify([...parts, ...secret, "--secret-encoding=base64", "--timestamp-format=s"]);
    expect(again.code).toBe(0);
  });

  it("says what a signer would need whom no option receives, and when nothing is found", async () => {
    // printf '1760000001:{}' | openssl dgst -sha256 -hmac 'a-webhook-signing-secret-of-32-b'
    const signature = "6a245dc91b7def826024b78081c2c5d2a040d745f470448ecc99fa85fb604abc";
    const headers = Object.entries({ "X-Service-Timestamp": "1760000001", "X-Service-Signature": signature });
    const { parts, secret } = filesOf({ headers, body: Buffer.from("{}") });
    const needed = await verify(["--guess", ...parts, ...secret]);
    expect(needed.code).toBe(3);
    expect(needed.output).toMatch(
      /No option of oncehook receives that\. It needs\n {2}- the signed text <timestamp>\.<body>, not <timestamp>:<body>\n$/,
    );
    const nothing = await verify(["--guess", ...parts], {
      ONCEHOOK_WEBHOOK_SECRET: "another-signing-secret-of-32-byt",
    });
    expect(nothing.code).toBe(3);
    expect(nothing.output).toMatch(/Nothing that was tried makes this signature: .*\n$/);
  });

  it("refuses a body that no receiver takes", async () => {
    const { parts, secret } = filesOf(withBody("x".repeat(1_048_577)));
    const { code, errors } = await verify([...parts, ...secret, "--quiet"]);
    expect([code, errors]).toEqual([2, "error: The body is larger than any receiver takes: 1 MiB.\n"]);
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
    [["--guss"], 2, /Did you mean --guess\?/],
  ])("says of %j what is wrong with it", async (args, expected, message) => {
    const { code, output, errors } = await verify(args);
    expect([code, output]).toEqual([expected, ""]);
    expect(errors).toMatch(message);
  });
});
