import { describe, expect, it } from "vitest";
import { createVerifier, SetupError } from "../../src/index.ts";
import { github, standardWebhooks } from "../../src/sources/index.ts";
import { SourceKey } from "../../src/sources/keys.ts";
import { fixtures, incomingOf, signedRequest } from "../../src/tools/testing/index.ts";
import { recordedLog } from "../receiver/bench.ts";

describe("SourceKey.signedEd25519()", () => {
  // The second vector of RFC 8032, section 7.1: the message is one byte.
  const publicKey = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
  const signature =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
  const keyOf = (hex: string) => new SourceKey("current", Buffer.from(hex, "hex"), Number.POSITIVE_INFINITY);
  const signed = Buffer.from(signature, "hex");

  it("verifies the parts, one after the other", () => {
    const key = keyOf(publicKey);
    expect(key.signedEd25519(signed, "r")).toBe(true);
    expect(key.signedEd25519(signed, "", Buffer.from("r"), new Uint8Array())).toBe(true);
    expect(key.signedEd25519(signed, "r", "r")).toBe(false);
    expect(key.signedEd25519(signed, "s")).toBe(false);
  });

  it("refuses another signature, and one of another length", () => {
    const key = keyOf(publicKey);
    const other = Buffer.from(signed);
    other[0] = 0;
    for (const wrong of [other, signed.subarray(1), new Uint8Array()])
      expect(key.signedEd25519(wrong, "r")).toBe(false);
  });

  it("verifies nothing with what is not a public key", () => {
    for (const hex of ["00".repeat(32), publicKey.slice(2), `${publicKey}00`])
      expect(keyOf(hex).signedEd25519(signed, "r")).toBe(false);
  });
});

describe("the option secrets of a source", () => {
  const DAY_MS = 86_400_000;
  const current = "a secret in use";
  const replaced = (validUntil: unknown) => ({ current, previous: { secret: "a replaced secret", validUntil } });

  it.each<readonly [string, string, unknown, RegExp]>([
    ["a list", "invalid_secret", [current], /"secrets" is a list: several secrets go into \{ current/],
    ["no secret", "invalid_secret", undefined, /"secrets" of github is missing/],
    ["blanks", "invalid_secret", "  ", /"secrets" is empty: look whether its environment variable/],
    ["a number", "invalid_secret", { current: 5 }, /"secrets.current" must be a secret/],
    ["no current secret", "invalid_secret", { current: [] }, /"secrets.current" is empty: without a secret/],
    ["a blank next one", "invalid_secret", { current, next: [current, ""] }, /"secrets.next\[1\]" is empty/],
    ["a misspelt slot", "invalid_option", { current, nxt: current }, /Did you mean "next"/],
    ["nine secrets", "invalid_option", { current: Array(9).fill(current) }, /at most 8 secrets/],
    ["a replaced one as a text", "invalid_secret", { current, previous: current }, /needs \{ secret, validUntil \}/],
    ["a replaced one without an end", "invalid_secret", replaced(undefined), /keep working after it leaked/],
    ["an end in seconds", "invalid_option", replaced(1_760_000_000), /epoch milliseconds \(not seconds\)/],
    ["an end that never comes", "invalid_option", replaced(Number.POSITIVE_INFINITY), /epoch milliseconds/],
    ["an end in nine days", "invalid_option", replaced(Date.now() + 9 * DAY_MS), /at most 8 days ahead/],
  ])("refuses %s", (_, code, secrets, message) => {
    const make = () => createVerifier({ source: github({ secrets: secrets as never }) });
    expect(make).toThrow(SetupError);
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });

  it.each([
    ["whsec_no base64", /"secrets" must be base64/],
    ["whsec_", /"secrets" holds no bytes/],
  ])("refuses %j where it must be base64", (secrets, message) => {
    expect(() => createVerifier({ source: standardWebhooks({ secrets }) })).toThrow(message);
  });

  it("accepts what a replaced secret signed until its end, and warns of one that has ended and of white space", async () => {
    const { logger, log } = recordedLog();
    const verdict = async (validUntil: number) => {
      const verify = createVerifier({ source: github({ secrets: replaced(validUntil) as never }), logger });
      const signed = signedRequest(fixtures.github(), { source: "github", secret: "a replaced secret" });
      return (await verify(incomingOf(signed))).ok;
    };
    expect([await verdict(Date.now() + DAY_MS), log]).toEqual([true, []]);
    expect(await verdict(Date.now() - DAY_MS)).toBe(false);
    createVerifier({ source: github({ secrets: `${current}\n` }), logger });
    expect(log.map(({ message }) => message)).toEqual([
      expect.stringContaining('"secrets.previous" has ended and is ignored'),
      expect.stringContaining("white space, which is part of the secret"),
    ]);
  });
});
