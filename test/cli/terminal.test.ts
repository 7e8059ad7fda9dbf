/** How results and progress are written. */
import { describe, expect, it } from "vitest";
import { barText, tableText } from "../../src/cli/terminal.ts";

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

describe("barText()", () => {
  it.each([
    [0, 4, "Doing [------------------------] 0 of 4"],
    [1_250, 5_000, "Doing [######------------------] 1,250 of 5,000"],
    [4, 4, "Doing [########################] 4 of 4"],
    [0, 0, "Doing [########################] 0 of 0"],
  ])("draws %i of %i", (done, total, text) => {
    expect(barText("Doing", done, total)).toBe(text);
  });
});
