/** The gate of the tests, with `FULL=1` of all and of their coverage, and of the rules of the specification that tests name. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { FULL } from "../../test/setup/form.ts";
import { type RunSummary, SUMMARY_FILE } from "../../test/setup/suite-reporter.ts";
import { type ConformanceRow, conformance, total } from "../conformance.ts";
import { COVERAGE_FLOOR } from "../coverage-floor.ts";
import { filesUnder, type Gate, type GateResult, problemsOf, tool } from "./gate.ts";

const COVERAGE_FILE = "coverage/coverage-summary.json";

export const tests: Gate = {
  name: "tests",
  async run({ root, reuseTests }) {
    const problems = reuseTests
      ? reusable(root)
      : problemsOf(
          await tool(root, "vitest", ["run", "--project=!browser", ...(FULL ? ["--coverage"] : [])], {
            env: { ...process.env, NO_COLOR: "1" },
          }),
          80,
        );
    const results = [resultOf(root, problems)];
    // The floor is for all tests: the quick form does not reach every line.
    if (!FULL) return results;
    if (existsSync(join(root, COVERAGE_FILE))) results.push(coverageOf(root));
    else results.push({ name: "coverage", count: 0, unit: "lines", problems: ["no coverage was measured"] });
    return results;
  },
};

export const rules: Gate = {
  name: "conformance",
  run({ root }) {
    const rows = conformance(root);
    const { covered, rules, clients } = total(rows);
    const name = `conformance in all (${covered} of ${rules}; ${clients} at the client as well)`;
    const results = rows.filter(({ required }) => required).map(gateRow);
    return Promise.resolve([...results, { name, count: covered, unit: "rules", problems: [] }]);
  },
};

function gateRow({ group, covered, problems }: ConformanceRow): GateResult {
  return { name: `conformance ${group}`, count: covered.length, unit: "rules", problems };
}

function resultOf(root: string, problems: readonly string[]): GateResult {
  if (!existsSync(join(root, SUMMARY_FILE)))
    return { name: "tests", count: 0, unit: "tests", problems: ["no tests were run"] };
  const summary: RunSummary = JSON.parse(readFileSync(join(root, SUMMARY_FILE), "utf8"));
  const sum = (pick: "files" | "passed" | "failed" | "left") =>
    summary.suites.reduce((total, suite) => total + suite[pick], 0);
  const present = filesUnder(join(root, "test")).filter(
    (path) => path.endsWith(".test.ts") && !/^(next|consumers|tools\/inspector\/browser)\//.test(path),
  );
  const found = [...problems];
  if (sum("failed") + summary.errors > 0)
    found.push(`${sum("failed")} tests failed, ${summary.errors} errors outside of tests`);
  if (sum("files") !== present.length) found.push(`${sum("files")} of ${present.length} test files ran`);
  if (FULL && !summary.full) found.push("the results are of the quick form: run them with FULL=1");
  const name = sum("left") === 0 ? "tests" : `tests (${sum("left")} more with FULL=1)`;
  return { name, count: sum("passed"), unit: "tests", problems: found };
}

/** A run fails by itself below the floor; a reused one is read again here. */
function coverageOf(root: string): GateResult {
  const { total } = JSON.parse(readFileSync(join(root, COVERAGE_FILE), "utf8")) as {
    total: Record<"lines" | "branches", Share>;
  };
  const problems = (["lines", "branches"] as const)
    .filter((kind) => total[kind].pct < COVERAGE_FLOOR[kind])
    .map((kind) => `${kind}: ${total[kind].pct} % is below ${COVERAGE_FLOOR[kind]} %`);
  return {
    name: `coverage (${total.lines.pct} % of lines, ${total.branches.pct} % of branches)`,
    count: total.lines.covered,
    unit: "lines",
    problems,
  };
}

interface Share {
  readonly covered: number;
  readonly pct: number;
}

/** A run that is older than a source or a test proves nothing about it. */
function reusable(root: string): string[] {
  const results = [SUMMARY_FILE, ...(FULL ? [COVERAGE_FILE] : [])].map((file) => join(root, file));
  const command = FULL ? "FULL=1 npm test -- --coverage" : "npm test";
  if (!results.every((file) => existsSync(file))) return [`no results to reuse: run \`${command}\` first`];
  const oldest = Math.min(...results.map((file) => statSync(file).mtimeMs));
  const newer = ["src", "adapters", "test"]
    .flatMap((folder) => filesUnder(join(root, folder)).map((file) => join(folder, file)))
    .filter((file) => !file.includes("node_modules") && statSync(join(root, file)).mtimeMs > oldest);
  return newer.slice(0, 5).map((file) => `${file} is newer than the results`);
}
