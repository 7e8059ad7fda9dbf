/** The steps of a tutorial: one that is not understood must not be left out in silence. */
import { describe, expect, it } from "vitest";
import { isPrinted, stepsOf } from "../../../scripts/docs/tutorial.ts";

const block = (content: string, language = "sh") => `\`\`\`${language}\n${content}\n\`\`\`\n`;

describe("stepsOf()", () => {
  it("returns files, commands, what they print, and what is not followed, in their order", () => {
    const page = [
      `# A\n\nWords.\n\n${block("npm init -y")}`,
      `<!-- file: lib/a.ts -->\n${block("one();", "ts")}`,
      `<!-- keeps running -->\n${block("npm start")}`,
      `<!-- exits with 3 -->\n${block("false")}`,
      block("Listening\n\nhandled", "text"),
      `<!-- not followed: needs Docker -->\n${block("docker build .")}`,
    ].join("\n");
    expect(stepsOf("a.md", page)).toEqual([
      { kind: "commands", place: "a.md:5", commands: "npm init -y\n", exitCode: 0 },
      { kind: "file", place: "a.md:9", name: "lib/a.ts", content: "one();\n" },
      { kind: "keeps running", place: "a.md:14", commands: "npm start\n" },
      { kind: "commands", place: "a.md:19", commands: "false\n", exitCode: 3 },
      { kind: "prints", place: "a.md:24", lines: ["Listening", "", "handled"] },
      { kind: "not followed", place: "a.md:30", reason: "needs Docker" },
    ]);
  });

  it.each([
    ["code without a file", block("one();", "ts")],
    ["an unknown language", block("echo", "bash")],
    ["an unknown marker", `<!-- keeps on running -->\n${block("npm start")}`],
    ["a file without a name", `<!-- file: -->\n${block("one();", "ts")}`],
    ["a block that is left out without a reason", `<!-- not followed: -->\n${block("docker build .")}`],
  ])("throws on %s, and says where it is", (_case, page) => {
    expect(() => stepsOf("a.md", `# A\n\n${page}`)).toThrow(/^a\.md:\d+ is not a step: /);
  });
});

describe("isPrinted()", () => {
  const printed = ["200     14 ms  message.queued  msg_1  1  accepted", "a (b) [c].", "handled message.queued msg_1"];

  it.each([
    ["whatever the times and the widths of gaps", ["200  3 ms  message.queued  msg_1  1  accepted"]],
    [
      "with other lines between them",
      ["200  3 ms  message.queued  msg_1  1  accepted", "handled message.queued msg_1"],
    ],
    ["with signs that patterns know", ["a (b) [c]."]],
    ["with anything at …", ["handled … msg_1"]],
  ])("finds lines %s", (_case, expected) => {
    expect(isPrinted(expected, printed)).toBe(true);
  });

  it.each([
    ["another word", ["200  3 ms  message.queued  msg_1  1  duplicate"]],
    ["a part of a line", ["handled message.queued"]],
    ["another order", ["handled message.queued msg_1", "a (b) [c]."]],
    ["a line that is there once only", ["a (b) [c].", "a (b) [c]."]],
  ])("does not find %s", (_case, expected) => {
    expect(isPrinted(expected, printed)).toBe(false);
  });
});
