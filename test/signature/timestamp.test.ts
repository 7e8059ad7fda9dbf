import { describe, expect, it } from "vitest";
import {
  checkAge,
  DEFAULT_TOLERANCE,
  parseTimestamp,
  timestampFormatOption,
  toleranceOption,
} from "../../src/signature/verify.ts";

const digits = "17600000000000000";
const arabicIndic = "١٧٦٠٠٠٠٠٠٠";
const fullWidth = "１７６００００００００００";

describe("parseTimestamp()", () => {
  it.each(Array.from({ length: 18 }, (_, length) => length))("takes 10 and 13 digits only: %i digits", (length) => {
    const expected = length === 10 ? 1_760_000_000_000 : length === 13 ? 1_760_000_000_000 : null;
    expect(parseTimestamp(digits.slice(0, length), "auto")).toBe(expected);
  });

  it.each([
    ["+1760000000"],
    ["-1760000000"],
    ["+176000000"],
    ["-176000000"],
    [" 1760000000"],
    ["1760000000 "],
    [" 176000000"],
    ["176000000 "],
    ["\t176000000"],
    ["1760000000\n"],
    ["176000000\n"],
    ["\u00a0176000000"],
    ["1.76000000"],
    ["17600000.0"],
    ["1760000000.5"],
    ["1760000000.12"],
    ["1.760000e12"],
    ["1.76e9    "],
    ["0x68e78c00"],
    ["0x68e78c00000"],
    ["1_760_000_0"],
    ["1,760,000,"],
    ["1760000000,1760000000"],
    ["1760000000, 1760000000"],
    ["Infinity10"],
    ["NaNNaNNaNN"],
    ["2025-10-09"],
    ["1760000000n"],
    ["176000000n"],
    [arabicIndic],
    [fullWidth],
    ["१७६०००००००"],
    ["𝟏𝟕𝟔𝟎𝟎"],
    ["176000000０"],
    ["176000000\u0000"],
    ["176000000²"],
    [""],
  ])("refuses %j", (text) => {
    for (const format of ["auto", "s", "ms"] as const) expect(parseTimestamp(text, format)).toBeNull();
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

  it.each([
    [-300_000, null],
    [-300_001, "timestamp_too_old"],
    [300_000, null],
    [300_001, "timestamp_in_future"],
    [0, null],
  ])("judges a timestamp %i ms from now", (offset, expected) => {
    expect(checkAge(now + offset, now, DEFAULT_TOLERANCE)).toBe(expected);
  });

  it("takes the 81 minutes of a retry that was not signed again within 90 (DLV-17)", () => {
    const tolerance = { pastMs: 90 * 60_000, futureMs: 300_000 };
    expect(checkAge(now - 81 * 60_000, now, tolerance)).toBeNull();
    expect(checkAge(now - 91 * 60_000, now, tolerance)).toBe("timestamp_too_old");
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
