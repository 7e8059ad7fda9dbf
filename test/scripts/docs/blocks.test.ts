/** The extraction of documentation examples: a marker that is not understood must not hide an example. */
import { describe, expect, it } from "vitest";
import { examplesOf } from "../../../scripts/docs/blocks.ts";

const block = (code: string, language = "ts") => `\`\`\`${language}\n${code}\n\`\`\`\n`;

describe("examplesOf()", () => {
  it("takes ts and js blocks, with their place, and no others", () => {
    const examples = examplesOf("a.md", `# A\n${block("one()")}${block("{}", "json")}\n${block("two()", "js")}`);
    expect(examples.map(({ place, language, code }) => [place, language, code.trim()])).toEqual([
      ["a.md:2", "ts", "one()"],
      ["a.md:9", "js", "two()"],
    ]);
  });

  it("joins blocks that continue each other", () => {
    const [example, ...more] = examplesOf(
      "a.md",
      `<!-- example: one -->\n${block("a")}\n<!-- example: one, continued -->\n${block("b")}`,
    );
    expect(more).toEqual([]);
    expect(example?.code.split("\n").filter(Boolean)).toEqual(["a", "b"]);
  });

  it("reads what a server serves, and why a block is left out", () => {
    const [bills] = examplesOf("a.md", `<!-- example: s, serves /hooks for stripe -->\n${block("a")}`);
    expect(bills).toMatchObject({ serves: "/hooks", servesFor: "stripe" });
    const text = `<!-- example: s, serves /hooks -->\n${block("a")}<!-- no-run: needs a disk -->\n${block("b")}<!-- no-check: wrong -->\n${block("c")}`;
    expect(examplesOf("a.md", text).map(({ serves, leftOut }) => serves ?? leftOut)).toEqual([
      "/hooks",
      { from: "run", reason: "needs a disk" },
      { from: "check", reason: "wrong" },
    ]);
  });

  it("reads that an emulator runs beside it", () => {
    const text = `<!-- example: s, with emulator, serves /hooks -->\n${block("a")}<!-- example: t -->\n${block("b")}`;
    expect(examplesOf("a.md", text).map(({ serves, needsEmulator }) => [serves, needsEmulator])).toEqual([
      ["/hooks", true],
      [undefined, undefined],
    ]);
  });

  it("leaves those of other hosts to the programme that installs them", () => {
    const text = `<!-- example: koa, in test/proofs/hosts -->\n${block("a")}`;
    expect(examplesOf("a.md", text)).toMatchObject([
      { name: "a-md-koa", isForHosts: true, leftOut: { from: "check" } },
    ]);
  });

  it("gives examples of the same name in two documents different names, for each becomes a file", () => {
    const text = `<!-- example: emulator -->\n${block("a")}`;
    const names = ["README.md", "docs/emulator.md"].flatMap((file) => examplesOf(file, text).map(({ name }) => name));
    expect(new Set(names).size).toBe(2);
  });

  it.each([
    ["a marker without a reason", `<!-- no-run: -->\n${block("a")}`],
    ["an unknown word", `<!-- example: one, serve /x -->\n${block("a")}`],
    ["a name used twice", `<!-- example: one -->\n${block("a")}<!-- example: one -->\n${block("b")}`],
    ["a continuation of nothing", `<!-- example: one, continued -->\n${block("a")}`],
  ])("refuses %s", (_what, text) => {
    expect(() => examplesOf("a.md", text)).toThrow(/a\.md:\d/);
  });
});
