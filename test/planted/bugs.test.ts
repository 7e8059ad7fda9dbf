/** The bugs still fit the sources, so that whoever moves code hears of it at once; `npm run prove -- planted` shows that each is found. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { BUGS, editsOf } from "./bugs.ts";
import { timesIn } from "./copy.ts";
import { MATRIX_FILE, rowOf, rowsIn, withRows } from "./matrix.ts";
import { MUTANTS } from "./mutants.ts";
import { mutantsOf } from "./mutations.ts";
import { ROOMS } from "./rooms.ts";

/** So that none goes without a word. */
const LEAST = 60;
const LEAST_MUTANTS = 28;
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DOCUMENT = readFileSync(`${ROOT}${MATRIX_FILE}`, "utf8");

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
    const { tests, says } = bug;
    const edits = editsOf(ROOT, bug);
    expect(edits.length).toBeGreaterThan(0);
    for (const edit of edits) {
      expect(`${timesIn(ROOT, edit)} times in ${edit.file}: ${edit.find}`).toBe(
        `1 times in ${edit.file}: ${edit.find}`,
      );
      expect(edit.replace).not.toBe(edit.find);
    }
    expect(existsSync(`${ROOT}${tests}`)).toBe(true);
    expect(says).not.toBe("");
  });

  it("have the rows of the matrix, each for what was seen to find it", () => {
    expect(rowsIn(DOCUMENT)).toEqual(BUGS.map(rowOf));
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
