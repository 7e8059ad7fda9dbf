/**
 * `npm run check`: every gate a change must pass, each with a count, because a check can pass on nothing.
 * `--only NAME[,NAME]` runs some; `--reuse-tests` takes the results of an `npm test` that is newer than every source (with `FULL=1` of an
 * `npm test -- --coverage`).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { consumers } from "./gates/consumers.ts";
import { docsExamples } from "./gates/docs-examples.ts";
import type { Gate, GateContext, GateResult } from "./gates/gate.ts";
import { house } from "./gates/house.ts";
import { openapi } from "./gates/openapi.ts";
import { architecture, pack, packageChecks } from "./gates/package.ts";
import { programmes } from "./gates/programmes.ts";
import { english, lint, reference, types, unused } from "./gates/static.ts";
import { rules, tests } from "./gates/tests.ts";

const GATES: readonly Gate[] = [
  lint,
  types,
  unused,
  english,
  architecture,
  house,
  tests,
  rules,
  programmes,
  packageChecks,
  consumers,
  docsExamples,
  reference,
  openapi,
];

const { values } = parseArgs({
  options: { only: { type: "string" }, "reuse-tests": { type: "boolean", default: false } },
});
const only = values.only?.split(",");
const chosen = GATES.filter(({ name }) => only === undefined || only.includes(name));
const unknown = only?.filter((name) => !GATES.some((gate) => gate.name === name)) ?? [];
if (unknown.length > 0) {
  console.error(`no gate ${unknown.join(", ")}; there are: ${GATES.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}

const root = process.cwd();
const temp = mkdtempSync(join(tmpdir(), "oncehook-check-"));
let packing: Promise<string> | undefined;
const context: GateContext = {
  root,
  temp,
  reuseTests: values["reuse-tests"],
  tarball() {
    packing ??= pack(root, temp);
    return packing;
  },
};

let passed = 0;
let failed = 0;
try {
  for (const gate of chosen) {
    const startedAt = performance.now();
    const results = await resultsOf(gate, context);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    for (const [index, result] of results.entries()) {
      if (report(result, index === 0 ? `${seconds} s` : "")) passed += 1;
      else failed += 1;
    }
  }
} finally {
  rmSync(temp, { recursive: true, force: true });
}
if (chosen.length < GATES.length)
  console.log(
    `left out: ${GATES.filter((gate) => !chosen.includes(gate))
      .map(({ name }) => name)
      .join(", ")}`,
  );
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

/** A gate that breaks has failed. */
async function resultsOf(gate: Gate, given: GateContext): Promise<readonly GateResult[]> {
  const broken = (problem: string) => [{ name: gate.name, count: 0, unit: "results", problems: [problem] }];
  try {
    const results = await gate.run(given);
    return results.length > 0 ? results : broken("it looked at nothing");
  } catch (error) {
    return broken(error instanceof Error ? error.message : String(error));
  }
}

function report({ name, count, unit, problems, warnings = [], notes = [] }: GateResult, seconds: string): boolean {
  const ok = problems.length === 0 && count > 0;
  console.log(
    `${ok ? "pass" : "FAIL"}  ${name.padEnd(76)} ${`${count} ${unit}`.padStart(14)} ${seconds.padStart(9)}`.trimEnd(),
  );
  for (const problem of problems) console.log(`      ${problem.replaceAll("\n", "\n      ")}`);
  for (const note of notes) console.log(`      ${note}`);
  for (const warning of warnings) console.log(`      warning: ${warning}`);
  if (problems.length === 0 && count === 0) console.log("      it looked at nothing");
  return ok;
}
