/** `npm run demo:crash`, as a newcomer runs it. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const leftovers = () => readdirSync(tmpdir()).filter((name) => name.startsWith("oncehook-crash-"));

describe("npm run demo:crash", () => {
  it("shows order, repeats, refusals, a kill and a restart, and every check held (RCV-3, RCV-6, RCV-7)", () => {
    const before = leftovers();
    const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", "demo:crash"], {
      cwd: ROOT,
      encoding: "utf8",
    });
    expect({ status, failed: stdout.split("\n").filter((line) => line.includes("✗")), stderr }).toMatchObject({
      status: 0,
      failed: [],
    });
    // Arrived 3 1 2, handled 1 2 3.
    expect(stdout).toMatch(/msg_\d+ +3 1 2 +1 2 3/);
    expect(stdout).toMatch(/handled exactly once in the table: 302 of 302/);
    expect(stdout).toMatch(/All 12 checks held/);
    // Colours are for terminals.
    expect(stdout).not.toContain("\u001b[");
    expect(leftovers()).toEqual(before);
  }, 60_000);
});
