/** The conformance count: a rule counts as covered where a test names it, and nowhere else. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { conformance } from "../../scripts/conformance.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "oncehook-conformance-"));
  write("docs/spec/conformance.md", "## RCV\n\n- RCV-1 one.\n- RCV-2 two.\n\n- ABC-1 other, see RCV-3.\n");
  write("src/testing/suite.ts", "");
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

describe("conformance()", () => {
  it("counts a rule that a test names, not one in a comment", () => {
    write("test/a.test.ts", 'it("one (RCV-1)", () => {}); // RCV-2\n');
    write("test/bench.ts", 'const text = "RCV-2";');
    expect(conformance(root)).toEqual([
      { group: "RCV", rules: ["RCV-1", "RCV-2"], covered: ["RCV-1"], required: true },
      { group: "ABC", rules: ["ABC-1"], covered: [], required: false },
    ]);
  });

  it("counts the published contract suites", () => {
    write("test/a.test.ts", "");
    write("src/testing/suite.ts", 'test("two (RCV-2)", () => {});');
    expect(conformance(root)[0]?.covered).toEqual(["RCV-2"]);
  });
});
