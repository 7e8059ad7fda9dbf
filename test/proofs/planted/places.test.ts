/** A place is found by what its code is, and not by how it is written. */
import { describe, expect, it } from "vitest";
import { code, editAt, importIn, type Place, withEdits, words } from "./places.ts";
import { rewritten } from "./rewritten.ts";

const FILE = "src/clock.ts";
const SOURCE = `
import { now } from "./now.ts";

export function isDue(readyAt: number, clock: Clock): boolean {
  const waited: number = clock.read(now(), { since: readyAt });
  if (waited < 0) return false;
  return readyAt <= waited;
}

class Lanes {
  #due(lane: Lane) {
    return this.#sql.all("select id from lane where  due <= ?", lane.id) as Row[];
  }
}
`;
const planted = (place: Place, source = SOURCE) => withEdits(source, [editAt(source, place)]);

describe("editAt()", () => {
  it.each<[string, Place, string]>([
    ["an operator", code(FILE, "isDue", "$readyAt <= $waited", "$readyAt < $waited"), "return readyAt < waited;"],
    ["a statement", code(FILE, "isDue", "if ($waited < 0) return false;", ""), "\n  \n  return readyAt"],
    ["a call in a private method", code(FILE, "#due", "this.#sql.all($$all)", "[]"), "return [] as Row[];"],
    [
      "a call by the fields that it gives, and a parameter",
      code(FILE, "isDue($readyAt, $clock)", "{ since: $readyAt }", "{ since: $clock.start }"),
      "clock.read(now(), { since: clock.start })",
    ],
    [
      "all of it",
      code(FILE, "isDue", "$clock.read($$given)", "max($0, 0)"),
      "max(clock.read(now(), { since: readyAt }), 0)",
    ],
    ["a word of SQL", words(FILE, "#due", "where due <= ?", "where due < ?"), 'lane where due < ?"'],
  ])("finds %s", (_what, place, expected) => {
    expect(planted(place)).toContain(expected);
  });

  it("finds the same in a source that somebody else wrote", () => {
    const place = code(FILE, "isDue($readyAt)", "$readyAt <= $waited", "$readyAt < $waited");
    const other = `export function isDue(
      at,
      c
    ) { const w = c.read(now(), { since: at }); if (w < 0) { return !1; } return (at
      <= w) }`;
    expect(planted(place, other)).toContain("return (at < w) }");
    expect(rewritten(SOURCE)).not.toContain("waited");
    expect(planted(place, rewritten(SOURCE))).toMatch(/return \w+ < \w+\}/);
  });

  it("puts an import in front of all", () => {
    expect(planted(importIn(FILE, "import x from 'x';"))).toBe(`import x from 'x';\n${SOURCE}`);
  });

  it.each<[string, Place, string]>([
    ["is not there", code(FILE, "isDue", "$a > $b", "false"), "0 times"],
    ["is in another function", code(FILE, "#due", "$a <= $b", "false"), "0 times"],
    ["is in no function of that name", code(FILE, "isOver", "$a <= $b", "false"), "0 times"],
    ["has two different names for one hole", code(FILE, "isDue", "$a <= $a", "false"), "0 times"],
    ["may be one of two", code(FILE, "isDue", "$f($$all)", "0"), "2 times"],
  ])("throws where the place %s", (_what, place, problem) => {
    expect(() => editAt(SOURCE, place)).toThrow(problem);
  });

  it("throws for a hole that nothing fills, and for what is not one expression or statement", () => {
    expect(() => editAt(SOURCE, code(FILE, "isDue", "$a <= $b", "$c"))).toThrow("nothing for $c");
    expect(() => editAt(SOURCE, code(FILE, "isDue", "one(); two();", ""))).toThrow("Not one expression");
  });
});

describe("withEdits()", () => {
  it("refuses changes that overlap", () => {
    const edits = [
      editAt(SOURCE, code(FILE, "isDue", "$a <= $b", "false")),
      editAt(SOURCE, code(FILE, "isDue", "return $a <= $b;", "")),
    ];
    expect(() => withEdits(SOURCE, edits)).toThrow("overlap");
  });
});
