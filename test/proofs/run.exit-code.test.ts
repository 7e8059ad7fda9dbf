/** What CI goes by: libraries that a programme loads have hooks at the end of its process. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

/** Compiled by the tests' global set-up. */
const RUN = fileURLToPath(new URL("../../.build/test/proofs/run.js", import.meta.url));

describe("npm run prove", () => {
  it("ends with the code that it wants to end with", () => {
    const { status, stderr } = spawnSync(process.execPath, [RUN, "nothing"], { encoding: "utf8" });
    expect(stderr).toContain("usage: npm run prove");
    expect(status).toBe(2);
  });

  it("has no small form of a programme that has none, and none that is full", { tags: "full" }, () => {
    for (const args of [
      ["syscall", "--small"],
      ["fuzz", "--small", "--full"],
      ["all", "--small"],
    ]) {
      expect(spawnSync(process.execPath, [RUN, ...args], { encoding: "utf8" }).status).toBe(2);
    }
  });
});
