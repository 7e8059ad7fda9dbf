import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import { parseCandidates, type SignatureEncoding, signatureEncodingOption } from "../../src/signature/verify.ts";

// 0xfb… makes "+" and "/" in base64, "-" and "_" in base64url.
const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => (index % 2 === 0 ? 0xfb : 0xff - index)));
const hex = bytes.toString("hex");
const base64 = bytes.toString("base64");
const base64url = bytes.toString("base64url");

const parse = (text: string, encoding: SignatureEncoding = "auto") =>
  parseCandidates(text, encoding)?.map((each) => Buffer.from(each).toString("hex")) ?? null;

describe("parseCandidates()", () => {
  const forms = { hex, HEX: hex.toUpperCase(), base64, base64url };

  it.each(Object.entries(forms))("reads %s with and without each prefix (DLV-12)", (_, text) => {
    for (const prefix of ["", "sha256=", "v1=", "v1,"]) expect(parse(prefix + text)).toEqual([hex]);
  });

  it.each(Object.entries(forms))("refuses every truncation and one more character of %s", (_, text) => {
    for (const prefix of ["", "sha256=", "v1=", "v1,"]) {
      for (let length = 0; length < text.length; length++) {
        // 43 hex digits can be well-formed base64url, but then they are other bytes.
        expect(parse(prefix + text.slice(0, length)) ?? []).not.toContain(hex);
      }
      // (The test's base64 holds "+" and "/"; without them, cutting its "=" leaves base64url of the same bytes.)
      for (const extra of ["0", "=", "A", "\n", "\u0000"]) expect(parse(prefix + text + extra)).toBeNull();
    }
  });

  it.each([
    ["base64", base64, "="],
    ["base64url", base64url, ""],
  ])("accepts one last character of %s and refuses the 63 others", (encoding, text, end) => {
    const alphabet = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${encoding === "base64" ? "+/" : "-_"}`;
    const sameBytes = [...alphabet].filter((last) => parse(text.slice(0, 42) + last + end)?.[0] === hex);
    expect(sameBytes).toEqual([text[42]]);
    // The last character carries 4 bits: 16 spellings are canonical, the 48 others have stray bits set.
    expect([...alphabet].filter((last) => parse(text.slice(0, 42) + last + end) !== null)).toHaveLength(16);
  });

  it.each([
    ["mixed alphabets", base64.replace("+", "-")],
    ["base64url with padding", `${base64url}=`],
    ["base64 without padding", base64.slice(0, 43)],
    ["two paddings", `${base64}=`],
    ["a letter beyond f", `g${hex.slice(1)}`],
    ["a full-width digit", `０${hex.slice(1)}`],
    ["a line break at the end", `${hex}\n`],
    ["a space before", ` ${hex}`],
    ["a space after", `${hex} `],
    ["a tab between", `${hex}\t${hex}`],
    ["an unknown prefix", `v0=${hex}`],
    ["a prefix in capitals", `SHA256=${hex}`],
    ["two prefixes", `sha256=v1=${hex}`],
    ["a prefix alone", "sha256="],
    ["a trailing comma", `${hex},`],
    ["a leading comma", `,${hex}`],
    ["two commas", `${hex},,${hex}`],
    ["quotes", `"${hex}"`],
    ["nothing", ""],
    ["a space", " "],
    ["31 bytes in hex", hex.slice(2)],
    ["33 bytes in hex", `${hex}00`],
    ["31 bytes in base64", bytes.subarray(1).toString("base64")],
    ["33 bytes in base64", Buffer.concat([bytes, bytes.subarray(0, 1)]).toString("base64")],
    ["a 1 MiB text", "a".repeat(1 << 20)],
    ["junk beside a signature", `${hex}, junk`],
  ])("refuses %s", (_, text) => {
    expect(parse(text)).toBeNull();
  });

  it.each([[","], [", "], [" "], ["  "], [" , "]])("separates candidates by %j", (separator) => {
    const other = "0".repeat(64);
    expect(parse([hex, other].join(separator))).toEqual([hex, other]);
    expect(parse([`v1,${hex}`, `v1,${other}`].join(separator))).toEqual([hex, other]);
    expect(parse([base64, `sha256=${other}`, base64url].join(separator))).toEqual([hex, other, hex]);
  });

  it("takes five candidates, not six", () => {
    for (const text of Object.values(forms)) {
      expect(parse(Array(5).fill(`sha256=${text}`).join(", "))).toHaveLength(5);
      expect(parse(Array(6).fill(text).join(","))).toBeNull();
    }
  });

  it("takes a header of 512 characters at most, however much of it is space", () => {
    const list = (length: number) => `${hex}${" ".repeat(length - 128)}${hex}`;
    expect(parse(list(512))).toEqual([hex, hex]);
    expect(parse(list(513))).toBeNull();
  });

  it("pins the encoding, also within a list", () => {
    for (const [pinned, text] of [
      ["hex", hex],
      ["base64", base64],
      ["base64url", base64url],
    ] as const) {
      for (const encoding of ["hex", "base64", "base64url"] as const) {
        expect(parse(text, encoding)).toEqual(pinned === encoding ? [hex] : null);
        expect(parse(`v1=${text}`, encoding)).toEqual(pinned === encoding ? [hex] : null);
        expect(parse(`${text},${text}`, encoding)).toEqual(pinned === encoding ? [hex, hex] : null);
      }
    }
  });
});

describe("signatureEncodingOption()", () => {
  it("takes each encoding, and auto for none", () => {
    const encodings = ["auto", "hex", "base64", "base64url"];
    expect(encodings.map(signatureEncodingOption)).toEqual(encodings);
    expect(signatureEncodingOption(undefined)).toBe("auto");
  });
});
