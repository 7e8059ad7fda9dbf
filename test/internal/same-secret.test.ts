/** Comparing secrets: exactly, whatever their lengths. */
import { describe, expect, it } from "vitest";
import { isSameSecret } from "../../src/signature/secret.ts";

describe("isSameSecret()", () => {
  it("knows equal secrets", () => {
    expect(isSameSecret("the-secret", "the-secret")).toBe(true);
    expect(isSameSecret("schlüssel", "schlüssel")).toBe(true);
  });

  it.each(["the-secre", "the-secret ", "the-Secret", "", "THE-SECRET", "the-secret\u0000"])(
    "takes %j for another one",
    (given) => {
      expect(isSameSecret(given, "the-secret")).toBe(false);
      expect(isSameSecret("the-secret", given)).toBe(false);
    },
  );
});
