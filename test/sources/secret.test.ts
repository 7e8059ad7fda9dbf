import { describe, expect, it } from "vitest";
import { SetupError } from "../../src/errors.ts";
import { isSameSecret } from "../../src/internal/same-secret.ts";
import { checkSecret, STRICT_RULES, secretTextIssue } from "../../src/sources/secret.ts";

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
  it("warns of a secret of 15 bytes, and of one of 16 not", () => {
    const warnings = (secret: string) => checkSecret("secrets", { secret, dangerouslyShort: true }).warnings;
    expect(warnings("0123456789abcde")).toEqual([
      'Option "secrets.secret" has fewer than 16 bytes and can be guessed.',
    ]);
    expect(warnings("0123456789abcdef")).toEqual([]);
  });

  it("tells a secret that names no tenant from one that is for all", () => {
    const tenantOf = (value: unknown) => checkSecret("secrets", value).tenant;
    const secret = "0123456789abcdef";
    expect([tenantOf(secret), tenantOf({ secret })]).toEqual([undefined, undefined]);
    expect([tenantOf({ secret, tenant: null }), tenantOf({ secret, tenant: "a" })]).toEqual([null, "a"]);
  });

  it("asks for no more bytes than a source does, and never for none", () => {
    const rules = { ...STRICT_RULES, leastBytes: 4 };
    expect(checkSecret("secrets", "1234", rules).bytes).toHaveLength(4);
    expect(() => checkSecret("secrets", "123", rules)).toThrow(/is 3 bytes long; a secret has at least 4/);
    const empty = { ...rules, decode: () => new Uint8Array() };
    expect(() => checkSecret("secrets", { secret: "1234", dangerouslyShort: true }, empty)).toThrow(/holds no bytes/);
  });

  it("says in the source's own words what is no key, and nothing of another error", () => {
    const decoding = (error: Error) => {
      const decode = () => {
        throw error;
      };
      return () => checkSecret("secrets", "a text of a key", { ...STRICT_RULES, decode });
    };
    expect(decoding(new SetupError("invalid_secret", "must be base64"))).toThrow('Option "secrets" must be base64.');
    expect(decoding(new Error("a text of a key"))).toThrow('Option "secrets" is not a key of this source.');
  });

  it("reads the text by an encoding that is given instead of the source's own", () => {
    const rules = { ...STRICT_RULES, decode: () => Buffer.alloc(16) };
    const hex = "00ff".repeat(8);
    expect(Buffer.from(checkSecret("secrets", { secret: hex, encoding: "hex" }, rules).bytes).toString("hex")).toBe(
      hex,
    );
    expect(checkSecret("secrets", hex, rules).bytes).toEqual(Buffer.alloc(16));
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
