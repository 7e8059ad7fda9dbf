/** What `oncehook verify` prints of what it found. */
import { describe, expect, it } from "vitest";
import type { FoundOptions } from "../../../src/cli/verify/guess.ts";
import { diagnosisText, guessText } from "../../../src/cli/verify/report.ts";
import { createReceiver } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";

const plain = (_style: string, text: string) => text;
const signer = { timestamp: "t", signature: "s", key: "k", text: "x", body: "b", algorithm: "HMAC-SHA-256" };
const optionsOf = (options: FoundOptions) =>
  guessText({ signer, options, needed: [] }, plain).split("Options to set\n")[1];

describe("diagnosisText()", () => {
  it("names the receiver's code where there is one", () => {
    const failed = {
      verified: false,
      steps: [{ name: "body", ok: null, text: "was not looked at" } as const],
      causes: [],
    };
    expect(diagnosisText({ ...failed, code: "signature_mismatch" }, plain)).toContain(
      "Not verified: signature_mismatch.",
    );
    expect(diagnosisText({ ...failed, code: null }, plain)).toBe(
      "- body            was not looked at\n\nNot verified.\n",
    );
  });
});

describe("guessText()", () => {
  it("writes options as code, and says which of them may stay away", () => {
    expect(optionsOf({ secretEncoding: "utf8", timestampFormat: '"ms"', signatureEncoding: "hex" })).toBe(
      `  secrets: process.env.WEBHOOK_SECRET,
  timestampFormat: "ms", // "auto", the default, takes it too
  signatureEncoding: "hex", // "auto", the default, takes it too
`,
    );
    const prepared = { secretEncoding: "base64", secretPreparation: "drop its prefix" } as const;
    expect(optionsOf({ ...prepared, timestampFormat: "(text) => Date.parse(text)", signatureEncoding: "base64" })).toBe(
      `  // The secret's text: drop its prefix.
  secrets: { secret: process.env.WEBHOOK_SECRET, encoding: "base64" },
  timestampFormat: (text) => Date.parse(text),
  signatureEncoding: "base64", // "auto", the default, takes it too
`,
    );
  });

  it.each<FoundOptions>([
    { secretEncoding: "utf8", timestampFormat: '"ms"', signatureEncoding: "hex" },
    { secretEncoding: "hex", timestampFormat: "(text) => Date.parse(text)", signatureEncoding: "base64url" },
  ])("writes options that createReceiver() takes as they stand: %j", (options) => {
    const pasted = new Function("process", `return {${optionsOf(options)}}`);
    const secrets = pasted({ env: { WEBHOOK_SECRET: "00112233445566778899aabbccddeeff" } });
    const receiver = createReceiver({ ...secrets, store: memoryStore({ volatile: true }) });
    expect(receiver.counters).toEqual({});
  });

  it("lists what no option changes, and says when nothing was found", () => {
    const needed = guessText({ signer, options: null, needed: ["HMAC-SHA256, not HMAC-MD5"] }, plain);
    expect(needed).toContain("No option of oncehook receives that. It needs\n  - HMAC-SHA256, not HMAC-MD5\n");
    expect(guessText(null, plain)).toContain("Nothing that was tried makes this signature");
  });
});
