import { describe, expect, it } from "vitest";
import { SourceKey } from "../../src/sources/keys.ts";

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
