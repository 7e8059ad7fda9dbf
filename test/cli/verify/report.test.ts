/** What `oncehook verify` prints of what it found. */
import { describe, expect, it } from "vitest";
import type { FoundOptions } from "../../../src/cli/verify/guess.ts";
import { diagnosisText, guessText } from "../../../src/cli/verify/report.ts";

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
    expect(optionsOf({ secretEncoding: "utf8", timestampFormat: '"ms"', encoding: "hex" })).toBe(
      `  secrets: process.env.WEBHOOK_SECRET,
  timestampFormat: "ms", // "auto", the default, takes it too
  encoding: "hex", // of verifySignature(); "auto", the default, takes it too
`,
    );
    const prepared = { secretEncoding: "base64", secretPreparation: "drop its prefix" } as const;
    expect(optionsOf({ ...prepared, timestampFormat: "(text) => Date.parse(text)", encoding: "base64" })).toBe(
      `  // The secret's text: drop its prefix.
  secrets: { secret: process.env.WEBHOOK_SECRET, encoding: "base64" },
  timestampFormat: (text) => Date.parse(text),
  encoding: "base64", // of verifySignature(); "auto", the default, takes it too
`,
    );
  });

  it("lists what no option changes, and says when nothing was found", () => {
    const needed = guessText({ signer, options: null, needed: ["HMAC-SHA256, not HMAC-MD5"] }, plain);
    expect(needed).toContain("No option of oncehook receives that. It needs\n  - HMAC-SHA256, not HMAC-MD5\n");
    expect(guessText(null, plain)).toContain("Nothing that was tried makes this signature");
  });
});
