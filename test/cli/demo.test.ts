/** `oncehook demo`, and how it would tell that something went wrong. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { demoCommand } from "../../src/cli/demo/command.ts";
import { arrivalsOf, handledTwiceOf, isInOrder, type Life, lostOf } from "../../src/cli/demo/ledger.ts";
import { RECIPIENTS } from "../../src/cli/demo/plot.ts";
import { Report } from "../../src/cli/demo/report.ts";
import { createEmulator } from "../../src/emulator/index.ts";
import { runHere } from "./here.ts";
import { Running } from "./running.ts";

describe("oncehook demo", () => {
  it("tells the whole story, and every check held (CLI-10, RCV-6, RCV-7, RCV-9)", async () => {
    const folder = mkdtempSync(join(tmpdir(), "oncehook-test-demo-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { code, output, errors } = await runHere(demoCommand(), [], { TMPDIR: folder });
    expect([code, errors, readdirSync(folder)]).toEqual([0, "", []]);
    expect(output).toMatch(/msg_\w+ +1 2✗ 3 2 +1 2 3 +meets a 503\n/);
    expect(output).toMatch(/msg_\w+ +3 3 2 2 1 +1 2 3 +backwards, twice\n/);
    expect(output).toMatch(/All 25 checks held, in \d+\.\d s\.\n$/);
    // Colours are for terminals.
    expect(output).not.toContain("\u001b[");

    // The emulator's secret is its seed's, and so always the same; the others are random, and longer than any word.
    const emulator = await createEmulator({ port: null });
    for (const untold of [emulator.clientSecret, ...Object.values(RECIPIENTS)]) expect(output).not.toContain(untold);
    await emulator.close();
    expect(output).not.toMatch(/\+\d{8}|[\w-]{32}/);
  }, 60_000);

  it("leaves nothing behind when a signal ends it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "oncehook-test-demo-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const running = new Running(["demo"], { TMPDIR: folder });
    await running.printed(/Token, whoami, numbers/);
    expect(readdirSync(folder)).toHaveLength(1);
    running.signal("SIGTERM");
    const { code, errors, output } = await running.exit;
    expect([code, errors, readdirSync(folder)]).toEqual([143, "error: Stopped. Nothing is left behind.\n", []]);
    expect(output).not.toContain("checks");
  });
});

describe("the report of the demo", () => {
  const reportOf = (checks: readonly boolean[], { json = false, quiet = false } = {}) => {
    const lines: string[] = [];
    const report = new Report({ json, quiet, write: (line) => void lines.push(line), style: (_, text) => text });
    report.chapter("One");
    for (const ok of checks) report.check(ok, `number ${report.checks.length + 1}`);
    report.table(["a", "b"], [["long", "1"]]);
    return { exitCode: report.end(1.25), lines };
  };

  it("ends with 0 when every check held", () => {
    const { exitCode, lines } = reportOf([true, true]);
    expect(exitCode).toBe(0);
    expect(lines).toEqual([
      ...["\nOne", "  ✓ number 1", "  ✓ number 2", "  a     b", "  long  1"],
      "\nAll 2 checks held, in 1.3 s.",
    ]);
  });

  it("ends with 1 when a check failed, and says which", () => {
    const { exitCode, lines } = reportOf([true, false, true]);
    expect(exitCode).toBe(1);
    expect(lines.slice(-2)).toEqual(["\n1 of 3 checks failed.", "  ✗ number 2"]);
  });

  it("ends with 1 when nothing was checked", () => {
    expect(reportOf([]).exitCode).toBe(1);
  });

  it("prints checks and their sum alone as JSON", () => {
    expect(reportOf([true, false], { json: true }).lines.map((line) => JSON.parse(line))).toEqual([
      { chapter: "One", ok: true, text: "number 1" },
      { chapter: "One", ok: false, text: "number 2" },
      { checks: 2, failed: 1, seconds: 1.25 },
    ]);
  });

  it("hides nothing in its JSON", () => {
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    const report = new Report({ json: true, quiet: false, write, style: (_, text) => text });
    report.check(true, "a\u202eb\u009b");
    expect(lines).toEqual(['{"chapter":"","ok":true,"text":"a\\u202eb\\u009b"}']);
  });

  it("says nothing with --quiet, unless a check failed", () => {
    expect(reportOf([true], { quiet: true })).toEqual({ exitCode: 0, lines: [] });
    expect(reportOf([false], { quiet: true }).lines).toEqual(["\n1 of 1 checks failed.", "  ✗ number 1"]);
  });
});

describe("the ledger of the demo", () => {
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
