/** `npm run demo`, as a newcomer runs it, and how it would tell that something went wrong. */
import { describe, expect, it } from "vitest";
import { arrivalsOf, handledTwiceOf, isInOrder, type Life, lostOf } from "../../examples/demo/ledger.ts";
import { RECIPIENTS } from "../../examples/demo/plot.ts";
import { Report } from "../../examples/demo/report.ts";
import { createEmulator } from "../../src/emulator/index.ts";
import { runScript } from "./running.ts";

describe("npm run demo", () => {
  it("tells the whole story, and every check held (CLI-10, RCV-6, RCV-7, RCV-9)", async () => {
    const { stdout, ...rest } = runScript("demo");
    expect(rest).toEqual({ status: 0, failed: [], stderr: "", leftovers: [] });
    expect(stdout).toMatch(/msg_\w+ +1 2✗ 3 2 +1 2 3 +meets a 503\n/);
    expect(stdout).toMatch(/msg_\w+ +3 3 2 2 1 +1 2 3 +backwards, twice\n/);
    expect(stdout).toMatch(/All 25 checks held, in \d+\.\d s\.\n$/);
    // Colours are for terminals.
    expect(stdout).not.toContain("\u001b[");

    // The emulator's secret is its seed's, and so always the same; the others are random, and longer than any word.
    const emulator = await createEmulator({ port: null });
    for (const untold of [emulator.clientSecret, ...Object.values(RECIPIENTS)]) expect(stdout).not.toContain(untold);
    await emulator.close();
    expect(stdout).not.toMatch(/\+\d{8}|[\w-]{32}/);
  }, 60_000);
});

describe("the report of npm run demo", () => {
  const reportOf = (...checks: boolean[]) => {
    const lines: string[] = [];
    const report = new Report((line) => lines.push(line));
    for (const ok of checks) report.check(ok, `number ${report.checks.length + 1}`);
    return { exitCode: report.end(1.25), lines };
  };

  it("ends with 0 when every check held", () => {
    const { exitCode, lines } = reportOf(true, true);
    expect(exitCode).toBe(0);
    expect(lines.at(-1)).toBe("\nAll 2 checks held, in 1.3 s.");
  });

  it("ends with 1 when a check failed, and says which", () => {
    const { exitCode, lines } = reportOf(true, false, true);
    expect(exitCode).toBe(1);
    expect(lines.slice(-2)).toEqual(["\n1 of 3 checks failed.", "  ✗ number 2"]);
  });

  it("ends with 1 when nothing was checked", () => {
    expect(reportOf().exitCode).toBe(1);
  });
});

describe("the ledger of npm run demo", () => {
  const life = (handled: number[]): Life => ({ messageId: "msg_1", told: [1, 2, 3], arrived: [], handled });

  it("sees an event that was never handled", () => {
    expect([lostOf(life([1, 2, 3])), lostOf(life([1, 3]))]).toEqual([0, 1]);
  });

  it("sees an event that was handled twice", () => {
    expect([handledTwiceOf(life([1, 2, 3])), handledTwiceOf(life([1, 2, 2, 3]))]).toEqual([0, 1]);
  });

  it("sees events that were handled out of order", () => {
    expect([isInOrder(life([1, 2, 3])), isInOrder(life([2, 1, 3])), isInOrder(life([]))]).toEqual([true, false, true]);
  });

  it("marks an attempt that was not taken, whether it was answered or not", () => {
    const statuses = [200, 503, null, 200];
    const arrived = statuses.map((status, index) => ({ sequence: index + 1, status }));
    expect(arrivalsOf({ ...life([]), arrived })).toBe("1 2✗ 3✗ 4");
  });
});
