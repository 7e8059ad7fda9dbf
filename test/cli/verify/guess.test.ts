/** Whether the settings of signers that were made with other tools are found; see make-signers.py for how they were made. */
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type FoundOptions, type Guess, guess } from "../../../src/cli/verify/guess.ts";
import { verifySignature } from "../../../src/signature/verify-signature.ts";

interface MadeSigner {
  readonly name: string;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const SIGNERS: readonly MadeSigner[] = JSON.parse(readFileSync(new URL("signers.json", import.meta.url), "utf8"));
const MICROSECONDS = "(text) => Number(text) / 1e3";

const FOUND: Readonly<Record<string, FoundOptions>> = {
  "openssl, hex, milliseconds": { secretEncoding: "utf8", timestampFormat: '"ms"', signatureEncoding: "hex" },
  "openssl, base64, seconds": { secretEncoding: "utf8", timestampFormat: '"s"', signatureEncoding: "base64" },
  "openssl, a key in hex": { secretEncoding: "hex", timestampFormat: '"ms"', signatureEncoding: "hex" },
  "openssl, a key in base64": { secretEncoding: "base64", timestampFormat: '"s"', signatureEncoding: "hex" },
  "python, a key in base64url": {
    ...{ secretEncoding: "base64", timestampFormat: '"ms"', signatureEncoding: "hex" },
    secretPreparation: "write + for - and / for _",
  },
  "python, a key that is the secret in base64": {
    ...{ secretEncoding: "utf8", timestampFormat: '"ms"', signatureEncoding: "hex" },
    secretPreparation: "write it in base64",
  },
  "python, base64url without padding": {
    secretEncoding: "utf8",
    timestampFormat: '"ms"',
    signatureEncoding: "base64url",
  },
  "python, upper-case hex": { secretEncoding: "utf8", timestampFormat: '"s"', signatureEncoding: "hex" },
  "python, sha256= and hex": { secretEncoding: "utf8", timestampFormat: '"ms"', signatureEncoding: "hex" },
  "python, v1, and base64": { secretEncoding: "utf8", timestampFormat: '"s"', signatureEncoding: "base64" },
  "python, whsec_ before a key in base64": {
    ...{ secretEncoding: "base64", timestampFormat: '"s"', signatureEncoding: "base64" },
    secretPreparation: "drop its prefix",
  },
  "python, microseconds": { secretEncoding: "utf8", timestampFormat: MICROSECONDS, signatureEncoding: "hex" },
  "python, a date": { secretEncoding: "utf8", timestampFormat: "(text) => Date.parse(text)", signatureEncoding: "hex" },
  "perl, hex, seconds": { secretEncoding: "utf8", timestampFormat: '"s"', signatureEncoding: "hex" },
  "perl, a secret with a line break": {
    ...{ secretEncoding: "utf8", timestampFormat: '"ms"', signatureEncoding: "hex" },
    secretPreparation: "add a line break",
  },
};

const NEEDED: Readonly<Record<string, RegExp>> = {
  "perl, base64 without padding": /not base64 without padding/,
  "python, a fraction of seconds": /a timestamp without a dot/,
  "python, base64 of the hex digits": /not base64 of the hex digits/,
  "python, SHA-512": /HMAC-SHA256, not HMAC-SHA-512/,
  "python, a colon for the dot": /not <timestamp>:<body>/,
  "python, the body before the timestamp": /not <body><timestamp>/,
  "like GitHub": /not <body>.*X-Service-Signature with the signature \(here: X-Hub-Signature-256\)/,
  "like Stripe": /here: t= in Stripe-Signature.*here: Stripe-Signature/,
  "like Slack": /not v0:<timestamp>:<body>.*here: X-Slack-Request-Timestamp/,
  "like Standard Webhooks": /not <id>\.<timestamp>\.<body>/,
};

function guessOf({ headers, body, secret }: MadeSigner): Guess | null {
  // The secret with a line break lies in a file whose line break nobody counts.
  return guess({ headers: Object.entries(headers), body: Buffer.from(body) }, { secret, encoding: "utf8" });
}

describe("guess()", () => {
  it("is tried on every signer of the file", () => {
    const names = [...Object.keys(FOUND), ...Object.keys(NEEDED)];
    expect(SIGNERS.map(({ name }) => name).sort()).toEqual(names.sort());
    expect(Object.keys(FOUND).length).toBeGreaterThanOrEqual(12);
  });

  it.each(SIGNERS.filter(({ name }) => name in FOUND))("finds the options for: $name", (signer) => {
    const found = guessOf(signer);
    expect(found).toMatchObject({ options: FOUND[signer.name], needed: [] });
    expect(JSON.stringify(found)).not.toContain(signer.secret);
    // What is printed is what works: the options as a user writes them, on the request as it came.
    const { options } = found as { options: FoundOptions };
    expect(verified(signer, options)).toMatchObject({ ok: true });
  });

  it.each(SIGNERS.filter(({ name }) => name in NEEDED))("says what would be needed for: $name", (signer) => {
    const found = guessOf(signer);
    expect(found?.options).toBeNull();
    expect(found?.needed.join("; ")).toMatch(NEEDED[signer.name] as RegExp);
  });

  it("says that a receiver would need the secret which was replaced", () => {
    const [{ headers, body, secret } = { headers: {}, body: "", secret: "" }] = SIGNERS;
    const secrets = { secret: "another-signing-secret-of-32-byt", encoding: "utf8", previous: secret } as const;
    const found = guess({ headers: Object.entries(headers), body: Buffer.from(body) }, secrets);
    expect(found).toMatchObject({ options: null, needed: ["the secret listed as previous"] });
  });

  it("finds nothing with another secret", () => {
    const [first] = SIGNERS;
    expect(guessOf({ ...(first as MadeSigner), secret: "another-signing-secret-of-32-byt" })).toBeNull();
  });

  it("names a secret that is too short for a receiver", () => {
    const short = { name: "", secret: "short", headers: {}, body: "" };
    // printf '1760000001.' | openssl dgst -sha256 -hmac short
    const signature = "dea1f3bc5a8840e7e5dd6890e7193c101626b3c718d35aaa452ba938f6599907";
    const headers = { "X-Service-Timestamp": "1760000001", "X-Service-Signature": signature };
    expect(guessOf({ ...short, headers })).toMatchObject({
      options: null,
      needed: [expect.stringMatching(/^a secret that a receiver takes: .*is 5 bytes long/)],
    });
  });
});

function verified({ headers, body, secret }: MadeSigner, options: FoundOptions) {
  const { secretEncoding, secretPreparation, timestampFormat, signatureEncoding } = options;
  const prepared = secretPreparation === undefined ? secret : PREPARED[secretPreparation]?.(secret);
  const formats = { '"s"': "s", '"ms"': "ms", [MICROSECONDS]: (text: string) => Number(text) / 1e3 } as const;
  const format = formats[timestampFormat as keyof typeof formats] ?? ((text: string) => Date.parse(text));
  return verifySignature({
    ...{ headers, body, encoding: signatureEncoding, timestampFormat: format },
    secrets: { secret: prepared ?? "", encoding: secretEncoding },
    now: 1_760_000_001_000,
  });
}

const PREPARED: Readonly<Record<string, (secret: string) => string>> = {
  "drop its prefix": (secret) => secret.replace("whsec_", ""),
  "write + for - and / for _": (secret) => secret.replaceAll("-", "+").replaceAll("_", "/"),
  "write it in base64": (secret) => Buffer.from(secret).toString("base64"),
  "add a line break": (secret) => `${secret}\n`,
};
