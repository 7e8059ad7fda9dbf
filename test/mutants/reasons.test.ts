/** The rooms and the reasons still fit the sources, so that a commit that moves code updates them at once; no mutant is tried here. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { EXPLAINED } from "./explained.ts";
import { LEFT_OUT, OTHER_ROOMS, SIGNATURE } from "./rooms.ts";
import { asOneLine, type MutantName } from "./verdict.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FILES = ["src", "adapters", "test"].flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
);
const ROOMS = [SIGNATURE, ...OTHER_ROOMS];

describe("the rooms of the mutants", () => {
  const patterns = ROOMS.flatMap(({ name, sources, tests }) => [...sources, ...tests].map((glob) => ({ name, glob })));

  it.each(patterns)("have files: $name, $glob", ({ glob }) => {
    expect(matching(glob)).not.toEqual([]);
  });

  it.each(LEFT_OUT)("leave tests out that exist: %s", (glob) => {
    expect(matching(glob)).not.toEqual([]);
  });
});

describe("the reasons why mutants live", () => {
  const sources = new Set(ROOMS.flatMap(({ sources }) => sources.flatMap(matching)));

  it("quote code that is there, in a file of a room", () => {
    expect(EXPLAINED.length).toBeGreaterThan(0);
    expect(EXPLAINED.flatMap((reason) => wrongIn(reason, sources))).toEqual([]);
  });

  it.each([
    [{ file: "src/gone.ts" }, "src/gone.ts does not exist"],
    [{ file: "src/client/index.ts" }, "src/client/index.ts is in no room"],
    [{ code: "nowhere()" }, "src/errors.ts has no nowhere()"],
  ])("would be seen to be wrong: %o", (wrong, problem) => {
    const right = { file: "src/errors.ts", mutator: "BlockStatement", code: "export class", becomes: "" };
    expect(wrongIn(right, sources)).toEqual([]);
    expect(wrongIn({ ...right, ...wrong }, sources)).toEqual([problem]);
  });
});

function wrongIn({ file, code }: MutantName, sources: ReadonlySet<string>): string[] {
  if (!existsSync(ROOT + file)) return [`${file} does not exist`];
  if (!sources.has(file)) return [`${file} is in no room`];
  return asOneLine(readFileSync(ROOT + file, "utf8")).includes(code) ? [] : [`${file} has no ${code}`];
}

/** The patterns know `**` for any folders, and `*` for any part of a name. */
function matching(glob: string): string[] {
  const escaped = glob.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  const pattern = escaped.replace(/\*\*\/|\*/g, (stars) => (stars === "*" ? "[^/]*" : "(?:.*/)?"));
  return FILES.filter((file) => new RegExp(`^${pattern}$`).test(file));
}
