/** The bugs still fit the sources, so that whoever moves code hears of it at once; `npm run prove -- planted` shows that each is found. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { BUGS, editsOf } from "./bugs.ts";
import { MATRIX_FILE, rowOf, rowsIn, withRows } from "./matrix.ts";
import { MUTANTS } from "./mutants.ts";
import { changesIn, mutantsOf } from "./mutations.ts";
import { editAt, withEdits } from "./places.ts";
import { rewritten } from "./rewritten.ts";
import { ROOMS } from "./rooms.ts";
import { treeOf } from "./tree.ts";

/** So that none goes without a word. */
const LEAST = 95;
const LEAST_MUTANTS = 31;
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const source = (file: string) => readFileSync(`${ROOT}${file}`, "utf8");
const DOCUMENT = source(MATRIX_FILE);

describe("the planted bugs", () => {
  it("have a name of their own each, and many of them nobody chose", () => {
    expect(new Set(BUGS.map(({ name }) => name)).size).toBe(BUGS.length);
    expect(BUGS.length).toBeGreaterThanOrEqual(LEAST);
    expect(MUTANTS.length).toBeGreaterThanOrEqual(LEAST_MUTANTS);
  });

  it("are 24 in the small form", () => {
    expect(BUGS.filter(({ inSmall }) => inSmall)).toHaveLength(24);
  });

  it.each(BUGS)("can be planted: $name", (bug) => {
    const { tests, caughtBy, says, inSmall } = bug;
    const edits = editsOf(ROOT, bug);
    expect(edits.length).toBeGreaterThan(0);
    for (const file of new Set(edits.map((edit) => edit.file))) {
      const text = source(file);
      const planted = withEdits(
        text,
        edits.filter((edit) => edit.file === file),
      );
      expect(planted).not.toBe(text);
      expect(() => treeOf(planted)).not.toThrow();
    }
    expect(existsSync(`${ROOT}${tests}`)).toBe(true);
    const words = expect.stringMatching(/./);
    expect({ caughtBy, says }).toEqual(caughtBy === undefined ? {} : { caughtBy: words, says: words });
    if (inSmall) expect(caughtBy).toBeDefined();
  });

  it("have the rows of the matrix, each for what was seen to find it", () => {
    expect(rowsIn(DOCUMENT)).toEqual(BUGS.map(rowOf));
  });
});

describe("a source that was formatted anew, and whose local variables have other names,", () => {
  const others = new Map<string, string>();
  const otherOf = (file: string) => {
    const other = others.get(file) ?? rewritten(source(file));
    others.set(file, other);
    return other;
  };
  const byHand = BUGS.flatMap(({ name, places = [] }) => places.map((place) => ({ name, place })));

  it.each(byHand)("still has the place of $name, in $place.file", ({ place }) => {
    const edit = editAt(otherOf(place.file), place);
    expect(edit.end).toBeGreaterThanOrEqual(edit.start);
  });

  const functions = ROOMS.flatMap(({ places }) => Object.entries(places).map(([file, names]) => ({ file, names })));

  it.each(functions)("has the same mutants: $file", ({ file, names }) => {
    const namesIn = (text: string) => changesIn(text, new Set(names)).map(({ place, what }) => `${place}: ${what}`);
    const text = source(file);
    expect(otherOf(file)).not.toBe(text);
    expect(namesIn(otherOf(file))).toEqual(namesIn(text));
  });
});

describe("mutantsOf()", () => {
  it.each(ROOMS)("gives each mutant of $name a name of its own", (room) => {
    const mutants = mutantsOf(ROOT, room);
    expect(mutants.length).toBeGreaterThanOrEqual(room.sampled);
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  });
});

describe("withRows()", () => {
  const [first, second] = BUGS;

  it("keeps the rows that are there, in the order of the list, and no row of what is gone", () => {
    if (first === undefined || second === undefined) throw new Error("There are no bugs.");
    const one = withRows(DOCUMENT.replace(/\n\| .* \|(?=\n<!-- end of bugs)/, "\n| a | gone | hand | `sim` | `x` |"), [
      second,
    ]);
    expect(rowsIn(one)).not.toContain("| a | gone | hand | `sim` | `x` |");
    expect(rowsIn(withRows("", []))).toEqual([]);
    expect(rowsIn(withRows("", [second, first]))).toEqual([rowOf(first), rowOf(second)]);
  });
});
