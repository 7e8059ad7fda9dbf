/** The conformance count: a rule counts as covered where a test names it, and nowhere else. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CLIENTS_RULES, conformance, total } from "../../scripts/conformance.ts";

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
    expect(conformance(root)).toMatchObject([
      {
        group: "RCV",
        rules: ["RCV-1", "RCV-2"],
        covered: ["RCV-1"],
        required: true,
        problems: ["RCV-2 is named by no test"],
      },
      { group: "ABC", rules: ["ABC-1"], covered: [], required: false, problems: [] },
    ]);
  });

  it("counts the published contract suites", () => {
    write("test/a.test.ts", "");
    write("src/testing/suite.ts", 'test("two (RCV-2)", () => {});');
    expect(conformance(root)[0]?.covered).toEqual(["RCV-2"]);
  });

  it("counts a rule of the service only where the emulator's tests name it", () => {
    write("docs/spec/conformance.md", "- DLV-1 one.\n- DLV-2 two.\n- DLV-3 three.\n");
    write("test/receiver/a.test.ts", 'it("one (DLV-1)", () => {});');
    write("test/emulator/a.test.ts", 'it("two (DLV-2)", () => {});');
    write("test/end-to-end/a.test.ts", 'it("three (DLV-3)", () => {});');
    expect(conformance(root)[0]).toMatchObject({ covered: ["DLV-2", "DLV-3"], required: true });
  });

  it("counts a client's rule apart, until a test names it", () => {
    write("docs/spec/conformance.md", "- SEA-1 one.\n- SEA-2 two.\n");
    write("test/emulator/a.test.ts", 'it("one (SEA-1)", () => {});');
    const apart = conformance(root, ["SEA-2"]);
    expect(apart).toMatchObject([{ rules: ["SEA-1"], covered: ["SEA-1"], clients: ["SEA-2"], problems: [] }]);
    expect(total(apart)).toEqual({ covered: 1, rules: 1, clients: 1 });
    write("test/emulator/b.test.ts", 'it("two (SEA-2)", () => {});');
    expect(conformance(root, ["SEA-2"])[0]?.problems).toEqual([
      "SEA-2 is named by a test, so it is not only the client's",
    ]);
  });

  it("requires the twelve groups of the service and the receiver, with few rules left to the client", () => {
    const rows = conformance(process.cwd());
    expect(rows.filter(({ required }) => required)).toHaveLength(12);
    expect(rows.flatMap(({ clients }) => clients)).toEqual(Object.keys(CLIENTS_RULES));
    expect(Object.keys(CLIENTS_RULES).length).toBeLessThan(5);
  });
});
