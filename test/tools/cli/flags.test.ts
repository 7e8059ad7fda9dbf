/** What flags' values may look like. */
import { describe, expect, it } from "vitest";
import { duration, instant, wholeNumber } from "../../../src/tools/cli/flags.ts";

describe("duration()", () => {
  it.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["90m", 5_400_000],
    ["1.5h", 5_400_000],
    ["7d", 604_800_000],
  ])("reads %s", (text, ms) => {
    expect(duration(text)).toBe(ms);
  });

  it.each(["90", "m", "-1h", "1 h", "1w", ""])("refuses %j with how it is written", (text) => {
    expect(() => duration(text)).toThrow("Write a number and a unit");
  });
});

describe("wholeNumber()", () => {
  it("keeps its bounds, both included", () => {
    const read = wholeNumber(1, 10);
    expect([read("1"), read("10")]).toEqual([1, 10]);
    for (const text of ["0", "11", "1.5", "ten", "-1", ""]) expect(() => read(text)).toThrow("from 1 to 10");
    expect(() => wholeNumber(1)("0")).toThrow("from 1.");
  });
});

describe("instant()", () => {
  it.each([
    ["1767225600000", 1_767_225_600_000],
    ["2026-01-01T00:00:00Z", 1_767_225_600_000],
    ["2026-01-01", 1_767_225_600_000],
    ["2026-01-01T01:00+01:00", 1_767_225_600_000],
    ["2025-12-31T18:30:00.000-05:30", 1_767_225_600_000],
    ["2028-02-29T00:00:00.5Z", 1_835_395_200_500],
  ])("reads %s", (text, at) => {
    expect(instant(text)).toBe(at);
  });

  it.each([
    ...["1767225600", "yesterday", "01/01/2026", "2026-01-01 10:00", "2026-01-01T00:00:00", "2026-01-01, or so"],
    ...["2026-13-01", "2026-02-30", "2026-02-29", "2026-04-31T00:00:00Z", "2026-01-00", "2026-01-01T24:00:00Z"],
    ...["2026-01-01T10:60Z", "2026-01-01T10:00.5Z", "2026-01-01T00:00:00+99:00", "2026-01-01T00:00:00+01:75"],
    "2026-01-01T00:00:00z",
  ])("refuses %j", (text) => {
    expect(() => instant(text)).toThrow("epoch milliseconds");
  });
});
