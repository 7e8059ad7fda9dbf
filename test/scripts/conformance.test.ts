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
  write("src/tools/testing/suite.ts", "");
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
    expect(conformance(root, {}).slice(0, 2)).toMatchObject([
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

  it("does not count the tests of installed packages", () => {
    write("test/a.test.ts", "");
    write("test/proofs/hosts/node_modules/other/a.test.ts", 'it("one (RCV-1)", () => {});');
    expect(conformance(root, {})[0]?.covered).toEqual([]);
  });

  it("counts the published contract suites", () => {
    write("test/a.test.ts", "");
    write("src/tools/testing/suite.ts", 'test("two (RCV-2)", () => {});');
    expect(conformance(root)[0]?.covered).toEqual(["RCV-2"]);
  });

  it("counts a rule of the service only where the emulator's tests name it", () => {
    write("docs/spec/conformance.md", "- DLV-1 one.\n- DLV-2 two.\n- DLV-3 three.\n");
    write("test/receiver/a.test.ts", 'it("one (DLV-1)", () => {});');
    write("test/messaging/emulator/a.test.ts", 'it("two (DLV-2)", () => {});');
    write("test/proofs/end-to-end/a.test.ts", 'it("three (DLV-3)", () => {});');
    expect(conformance(root)[0]).toMatchObject({ covered: ["DLV-2", "DLV-3"], required: true });
  });

  it("counts a rule of the client where what uses it is tested, not at the emulator", () => {
    write("docs/spec/conformance.md", "- CLI-1 one.\n- CLI-2 two.\n- CLI-3 three.\n- CLI-4 four.\n");
    write("test/messaging/emulator/a.test.ts", 'it("one (CLI-1)", () => {});');
    write("test/messaging/client/a.test.ts", 'it("two (CLI-2)", () => {});');
    write("test/messaging/rotation/a.test.ts", 'it("three (CLI-3)", () => {});');
    write("test/proofs/end-to-end/a.test.ts", 'it("four (CLI-4)", () => {});');
    expect(conformance(root, {})[0]).toMatchObject({ covered: ["CLI-2", "CLI-3", "CLI-4"], required: true });
  });

  it("asks for a test of the client, besides the service's, where a rule binds both", () => {
    write("docs/spec/conformance.md", "- UPD-1 one.\n");
    write("test/messaging/emulator/a.test.ts", 'it("one (UPD-1)", () => {});');
    const part = { "UPD-1": { client: "does its part" } };
    const [group, client] = conformance(root, part);
    expect(group).toMatchObject({ covered: ["UPD-1"], problems: [] });
    expect(client).toMatchObject({
      required: true,
      covered: [],
      problems: ["UPD-1 is named by no test of the client"],
    });
    write("test/messaging/rotation/a.test.ts", 'it("one (UPD-1)", () => {});');
    expect(conformance(root, part)[1]?.covered).toEqual([]);
    write("test/messaging/client/a.test.ts", 'it("one (UPD-1)", () => {});');
    expect(conformance(root, part)[1]).toMatchObject({ covered: ["UPD-1"], problems: [] });
    rmSync(join(root, "test/messaging/emulator"), { recursive: true });
    expect(conformance(root, part)[0]?.problems).toEqual(["UPD-1 is named by no test"]);
  });

  it("asks for nothing at the service where a rule is the client's alone", () => {
    write("docs/spec/conformance.md", "- SEA-1 one.\n- SEA-2 two.\n");
    write("test/messaging/emulator/a.test.ts", 'it("both (SEA-1, SEA-2)", () => {});');
    const part = { "SEA-2": { client: "does its part", isClientsAlone: true } };
    expect(conformance(root, part)[0]?.problems).toEqual(["SEA-2 is named by no test"]);
    write("test/messaging/client/a.test.ts", 'it("two (SEA-2)", () => {});');
    expect(conformance(root, part)[0]?.problems).toEqual([]);
    expect(total(conformance(root, part))).toEqual({ covered: 2, rules: 2, clients: 1 });
  });

  it("takes no rule for the client's that the document does not have", () => {
    write("docs/spec/conformance.md", "- SEA-1 one.\n");
    write("test/messaging/client/a.test.ts", 'it("two (SEA-2)", () => {});');
    expect(conformance(root, { "SEA-2": { client: "does its part" } })[1]?.problems).toHaveLength(1);
  });

  it("requires the thirteen groups, and the client's rules of the service's", () => {
    const rows = conformance(process.cwd());
    expect(rows.filter(({ required }) => required)).toHaveLength(14);
    expect(rows.at(-1)?.rules).toEqual(Object.keys(CLIENTS_RULES));
    expect(total(rows).rules).toBe(205);
  });
});
