import { describe, expect, it } from "vitest";
import { type Ending, proveAll } from "./all.ts";

describe("proveAll()", () => {
  const endings: Readonly<Record<string, Ending>> = {
    one: { ok: true, lastLine: "pass  one: 3 things in 1 s" },
    two: { ok: false, lastLine: "FAIL  two: 0 things in 1 s" },
    three: { ok: false, lastLine: "it ended with SIGKILL" },
  };

  it("runs them in their order, goes on after one that fails, and counts", async () => {
    const said: string[] = [];
    const prove = (name: string) => Promise.resolve(endings[name] ?? { ok: false, lastLine: "" });
    expect(await proveAll(["two", "one", "three"], prove, (line) => said.push(line))).toBe(1);
    expect(said).toEqual([
      "FAIL  two: 0 things in 1 s",
      "pass  one: 3 things in 1 s",
      "FAIL  three: it ended with SIGKILL",
      "1 passed, 2 failed",
    ]);
  });
});
