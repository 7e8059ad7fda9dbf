/** `npm run demo`, and how it would show that something went wrong. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  arrivalsOf,
  handledTwiceOf,
  isInOrder,
  type Life,
  livesOf,
  lostOf,
  Report,
} from "../../examples/demo/report.ts";
import { createEmulator } from "../../src/messaging/emulator/index.ts";
import { runScript } from "./running.ts";

const ROOT = join(import.meta.dirname, "../..");

describe("npm run demo", () => {
  it("plays the whole story, and every check held (CLI-10, RCV-6, RCV-7, RCV-9)", async () => {
    const { status, stdout, stderr, failed, leftovers } = runScript("demo");
    expect({ status, stderr, failed, leftovers }).toEqual({ status: 0, stderr: "", failed: [], leftovers: [] });
    expect(stdout).toMatch(/msg_\w+ +1 2✗ 3 2 +1 2 3 +meets a 503\n/);
    expect(stdout).toMatch(/msg_\w+ +3 3 2 2 1 +1 2 3 +backwards, twice\n/);
    expect(stdout).toMatch(
      /All 25 checks held, in \d+\.\d s\.\n\nNext\n {2}npm run demo -- --inspect .*\n {2}docs\/tutorials\/ .*\n {2}docs\/README\.md .*\n$/,
    );
    // Colours are for terminals.
    expect(stdout).not.toContain("\u001b[");

    // The emulator's secret is its seed's, and so always the same; the others are random, and longer than any word.
    const emulator = await createEmulator({ port: null });
    for (const hidden of [emulator.clientSecret, "+14155550101", "0155 50101"]) expect(stdout).not.toContain(hidden);
    await emulator.close();
    expect(stdout).not.toMatch(/\+\d{8}|[\w-]{32}/);
  }, 60_000);

  it("leaves nothing behind when a signal ends it", { tags: "full", timeout: 60_000 }, async () => {
    const demo = startDemo([]);
    await demo.printed(/Token, whoami, numbers/);
    expect(demo.leftBehind()).toHaveLength(1);
    expect(await demo.endBy("SIGTERM")).toEqual({ code: 143, errors: "Stopped. Nothing is left behind.\n" });
    expect(demo.leftBehind()).toEqual([]);
    expect(demo.output()).not.toContain("checks");
  });

  it("shows its inbox in the inspector with --inspect", { tags: "full", timeout: 60_000 }, async () => {
    const demo = startDemo(["--inspect"]);
    const [, link = ""] = await demo.printed(/Open (http:\S+)/);
    // As a browser does: the link sets a cookie, and leads to the page.
    const opened = await fetch(link, { redirect: "manual" });
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    const page = await fetch(new URL(opened.headers.get("location") ?? "", link), { headers: { cookie } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("oncehook")]);
    expect(demo.output()).toMatch(/All 25 checks held/);
    expect(await demo.endBy("SIGTERM")).toMatchObject({ code: 143 });
    expect(demo.leftBehind()).toEqual([]);
  });
});

/** The demo in a process, with a folder for temporary files of its own. */
function startDemo(flags: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-test-demo-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const child = spawn(process.execPath, ["scripts/run.mjs", "examples/demo/run.ts", ...flags], {
    cwd: ROOT,
    env: { ...process.env, TMPDIR: folder },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  let errors = "";
  child.stderr.on("data", (chunk) => (errors += chunk));
  child.stdout.on("data", (chunk) => (output += chunk));
  return {
    output: () => output,
    leftBehind: () => readdirSync(folder).filter((name) => name !== "node-compile-cache"),
    printed: (pattern: RegExp) => vi.waitUntil(() => pattern.exec(output), { timeout: 45_000 }),
    async endBy(signal: "SIGTERM") {
      child.kill(signal);
      const [code] = await once(child, "close");
      return { code, errors };
    },
  };
}

describe("the report of the demo", () => {
  const reportOf = (checks: readonly boolean[]) => {
    const lines: string[] = [];
    const report = new Report((line) => void lines.push(line));
    report.chapter("One");
    for (const ok of checks) report.check(ok, `number ${report.checks.length + 1}`);
    report.table(["a", "b"], [["long", "1"]]);
    return { exitCode: report.end(1.25), lines };
  };

  it("ends with 0 when every check held", () => {
    const { exitCode, lines } = reportOf([true, true]);
    expect(exitCode).toBe(0);
    expect(lines).toEqual([
      ...["\nOne", "  ✓ number 1", "  ✓ number 2", "  a      b", "  ────────", "  long   1"],
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
});

describe("the messages of the demo", () => {
  const life = (handled: number[]): Life => ({ messageId: "msg_1", made: [1, 2, 3], arrived: [], handled });

  it("shows events that were never handled, handled twice, or out of order", () => {
    expect([lostOf(life([1, 2, 3])), lostOf(life([1, 3]))]).toEqual([0, 1]);
    expect([handledTwiceOf(life([1, 2, 3])), handledTwiceOf(life([1, 2, 2, 3]))]).toEqual([0, 1]);
    expect([isInOrder(life([1, 2, 3])), isInOrder(life([2, 1, 3])), isInOrder(life([]))]).toEqual([true, false, true]);
  });

  it("marks an attempt that was not taken, whether it was answered or not", () => {
    const statuses = [200, 503, null, 200];
    const arrived = statuses.map((status, index) => ({ sequence: index + 1, status }));
    expect(arrivalsOf({ ...life([]), arrived })).toBe("1 2✗ 3✗ 4");
  });

  it("keeps each message's events, attempts and rows apart", () => {
    const events = [
      { eventId: "e1", messageId: "msg_1", sequence: 1 },
      { eventId: "e2", messageId: "msg_2", sequence: null },
    ];
    const attempts = [
      { eventId: "e2", status: 200 },
      { eventId: "e1", status: 503 },
    ];
    const rows = [{ message_id: "msg_2", sequence: 0, event_type: "message.inbound" }];
    expect(livesOf(events, attempts, rows)).toEqual([
      { messageId: "msg_1", made: [1], arrived: [{ sequence: 1, status: 503 }], handled: [] },
      { messageId: "msg_2", made: [0], arrived: [{ sequence: 0, status: 200 }], handled: [0] },
    ]);
  });
});
