/** The verdict on mutants: a survivor without a reason is seen, and so is a reason without a survivor. */
import { describe, expect, it } from "vitest";
import { type Explained, judge, type Mutant, mutantsOf } from "./verdict.ts";

const NAME = { file: "src/a.ts", mutator: "StringLiteral", code: '"a"', becomes: '""' };
const REASON: Explained = { ...NAME, reason: "Nobody sees it." };
const mutant = (status: string, wish: Partial<Mutant> = {}): Mutant => ({ ...NAME, line: 3, status, ...wish });
const others = ["Killed", "Timeout"].map((status) => mutant(status, { code: "b" }));
const problems = (mutants: readonly Mutant[], explained: readonly Explained[] = [], least = 100) =>
  judge(mutants, { explained, least }).problems;

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
    expect(judge(others, { explained: [], least: 100 })).toEqual({
      ...{ tried: 2, killed: 2, explained: 0, leftOut: 0, problems: [] },
    });
  });

  it.each(["Survived", "NoCoverage"])("lists one that %s, with its file, line and mutator", (status) => {
    expect(problems([...others, mutant(status)])).toEqual([
      "66.7 % are killed instead of 100 %",
      'survived: src/a.ts:3 StringLiteral: "a" => ""',
    ]);
  });

  it("takes a survivor with a reason, wherever it stands now", () => {
    const verdict = judge([...others, mutant("Survived", { line: 9 })], { explained: [REASON], least: 100 });
    expect(verdict).toMatchObject({ tried: 3, killed: 2, explained: 1, problems: [] });
  });

  it("sees a reason whose mutant is killed, or is no more, but of its own files only", () => {
    const stale = ['explained, but no survivor: src/a.ts StringLiteral: "a" => ""'];
    expect(problems([...others, mutant("Killed")], [REASON])).toEqual(stale);
    expect(problems(others, [REASON])).toEqual(stale);
    expect(problems(others, [{ ...REASON, file: "src/b.ts" }])).toEqual([]);
  });

  it("takes a reason whose mutant was left out or too slow this time", () => {
    for (const status of ["Ignored", "Timeout"]) expect(problems([...others, mutant(status)], [REASON])).toEqual([]);
    expect(judge([...others, mutant("Ignored")], { explained: [], least: 100 })).toMatchObject({
      tried: 2,
      leftOut: 1,
    });
  });

  it("believes no run in which time ran out for all", () => {
    expect(problems([mutant("Timeout")])).toEqual(["time ran out for every mutant that was killed"]);
  });

  it("counts by the share that is asked for", () => {
    expect(problems([...others, mutant("Survived")], [], 66)).toEqual([]);
    expect(problems([...others, mutant("Survived")], [], 67)).toHaveLength(2);
  });

  it("proves nothing by none, and passes over no status that it does not know", () => {
    expect(problems([])).toEqual(["no mutant was killed"]);
    expect(problems([mutant("Survived")])).toEqual([
      "no mutant was killed",
      expect.stringContaining("survived: src/a.ts:3"),
    ]);
    expect(problems([...others, mutant("RuntimeError")])).toEqual(["src/a.ts:3 StringLiteral is RuntimeError"]);
  });
});
