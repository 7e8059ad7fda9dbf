/**
 * `npm run demo:crash`, as a newcomer runs it.
 *
 * @module-tag full
 */
import { describe, expect, it } from "vitest";
import { runScript } from "./running.ts";

describe("npm run demo:crash", () => {
  it("shows order, repeats, refusals, a kill and a restart, and every check held (RCV-3, RCV-6, RCV-7)", () => {
    const { stdout, ...rest } = runScript("demo:crash");
    expect(rest).toEqual({ status: 0, failed: [], stderr: "", leftovers: [] });
    // Arrived 3 1 2, handled 1 2 3.
    expect(stdout).toMatch(/msg_\d+ +3 1 2 +1 2 3/);
    expect(stdout).toMatch(/handled exactly once in the table: 302 of 302/);
    expect(stdout).toMatch(/All 12 checks held/);
    // Colours are for terminals.
    expect(stdout).not.toContain("\u001b[");
  }, 60_000);
});
