import { describe, expect, it } from "vitest";
import {
  formatAge,
  formatClock,
  formatCount,
  formatDuration,
  formatTime,
} from "../../../../src/tools/inspector/page/format.ts";

const NOW = new Date(2026, 10, 22, 13, 9, 16, 204).getTime();

describe("formatTime()", () => {
  it("tells the date and the time of the browser's zone, to the millisecond", () => {
    expect(formatTime(NOW)).toBe("2026-11-22 13:09:16.204");
  });

  it("tells a time that no date can hold as the number that it is, and nothing of what has not happened", () => {
    expect(formatTime(Number.MAX_SAFE_INTEGER)).toBe("9007199254740991");
    expect(formatTime(-Number.MAX_SAFE_INTEGER)).toBe("-9007199254740991");
    expect(formatTime(new Date(12_026, 10, 22, 13, 9, 16, 204).getTime())).toBe("+012026-11-22 13:09:16.204");
    expect(formatTime(null)).toBe("–");
    expect(formatClock(null, NOW)).toBe("–");
  });
});

describe("formatClock()", () => {
  it("leaves out today's date, not that of the day before, even if it is less than a day ago", () => {
    expect(formatClock(NOW - 9 * 60_000, NOW)).toBe("13:00:16");
    expect(formatClock(NOW - 14 * 3_600_000, NOW)).toBe("11-21 23:09:16");
  });
});

describe("formatAge()", () => {
  it.each([
    [0, "now"],
    [-5_000, "now"],
    [3_000, "3 s ago"],
    [125_000, "2 min ago"],
    [2 * 3_600_000, "2 h ago"],
    [50 * 3_600_000, "2 d ago"],
  ])("of %d ms is %s", (ms, text) => {
    expect(formatAge(NOW - ms, NOW)).toBe(text);
  });

  it("of what never happened is never", () => {
    expect(formatAge(null, NOW)).toBe("never");
  });
});

describe("formatDuration()", () => {
  it.each([
    [0, "0 ms"],
    [339.6, "340 ms"],
    [999, "999 ms"],
    [1_000, "1 s"],
    [2_590, "2.5 s"],
    [59_999, "59 s"],
    [250_000, "4 min 10 s"],
    [3_600_000, "1 h"],
    [11_100_000, "3 h 5 min"],
    [187_200_000, "2 d 4 h"],
    [null, "–"],
  ])("of %s is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe("formatCount()", () => {
  it.each([
    [0, "0"],
    [0.25, "0.3"],
    [9.96, "10"],
    [12.4, "12"],
    [999, "999"],
    [999.5, "1,000"],
    [12_408, "12,408"],
    [1_000_000, "1,000,000"],
  ])("of %d is %s", (n, text) => {
    expect(formatCount(n)).toBe(text);
  });
});
