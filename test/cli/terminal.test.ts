/** How results and progress are written. */
import { describe, expect, it } from "vitest";
import { barText, jsonLine, tableText } from "../../src/cli/terminal.ts";

describe("tableText()", () => {
  it("pads each column to its longest cell, and no line's end", () => {
    expect(
      tableText(
        ["id", "state"],
        [
          ["7", "dead"],
          ["1024", "pending"],
        ],
      ),
    ).toBe("id    state\n7     dead\n1024  pending\n");
  });
});

describe("jsonLine()", () => {
  it("writes out what a terminal would obey, and parses to the same", () => {
    const value = { text: "a\u009b2J\u202eb\r\n\u2028é" };
    expect(jsonLine(value)).toBe('{"text":"a\\u009b2J\\u202eb\\r\\n\\u2028é"}\n');
    expect(JSON.parse(jsonLine(value))).toEqual(value);
  });
});

describe("barText()", () => {
  it.each([
    [0, 4, "Doing [------------------------] 0 of 4"],
    [1_250, 5_000, "Doing [######------------------] 1,250 of 5,000"],
    [4, 4, "Doing [########################] 4 of 4"],
    [0, 0, "Doing [########################] 0 of 0"],
  ])("draws %i of %i", (done, total, text) => {
    expect(barText("Doing", done, total)).toBe(text);
  });

  it("counts where nobody knows how many there will be", () => {
    expect(barText("Copying events", 1_200, null)).toBe("Copying events 1,200");
  });
});
