import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import { checkAge } from "../../../src/sources/define-source.ts";
import { Head } from "../../../src/sources/headers.ts";
import { signPayload } from "../../../src/sources/messaging/sign.ts";
import {
  DEFAULT_TOLERANCE,
  parseCandidates,
  parseTimestamp,
  readSigned,
  type SignatureEncoding,
  signatureEncodingOption,
  timestampFormatOption,
  toleranceOption,
} from "../../../src/sources/messaging/verify.ts";
import { NOW, SECRET } from "./openssl.ts";

describe("readSigned()", () => {
  const read = (headers: Record<string, string>, policy = {}) => readSigned(new Head({ headers }), policy);

  it("hands on the timestamp's text as received and 32-byte candidates", () => {
    const signed = read(signPayload({ body: "{}", secret: SECRET, timestamp: NOW, unit: "s" }));
    expect(signed).toMatchObject({ ok: true, timestampText: "1760000000", timestamp: NOW });
    expect(signed.ok && signed.candidates.map((each) => each.length)).toEqual([32]);
  });

  it("says what is wrong with the headers, the timestamp first", () => {
    const timestamp = { "x-service-timestamp": "1760000000" };
    const signature = { "x-service-signature": "0".repeat(64) };
    const code = (headers: Record<string, string>, policy = {}) => {
      const signed = read(headers, policy);
      return signed.ok ? "ok" : signed.code;
    };
    expect([code({}), code(signature), code(timestamp)]).toEqual([
      "missing_timestamp",
      "missing_timestamp",
      "missing_signature",
    ]);
    expect(code({ "x-service-timestamp": "x", "x-service-signature": "x" })).toBe("malformed_timestamp");
    expect(code({ ...timestamp, "x-service-signature": "junk" })).toBe("malformed_signature");
    expect(code({ ...timestamp, ...signature })).toBe("ok");
    expect(code({ ...timestamp, ...signature }, { timestampFormat: "ms" })).toBe("malformed_timestamp");
    expect(code({ ...timestamp, ...signature }, { encoding: "base64" })).toBe("malformed_signature");
  });
});

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
    [
      "mixed alphabets or other paddings",
      [base64.replace("+", "-"), `${base64url}=`, base64.slice(0, 43), `${base64}=`],
    ],
    ["other letters and digits", [`g${hex.slice(1)}`, `０${hex.slice(1)}`]],
    ["white space around or between", [`${hex}\n`, ` ${hex}`, `${hex} `, `${hex}\t${hex}`]],
    ["other prefixes", [`v0=${hex}`, `SHA256=${hex}`, `sha256=v1=${hex}`, "sha256="]],
    [
      "empty candidates, quotes and junk",
      [`${hex},`, `,${hex}`, `${hex},,${hex}`, `"${hex}"`, "", " ", `${hex}, junk`],
    ],
    [
      "31 and 33 bytes",
      [
        hex.slice(2),
        `${hex}00`,
        bytes.subarray(1).toString("base64"),
        Buffer.concat([bytes, bytes.subarray(0, 1)]).toString("base64"),
      ],
    ],
    ["a text of 1 MiB", ["a".repeat(1 << 20)]],
  ])("refuses %s", (_, texts) => {
    for (const text of texts) expect(parse(text)).toBeNull();
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
    expect(encodings.map((each) => signatureEncodingOption("encoding", each))).toEqual(encodings);
    expect(signatureEncodingOption("encoding", undefined)).toBe("auto");
  });
});

const digits = "17600000000000000";
const arabicIndic = "١٧٦٠٠٠٠٠٠٠";
const fullWidth = "１７６００００００００００";

const FORMATS = ["auto", "s", "ms"] as const;

