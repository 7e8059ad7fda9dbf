/** The proof programmes' entries: one that CI does not run, or the table does not have, is seen. */
import { describe, expect, it } from "vitest";
import { disagreements, listed } from "../../scripts/programmes.ts";

const USAGE = "usage: npm run prove -- NAME [--full]\n  one          this\n  two-three    that\n";
const PROGRAMMES = ["one", "two-three"];
const CI = 'prove one "first"\nif $full; then\n  traced prove two-three "second"\nfi\n';
const GUIDE =
  "| command |\n|---|\n| `four` | x |\n\n| programme | shows |\n|---|---|\n| `one` | x |\n| `two-three` | x |\n\nMore.";

describe("listed()", () => {
  it("takes the names of the usage", () => {
    expect(listed(USAGE)).toEqual(PROGRAMMES);
  });
});

describe("disagreements()", () => {
  it("finds none where each has its step and its row", () => {
    expect(disagreements(PROGRAMMES, { ci: CI, guide: GUIDE })).toEqual([]);
  });

  it("names what has no step or no row", () => {
    expect(disagreements([...PROGRAMMES, "four"], { ci: CI, guide: GUIDE })).toEqual([
      "four is missing in .ci/run",
      "four is missing in the table of CONTRIBUTING.md",
    ]);
  });

  it("names steps and rows without a programme, and misses all rows without the table", () => {
    expect(disagreements(["one"], { ci: CI, guide: "" })).toEqual([
      ".ci/run has two-three, which is no programme",
      "one is missing in the table of CONTRIBUTING.md",
    ]);
  });
});
