/** The verdict on mutants: the score is held against the floor, and each one that lived is listed. */
import { describe, expect, it } from "vitest";
import { judge, type Mutant, mutantsOf } from "./verdict.ts";

const NAME = { file: "src/a.ts", mutator: "StringLiteral", code: '"a"', becomes: '""' };
const mutant = (status: string, wish: Partial<Mutant> = {}): Mutant => ({ ...NAME, line: 3, status, ...wish });
const others = ["Killed", "Timeout"].map((status) => mutant(status, { code: "b" }));
const problems = (mutants: readonly Mutant[], floor = 100) => judge(mutants, floor).problems;

describe("mutantsOf()", () => {
  it("names a mutant by its file, its line and what it changed, on one line", () => {
    const location = { start: { line: 1, column: 9 }, end: { line: 2, column: 4 } };
    const reported = { mutatorName: "BlockStatement", replacement: "{\n}", status: "Killed", location };
    const files = { "src/a.ts": { source: "if (a) {\n  }  // end", mutants: [reported] } };
    const expected = {
      file: "src/a.ts",
      line: 1,
      mutator: "BlockStatement",
      status: "Killed",
      code: "{ }",
      becomes: "{ }",
    };
    expect(mutantsOf({ files: { "src/a.ts": { ...files["src/a.ts"], source: "if (a)  {\n  }  // end" } } })).toEqual([
      expected,
    ]);
  });
});

describe("judge()", () => {
  it("has nothing to say when all are killed, in time or not", () => {
    expect(judge(others, 100)).toEqual({ tried: 2, killed: 2, score: 100, lived: [], leftOut: 0, problems: [] });
  });

  it.each(["Survived", "NoCoverage"])("lists one that %s, with its file, line and mutator", (status) => {
    const { lived, problems } = judge([...others, mutant(status)], 100);
    expect(lived).toEqual(['src/a.ts:3 StringLiteral: "a" => ""']);
    expect(problems).toEqual(["66.7 % are killed instead of 100 %"]);
  });

  it("lists those that lived above the floor too", () => {
    const verdict = judge([...others, mutant("Survived")], 66);
    expect(verdict).toMatchObject({ tried: 3, killed: 2, problems: [] });
    expect(verdict.lived).toHaveLength(1);
  });

  it("does not count one that was left out", () => {
    expect(judge([...others, mutant("Ignored")], 100)).toMatchObject({ tried: 2, leftOut: 1, problems: [] });
  });

  it("believes no run in which time ran out for all", () => {
    expect(problems([mutant("Timeout")])).toEqual(["time ran out for every mutant that was killed"]);
  });

  it("compares the score with the floor", () => {
    expect(problems([...others, mutant("Survived")], 66)).toEqual([]);
    expect(problems([...others, mutant("Survived")], 67)).toHaveLength(1);
  });

  it("proves nothing by none, and passes over no status that it does not know", () => {
    expect(problems([], 0)).toEqual(["no mutant was killed"]);
    expect(problems([mutant("Survived")])).toEqual(["no mutant was killed"]);
    expect(problems([...others, mutant("RuntimeError")])).toEqual(["src/a.ts:3 StringLiteral is RuntimeError"]);
  });
});
