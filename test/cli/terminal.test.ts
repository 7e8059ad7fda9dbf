/** How results and progress are written. */
import { describe, expect, it } from "vitest";
import { barText, jsonLine, tableText, unwritten } from "../../src/cli/terminal.ts";

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

  it.each(["\u061c", "\u00ad", "\u2066", "\ufeff", "\u{e0041}"])("leaves nothing unseen: %j", (text) => {
    expect(jsonLine({ text })).toMatch(/^[ -~]+\n$/);
    expect(JSON.parse(jsonLine({ text }))).toEqual({ text });
  });
});

describe("unwritten()", () => {
  it("says why the output was not taken, and nothing to a reader that is gone", () => {
    const cause = (code: string) => Object.assign(new Error(code), { code, syscall: "write" });
    const full = { exitCode: 1, message: "Cannot write to standard output: ENOSPC." };
    expect(unwritten(cause("ENOSPC"))).toMatchObject(full);
    expect(unwritten(cause("EPIPE"))).toMatchObject({ exitCode: 141, message: "" });
    const strange = new Error("a fault");
    expect(unwritten(strange)).toBe(strange);
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
