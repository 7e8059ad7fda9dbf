/** The bugs still fit the sources, so that whoever moves code hears of it at once; `npm run prove -- planted` shows that each is found. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { BUGS } from "./bugs.ts";
import { timesIn } from "./copy.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

describe("the planted bugs", () => {
  it("are 24, each with a name of its own", () => {
    expect(new Set(BUGS.map(({ name }) => name)).size).toBe(24);
    expect(BUGS).toHaveLength(24);
  });

  it.each(BUGS)("can be planted: $name", ({ edits }) => {
    expect(edits.length).toBeGreaterThan(0);
    for (const edit of edits) {
      expect(`${timesIn(ROOT, edit)} times in ${edit.file}: ${edit.find}`).toBe(
        `1 times in ${edit.file}: ${edit.find}`,
      );
      expect(edit.replace).not.toBe(edit.find);
    }
  });
});
