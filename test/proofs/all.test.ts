import { describe, expect, it } from "vitest";
import { type Ending, proveAll } from "./all.ts";

const PASSED: Ending = { ok: true, lastLine: "pass" };

/** Programmes whose name begins with "q" need quiet; tells what ran beside each when it began. */
async function besideEach(names: readonly string[], atOnce: number): Promise<readonly string[]> {
  const running = new Set<string>();
  const seen: string[] = [];
  const prove = async (name: string) => {
    seen.push([name, ...running].join(" beside "));
    running.add(name);
    await new Promise(setImmediate);
    running.delete(name);
    return PASSED;
  };
  const programmes = names.map((name) => ({ name, ...(name.startsWith("q") && { needsQuiet: true as const }) }));
  await proveAll(programmes, { atOnce, prove, say: () => {} });
  return seen;
}

describe("proveAll()", () => {
  const endings: Readonly<Record<string, Ending>> = {
    one: { ok: true, lastLine: "pass  one: 3 things in 1 s" },
    two: { ok: false, lastLine: "FAIL  two: 0 things in 1 s" },
    three: { ok: false, lastLine: "it ended with SIGKILL" },
  };

  it("runs them in their order, goes on after one that fails, and counts", async () => {
    const said: string[] = [];
    const prove = (name: string) => Promise.resolve(endings[name] ?? { ok: false, lastLine: "" });
    const programmes = [{ name: "two" }, { name: "one" }, { name: "three" }];
    expect(await proveAll(programmes, { atOnce: 1, prove, say: (line) => said.push(line) })).toBe(1);
    expect(said).toEqual([
      "FAIL  two: 0 things in 1 s",
      "pass  one: 3 things in 1 s",
      "FAIL  three: it ended with SIGKILL",
      "1 passed, 2 failed",
    ]);
  });

  it("runs as many at once as it is told, and alone, at the end, those that need it quiet", async () => {
    expect(await besideEach(["a", "quiet", "b", "c", "quieter"], 2)).toEqual([
      "a",
      "b beside a",
      "c beside b",
      "quiet",
      "quieter",
    ]);
    expect(await besideEach(["a", "b"], 1)).toEqual(["a", "b"]);
  });
});