describe("parseTimestamp()", () => {
  it("takes 10 and 13 digits only", () => {
    const taken = Array.from(digits, (_, length) => length).filter(
      (length) => parseTimestamp(digits.slice(0, length), "auto") !== null,
    );
    expect(taken).toEqual([10, 13]);
    for (const length of taken) expect(parseTimestamp(digits.slice(0, length), "auto")).toBe(1_760_000_000_000);
  });

  it.each([
    ["a sign", "+1760000000 -1760000000 +176000000 -176000000"],
    ["a fraction", "1.76000000 17600000.0 1760000000.5 1760000000.12"],
    ["an exponent or another base", "1.760000e12 0x68e78c00 0x68e78c00000"],
    ["separators", "1_760_000_0 1,760,000, 1760000000,1760000000 2025-10-09"],
    ["words and suffixes", "Infinity10 NaNNaNNaNN 1760000000n 176000000n 176000000²"],
    ["other digits", `${arabicIndic} ${fullWidth} १७६००००००० 𝟏𝟕𝟔𝟎𝟎 176000000０`],
  ])("refuses %s: %s", (_, texts) => {
    for (const text of texts.split(" ")) for (const format of FORMATS) expect(parseTimestamp(text, format)).toBeNull();
  });

  it("refuses white space, invisible characters and nothing", () => {
    const texts =
      " 1760000000|1760000000 | 176000000|176000000 |\t176000000|1760000000\n|176000000\n|\u00a0176000000|1.76e9    |";
    for (const text of [...texts.split("|"), "1760000000, 1760000000", "176000000\u0000"])
      for (const format of FORMATS) expect(parseTimestamp(text, format)).toBeNull();
  });

  it("pins the unit", () => {
    expect(parseTimestamp("1760000000", "s")).toBe(1_760_000_000_000);
    expect(parseTimestamp("1760000000000", "s")).toBeNull();
    expect(parseTimestamp("1760000000123", "ms")).toBe(1_760_000_000_123);
    expect(parseTimestamp("1760000000", "ms")).toBeNull();
  });

  it("lets a function read other texts, but none with a dot, a byte beyond ASCII or over 64 characters", () => {
    const read = (text: string) => Date.parse(text);
    expect(parseTimestamp("2025-10-09T08:53:20Z", read)).toBe(1_760_000_000_000);
    expect(parseTimestamp("Thu, 09 Oct 2025 08:53:20 GMT", read)).toBe(1_760_000_000_000);
    expect(parseTimestamp("2025-10-09T08:53:20.000Z", read)).toBeNull();
    for (const text of ["", "1".repeat(65), "1760000000\u00b2", "17600\n"])
      expect(parseTimestamp(text, () => 1)).toBeNull();
    expect(parseTimestamp("1".repeat(64), () => 1)).toBe(1);
  });

  it("rounds what a function makes of a finer time, as of microseconds: stores keep whole milliseconds", () => {
    expect(parseTimestamp("1760000000123456", (text) => Number(text) / 1_000)).toBe(1_760_000_000_123);
  });

  it.each([
    ["NaN", () => Number.NaN],
    ["Infinity", () => Number.POSITIVE_INFINITY],
    [
      "an error",
      () => {
        throw new RangeError("bad");
      },
    ],
  ])("takes %s from a function as malformed", (_, read) => {
    expect(parseTimestamp("x", read)).toBeNull();
  });
});

describe("checkAge()", () => {
  const now = 1_760_000_000_000;
  const tolerance = { past: 300_000, future: 300_000 };

  it.each([
    [-300_000, null],
    [-300_001, "timestamp_too_old"],
    [300_000, null],
    [300_001, "timestamp_in_future"],
    [0, null],
  ])("judges a timestamp %i ms from now", (offset, expected) => {
    expect(checkAge(now + offset, now, tolerance)).toBe(expected);
  });

  it("compares a time in whole seconds with the second that it is now", () => {
    expect(checkAge(now, now + 300_999, tolerance)).toBeNull();
    expect(checkAge(now, now + 301_000, tolerance)).toBe("timestamp_too_old");
    expect(checkAge(now + 1, now + 300_999, tolerance)).toBe("timestamp_too_old");
    expect(checkAge(now, now - 300_000, tolerance)).toBeNull();
    expect(checkAge(now, now - 300_001, tolerance)).toBe("timestamp_in_future");
  });
});

describe("timestampFormatOption()", () => {
  it("takes each format, a function, and nothing", () => {
    for (const format of ["auto", "s", "ms", () => 0, undefined]) expect(timestampFormatOption(format)).toBeUndefined();
  });
});

describe("toleranceOption()", () => {
  it.each([[0], [-1], [Number.NaN], [Number.POSITIVE_INFINITY], ["300000"], [null], [1.5], [30 * 86_400_000 + 1]])(
    "refuses %s, alone and each way",
    (value) => {
      expect(() => toleranceOption("toleranceMs", value, DEFAULT_TOLERANCE)).toThrow(/"toleranceMs"/);
      expect(() => toleranceOption("toleranceMs", { pastMs: value }, DEFAULT_TOLERANCE)).toThrow(
        /"toleranceMs.pastMs"/,
      );
      expect(() => toleranceOption("toleranceMs", { futureMs: value }, DEFAULT_TOLERANCE)).toThrow(
        /"toleranceMs.futureMs"/,
      );
    },
  );

  it("takes one number for both ways, or each way by itself", () => {
    expect(toleranceOption("t", 1000, DEFAULT_TOLERANCE)).toEqual({ pastMs: 1000, futureMs: 1000 });
    expect(toleranceOption("t", { pastMs: 1 }, DEFAULT_TOLERANCE)).toEqual({ pastMs: 1, futureMs: 300_000 });
    expect(toleranceOption("t", undefined, DEFAULT_TOLERANCE)).toBe(DEFAULT_TOLERANCE);
    expect(() => toleranceOption("t", { past: 1 }, DEFAULT_TOLERANCE)).toThrow(/pastMs/);
  });
});
