/** What a programme or the tests say about a copy of the repository. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export interface Finding {
  /** `broke` when it ended as neither a pass nor a failure of its own. */
  readonly verdict: "pass" | "FAIL" | "broke";
  /** Of a programme its lines, of the tests the names of those that failed. */
  readonly problems: readonly string[];
}

const LONGEST_MS = 300_000;
/** Characters of what an end without a verdict said. */
const SHOWN = 200;

/** The small form of a programme, or the short one where there is none. */
export async function proven(copy: string, programme: string): Promise<Finding> {
  const compiled = join(copy, ".build", "test", "proofs", "run.js");
  const { code, out, errors } = await runNode(copy, [compiled, programme, "--small"]);
  const lines = out.trimEnd().split("\n");
  const last = lines.pop() ?? "";
  const problems = lines.flatMap((line) => /^FAIL {2}(.*)/.exec(line)?.[1] ?? []);
  if (code === 0 && last.startsWith(`pass  ${programme}: `)) return { verdict: "pass", problems };
  if (code === 1 && last.startsWith(`FAIL  ${programme}: `)) return { verdict: "FAIL", problems };
  const error = errors.split("\n").find((line) => /^\w*Error\b/.test(line)) ?? errors.slice(-SHOWN);
  return { verdict: "broke", problems: [`it ended with ${code}: ${[...problems, last, error].join(" ")}`] };
}

interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** The tests in these files and folders, up to the first that fails. */
export async function tested(copy: string, paths: readonly string[]): Promise<Finding> {
  const vitest = join("node_modules", "vitest", "vitest.mjs");
  // Not cached: each copy has files of its own.
  const options = ["--project=!browser", "--bail=1", "--reporter=json", "--experimental.fsModuleCache=false"];
  const { code, out, errors } = await runNode(copy, [vitest, "run", ...paths, ...options]);
  const start = out.indexOf('{"numTotalTestSuites"');
  if (start < 0) return { verdict: "broke", problems: [`it ended with ${code}: ${(errors + out).slice(-SHOWN)}`] };
  const { testResults, numPassedTests } = JSON.parse(out.slice(start)) as Report;
  const problems = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ fullName }) => `${name.slice(copy.length + 1)}: ${fullName}`),
  );
  if (problems.length > 0) return { verdict: "FAIL", problems };
  if (code === 0 && numPassedTests > 0) return { verdict: "pass", problems };
  return { verdict: "broke", problems: [`it ended with ${code}, and ${numPassedTests} tests passed`] };
}

/** Runs Node in `copy`, in a process group of its own, so that what it starts ends with it. */
export async function runNode(copy: string, args: readonly string[]) {
  const child = spawn(process.execPath, args, { cwd: copy, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    out += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    errors += chunk;
  });
  const timer = setTimeout(() => endGroup(child), LONGEST_MS);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  endGroup(child);
  return { code, out, errors };
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}
