/** The rooms still fit the sources, so that a commit that moves code updates them at once; no mutant is tried here. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { LEFT_OUT, OTHER_ROOMS, type Room, SIGNATURE } from "./rooms.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const FILES = ["src", "adapters", "test"].flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
);
const ROOMS = [SIGNATURE, ...OTHER_ROOMS];
/** Percent. A lower one would say little. */
const LOWEST_FLOOR = 75;

describe("the rooms of the mutants", () => {
  const patterns = ROOMS.flatMap(({ name, sources, tests }) =>
    [...sources, ...tests].map((glob) => ({ name, glob: glob.replace(/^!/, "") })),
  );

  it.each(patterns)("have files: $name, $glob", ({ glob }) => {
    expect(matching(glob)).not.toEqual([]);
  });

  it("have a name and a floor each, and no file of another room", () => {
    expect(new Set(ROOMS.map(({ name }) => name)).size).toBe(ROOMS.length);
    for (const { name, floor } of ROOMS) expect(floor, name).toBeGreaterThanOrEqual(LOWEST_FLOOR);
    const files = ROOMS.flatMap(filesOf);
    expect(files.length).toBeGreaterThan(100);
    expect(files.filter((file, index) => files.indexOf(file) !== index)).toEqual([]);
  });

  it.each(LEFT_OUT)("leave tests out that exist: %s", (glob) => {
    expect(matching(glob)).not.toEqual([]);
  });
});

function filesOf({ sources }: Room): string[] {
  const isLeftOut = (file: string) =>
    sources.some((glob) => glob.startsWith("!") && matching(glob.slice(1)).includes(file));
  return sources
    .filter((glob) => !glob.startsWith("!"))
    .flatMap((glob) => matching(glob).filter((file) => !isLeftOut(file)));
}

/** The patterns know `**` for any folders, and `*` for any part of a name. */
function matching(glob: string): string[] {
  const escaped = glob.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  const pattern = escaped.replace(/\*\*\/|\*/g, (stars) => (stars === "*" ? "[^/]*" : "(?:.*/)?"));
  return FILES.filter((file) => new RegExp(`^${pattern}$`).test(file));
}
