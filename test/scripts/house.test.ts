/** The figures of the house: what each counts. */
import { describe, expect, it } from "vitest";
import { projectFrom } from "../../scripts/architecture/project.ts";
import { codeLines, isMet, median, sharedNames, sourceFigures } from "../../scripts/house/figures.ts";

const project = projectFrom(
  {
    "src/a.ts": '/** What it is for. */\nimport { b } from "./b.ts";\n\n// Why.\nexport const a = b;\n',
    "src/b.ts": "export interface Options {}\nexport const b = 1;\n",
    "src/c.ts": 'import { a } from "./a.ts";\nexport interface Options { a: typeof a }\ninterface Inner {}\n',
    "adapters/d.ts": 'import { a } from "../src/a.ts";\ninterface Inner { a: typeof a }\n',
    "test/a.test.ts": "export const a = 1;\n",
  },
  { manifest: { exports: {} }, entries: {}, reference: "" },
);

it("counts code without blanks and comments", () => {
  expect(project.files.map((file) => codeLines(file))).toEqual([2, 2, 3, 2, 1]);
});

it("counts the shipped sources, and what is beside them", () => {
  expect(sourceFigures(project, 3).map(({ value }) => value)).toEqual([7, 9, 2.5, 1]);
});

it("finds exported names with two homes, and no inner ones", () => {
  expect(sharedNames(project)).toEqual([["Options", ["src/b.ts", "src/c.ts"]]]);
});

describe("isMet()", () => {
  const figure = { name: "", unit: "", most: 160, least: 120 };
  it.each([
    [119, false],
    [120, true],
    [160, true],
    [161, false],
  ])("says of %d: %s", (value, met) => {
    expect(isMet({ ...figure, value })).toBe(met);
  });
});

it("takes the middle of an odd and of an even count", () => {
  expect([median([3, 1, 2]), median([4, 1, 2, 3])]).toEqual([2, 2.5]);
});
