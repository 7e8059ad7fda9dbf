import { describe, expect, it } from "vitest";
import { isSameSecret } from "../../../src/internal/same-secret.ts";
import { checkSecret, secretTextIssue } from "../../../src/sources/messaging/secret.ts";

describe("secretTextIssue()", () => {
  it.each([
    ["0123456789abcdef", null],
    ["0123456789a", "is 11 bytes long; a secret has at least 16"],
    ["", "is an empty text: look whether its environment variable is set"],
    [" \n", "holds nothing but white space"],
  ])("says of %j why it can be no secret", (text, issue) => {
    expect(secretTextIssue(text)).toBe(issue);
  });

  it("says of the word for unsigned kinds all that the refusal of an option says", () => {
    expect(secretTextIssue("dangerouslyUnsigned")).toMatch(
      /^is "dangerouslyUnsigned"\. Unsigned webhooks .* with that word as the whole keyring of one kind$/,
    );
  });
});

describe("checkSecret()", () => {
  it("calls a secret of 15 bytes short, and one of 16 not", () => {
    const checked = (secret: string) => checkSecret("secrets", { secret, dangerouslyShort: true });
    expect([checked("0123456789abcde").short, checked("0123456789abcdef").short]).toEqual([true, false]);
  });
});

// Comparing secrets: exactly, whatever their lengths.

describe("isSameSecret()", () => {
  it("knows equal secrets", () => {
    expect(isSameSecret("the-secret", "the-secret")).toBe(true);
    expect(isSameSecret("schlüssel", "schlüssel")).toBe(true);
  });

  it("takes an empty text for no secret, also where nothing else is expected", () => {
    expect(isSameSecret("", "")).toBe(false);
  });

  it.each(["the-secre", "the-secret ", "the-Secret", "", "THE-SECRET", "the-secret\u0000"])(
    "takes %j for another one",
    (given) => {
      expect(isSameSecret(given, "the-secret")).toBe(false);
      expect(isSameSecret("the-secret", given)).toBe(false);
    },
  );
});
