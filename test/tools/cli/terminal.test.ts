/** How results and progress are written. */
import { describe, expect, it, vi } from "vitest";
import { barText, jsonLine, Terminal, tableText, unwritten } from "../../../src/tools/cli/terminal.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";

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

  it("takes rows with fewer cells than there are names, and with more", () => {
    expect(tableText(["id", "state"], [["7"], ["1024", "dead", "late"]])).toBe("id    state\n7\n1024  dead   late\n");
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

describe("Terminal", () => {
  /** What goes to standard error while `work` runs, as on a terminal or elsewhere. */
  async function errorsOf(isTerminal: boolean, work: () => unknown): Promise<string> {
    const before = process.stderr.isTTY;
    process.stderr.isTTY = isTerminal;
    let text = "";
    const write = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
      text += chunk;
      return true;
    });
    try {
      await work();
      return text;
    } finally {
      write.mockRestore();
      process.stderr.isTTY = before;
    }
  }

  it("draws progress where somebody watches, a few times a second, and removes it", async () => {
    const clock = createFakeClock();
    const drawn = await errorsOf(true, () => {
      const progress = new Terminal({}, clock).progress("Doing", 3);
      for (const done of [1, 2, 3]) progress.at(done);
      progress.end();
    });
    expect(drawn).toBe(`\r\u001b[K${barText("Doing", 1, 3)}\r\u001b[K${barText("Doing", 3, 3)}\r\u001b[K`);
  });

  it("shows the seconds of work that cannot be counted, and removes them", async () => {
    const clock = createFakeClock();
    const drawn = await errorsOf(true, async () => {
      const work = async () => {
        await clock.advance(2_500);
        throw new Error("it failed");
      };
      await expect(new Terminal({}, clock).during("Doing", work)).rejects.toThrow("it failed");
      await clock.advance(5_000);
    });
    expect(drawn).toBe(
      `${["Doing 0 s", "Doing 1 s", "Doing 2 s"].map((line) => `\r\u001b[K${line}`).join("")}\r\u001b[K`,
    );
  });

  it.each([
    ["nobody watches", {}, false],
    ["it is to be quiet", { quiet: true }, true],
    ["a program reads", { json: true }, true],
  ])("draws nothing where %s", async (_, flags, isTerminal) => {
    const drawn = await errorsOf(isTerminal, async () => {
      const progress = new Terminal(flags).progress("Doing", 3);
      progress.at(1);
      progress.end();
      await new Terminal(flags).during("Doing", async () => {});
    });
    expect(drawn).toBe("");
  });

  it.each([
    [true, "", "\u001b[31mdead\u001b[39m"],
    [true, "1", "dead"],
    [false, "", "dead"],
  ])("colours what is read on a terminal (%s), unless NO_COLOR is set (%j)", (isTerminal, noColor, expected) => {
    const before = process.stdout.isTTY;
    process.stdout.isTTY = isTerminal;
    // Later versions of Node ask the environment, too.
    vi.stubEnv("NO_COLOR", noColor).stubEnv("FORCE_COLOR", noColor === "" ? "1" : undefined);
    try {
      expect(new Terminal({}).style("red", "dead")).toBe(expected);
    } finally {
      vi.unstubAllEnvs();
      process.stdout.isTTY = before;
    }
  });

  it.each([
    ["caveat", {}, "There are more.\n"],
    ["caveat", { json: true }, "There are more.\n"],
    ["caveat", { json: true, quiet: true }, ""],
    ["note", {}, "There are more.\n"],
    ["note", { quiet: true }, ""],
    ["note", { json: true }, ""],
  ] as const)(
    "says what is missing to programs too, and remarks things to people alone: %s, %j",
    async (how, flags, text) => {
      expect(await errorsOf(false, () => new Terminal(flags)[how]("There are more."))).toBe(text);
    },
  );
});
