/** The checker of plain English: what it finds, and what it leaves alone. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { dialectOf, readAloud, sentencesOf } from "../../scripts/plain-english.ts";

const folder = mkdtempSync(join(tmpdir(), "oncehook-plain-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("dialectOf()", () => {
  it.each([
    ["No retry could mend it.", "mend"],
    ["The lane is no message.", "is no message"],
    ["Whoever asks gets it.", "Whoever"],
    ["It is handed out again.", "handed out"],
    ["What is given up is listed.", "What is given"],
    ["It waits; else it ends.", "; else"],
    ["All but for the last.", "but for"],
  ])("finds %j", (text, found) => {
    expect(dialectOf(text, true).map((finding) => finding.found)).toEqual([found]);
  });

  it("names the line", () => {
    expect(dialectOf("fine\nmended", true)).toEqual([{ line: 2, found: "mended", better: "fix" }]);
  });

  it.each(["It is no longer held.", "Code in `mend()` is not prose.", "If not, or else if so.", "There is no limit."])(
    "leaves %j alone",
    (text) => {
      expect(dialectOf(text, true)).toEqual([]);
    },
  );

  it("reads the comments and messages of code, and no names", () => {
    const code = ["const mended = whoever(mend);", "// This mends it.", 'throw new Error("The tenant is no text.");'];
    expect(dialectOf(code.join("\n"), false).map(({ line }) => line)).toEqual([2, 3]);
  });
});

describe("sentencesOf()", () => {
  it("ends a sentence at a full stop, a list item, a table cell and a paragraph", () => {
    const page =
      "One two three. Four five six seven\n\n- one two three\n- four five six\n\n| a | b |\n|---|---|\n| one \\| two three | four five six |";
    expect(sentencesOf(page)).toEqual([
      ...[
        "One two three.",
        "Four five six seven",
        "one two three",
        "four five six",
        "one \\| two three",
        "four five six",
      ],
    ]);
  });

  it("leaves out headings and code, and counts a link by its text", () => {
    const page = "# One two three four\n\n```ts\none two three four\n```\nSee [the guide](a/b.md) here.";
    expect(sentencesOf(page)).toEqual(["See the guide here."]);
  });
});

describe("readAloud()", () => {
  it("counts the files and says where the dialect stands", () => {
    writeFileSync(join(folder, "page.md"), "We mend it.\n");
    writeFileSync(join(folder, "code.ts"), "// fine\n");
    expect(readAloud(folder, ["page.md", "code.ts"])).toEqual({ files: 2, problems: ['page.md:1 "mend": fix'] });
  });

  it("refuses a page of long sentences", () => {
    writeFileSync(join(folder, "README.md"), Array.from({ length: 10 }, () => sentenceOf(19)).join("\n"));
    expect(readAloud(folder, ["README.md"]).problems).toEqual([
      "README.md: 19.0 words a sentence on average, at most 18",
    ]);
  });

  it("refuses one sentence above the limit, also in a table, where users read", () => {
    const page = `| ${sentenceOf(41)} | short enough here |\n`;
    mkdirSync(join(folder, "docs/decisions"), { recursive: true });
    for (const file of ["docs/page.md", "docs/decisions/0001.md"]) writeFileSync(join(folder, file), page);
    const { problems } = readAloud(folder, ["docs/page.md", "docs/decisions/0001.md"]);
    expect(problems).toEqual([expect.stringContaining("docs/page.md: 41 words, at most 40")]);
  });
});

function sentenceOf(words: number): string {
  return `${Array.from({ length: words }, () => "word").join(" ")}.`;
}
