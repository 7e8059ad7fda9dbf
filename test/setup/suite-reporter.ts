/** Prints, after a run, how many tests each suite had, which were skipped and why, and the slowest files: a suite that ran nothing is seen. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, relative, sep } from "node:path";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { FULL } from "./form.ts";

/** What a run leaves behind for scripts/check.ts. */
export interface RunSummary {
  readonly finishedAt: number;
  /** Whether it was the whole, with `FULL=1`. */
  readonly full: boolean;
  readonly suites: readonly SuiteCounts[];
  /** Suites or files that failed outside of a test. */
  readonly errors: number;
}

export interface SuiteCounts {
  readonly suite: string;
  files: number;
  passed: number;
  failed: number;
  skipped: number;
  /** Tests that only `FULL=1` runs. */
  left: number;
}

/** So many of the slowest files are named. */
const MOST_SLOW = 5;

interface Skipped {
  readonly name: string;
  readonly reason: string;
}

/** Where the summary of the last run is written, from the root of the project. */
export const SUMMARY_FILE = ".build/test-summary.json";

export default class SuiteReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const suites = new Map<string, SuiteCounts>();
    const skipped: Skipped[] = [];
    let errors = unhandled.length;
    for (const module of modules) {
      errors +=
        module.errors().length +
        [...module.children.allSuites()].reduce((sum, suite) => sum + suite.errors().length, 0);
      count(module, suiteOf(suites, module), skipped);
    }
    const rows = [...suites.values()].sort((a, b) => a.suite.localeCompare(b.suite));
    // What `-t` left out was not skipped by the tests, and would fill the screen.
    const chosen = this.#vitest?.config.testNamePattern !== undefined;
    print(rows, chosen ? [] : skipped, errors);
    printSlowest(modules);
    mkdirSync(dirname(SUMMARY_FILE), { recursive: true });
    const summary: RunSummary = { finishedAt: Date.now(), full: FULL, suites: rows, errors };
    writeFileSync(SUMMARY_FILE, JSON.stringify(summary));
  }
}

/** With what a file loads and sets up: the whole time that others wait for it. */
function printSlowest(modules: readonly TestModule[]): void {
  for (const { file, seconds } of slowest(modules.map(timed))) console.log(` slowest: ${file} ${seconds.toFixed(1)} s`);
}

interface Timed {
  readonly file: string;
  readonly seconds: number;
}

function timed(module: TestModule): Timed {
  const { duration, collectDuration, setupDuration } = module.diagnostic();
  return {
    file: relative(process.cwd(), module.moduleId),
    seconds: (duration + collectDuration + setupDuration) / 1_000,
  };
}

export function slowest(files: readonly Timed[]): readonly Timed[] {
  return [...files].sort((a, b) => b.seconds - a.seconds).slice(0, MOST_SLOW);
}

/** A suite is a folder of test/. */
function suiteOf(suites: Map<string, SuiteCounts>, module: TestModule): SuiteCounts {
  const parts = relative("test", module.moduleId).split(sep);
  const suite = parts.length === 1 ? "(top)" : (parts[0] ?? "");
  const known = suites.get(suite) ?? { suite, files: 0, passed: 0, failed: 0, skipped: 0, left: 0 };
  suites.set(suite, known);
  return known;
}

function count(module: TestModule, counts: SuiteCounts, skipped: Skipped[]): void {
  counts.files += 1;
  for (const test of module.children.allTests()) {
    const result = test.result();
    if (result.state === "passed") counts.passed += 1;
    else if (result.state === "failed") counts.failed += 1;
    else if (isLeft(test)) counts.left += 1;
    else {
      counts.skipped += 1;
      const note = result.state === "skipped" ? result.note : undefined;
      skipped.push({
        name: `${relative("test", module.moduleId)} > ${test.fullName}`,
        reason: note ?? "no reason given",
      });
    }
  }
}

function isLeft({ tags }: TestCase): boolean {
  return !FULL && tags.includes("full");
}

function print(rows: readonly SuiteCounts[], skipped: readonly Skipped[], errors: number): void {
  const total: SuiteCounts = { suite: "total", files: 0, passed: 0, failed: 0, skipped: 0, left: 0 };
  for (const row of rows) {
    total.files += row.files;
    total.passed += row.passed;
    total.failed += row.failed;
    total.skipped += row.skipped;
    total.left += row.left;
  }
  console.log(
    `\n ${"suite".padEnd(16)}${["files", "passed", "failed", "skipped", "FULL=1"].map((word) => word.padStart(9)).join("")}`,
  );
  for (const row of [...rows, total]) {
    const counts = [row.files, row.passed, row.failed, row.skipped, row.left];
    const cells = counts.map((value) => String(value).padStart(9)).join("");
    console.log(` ${row.suite.padEnd(16)}${cells}`);
  }
  for (const { name, reason } of skipped) console.log(` skipped: ${name} (${reason})`);
  if (errors > 0) console.log(` errors outside of tests: ${errors}`);
}
