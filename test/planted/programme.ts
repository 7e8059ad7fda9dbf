/** `npm run prove -- planted`: 24 bugs are put into the sources, one at a time, and each is found by the programme that must find it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonIsMissing } from "../cli/python-application.ts";
import { straceIsMissing } from "../durability/strace.ts";
import type { Programme, Proof, Terms } from "../prove/programme.ts";
import { BUGS, type Bug } from "./bugs.ts";
import { inCopy } from "./copy.ts";

/** From where this file is compiled to. */
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const AT_ONCE = Math.max(2, availableParallelism());
const LONGEST_MS = 300_000;
/** Characters of a problem. */
const SHOWN = 200;
/** Names of bugs, apart by commas, instead of all. */
const ONLY = process.env.BUGS?.split(",") ?? null;
/** Programmes that cannot run everywhere, and why not. */
const NEEDS: Readonly<Record<string, () => string | null>> = { power: straceIsMissing, sidecar: pythonIsMissing };

export const planted: Programme = {
  name: "planted",
  what: "each of 24 bugs, planted in the sources, is found by the programme that must find it, which finds nothing without it",
  async run({ say }: Terms): Promise<Proof> {
    const wanted = BUGS.filter(({ name }) => ONLY === null || ONLY.includes(name));
    const missing = new Map(Object.entries(NEEDS).map(([programme, reason]) => [programme, reason()]));
    const bugs = wanted.filter(({ name, caughtBy }) => {
      const reason = missing.get(caughtBy) ?? null;
      if (reason !== null) say(`${name.padEnd(28)} left out: ${caughtBy} needs what is missing (${reason})`);
      return reason === null;
    });
    const problems: string[] = [];
    let caught = 0;
    const controls = [...new Set(bugs.map(({ caughtBy }) => caughtBy))].map((programme) => async () => {
      problems.push(...(await control(programme, say)));
    });
    const searches = bugs.map((bug) => async () => {
      const problem = await search(bug, say);
      if (problem === null) caught += 1;
      else problems.push(problem);
    });
    await allOf([...controls, ...searches]);
    return { count: caught, unit: `of ${bugs.length} bugs found`, problems };
  },
};

/** Without a bug the programme finds nothing, or its findings would say nothing. */
async function control(programme: string, say: Terms["say"]): Promise<string[]> {
  const { verdict, problems, seconds } = await proven(programme, []);
  say(`${"(none)".padEnd(28)} ${programme.padEnd(8)} ${seconds.padStart(3)} s  ${problems[0] ?? "nothing found"}`);
  return verdict === "pass" ? [] : [`without a bug ${programme} finds one: ${problems[0] ?? "no problem"}`];
}

/** Null when it was found; else what happened instead. */
async function search({ name, caughtBy, says, edits }: Bug, say: Terms["say"]): Promise<string | null> {
  const { verdict, problems, seconds } = await proven(caughtBy, edits);
  const seen = verdict === "FAIL" ? problems.find((problem) => problem.includes(says)) : undefined;
  const otherwise = `not found: ${problems[0] ?? "no problem"}`;
  say(`${name.padEnd(28)} ${caughtBy.padEnd(8)} ${seconds.padStart(3)} s  ${(seen ?? otherwise).slice(0, SHOWN)}`);
  return seen === undefined ? `${name}, by ${caughtBy}: ${otherwise}` : null;
}

interface Finding {
  /** As the programme says at its end, and with its code; `broke` when it said nothing of the kind. */
  readonly verdict: "pass" | "FAIL" | "broke";
  readonly problems: readonly string[];
  readonly seconds: string;
}

/** The small form of a programme on a copy with these edits. */
async function proven(programme: string, edits: Bug["edits"]): Promise<Finding> {
  const startedAt = performance.now();
  const found = await inCopy(ROOT, edits, (copy) => runIn(copy, programme)).catch(
    (error: unknown): Omit<Finding, "seconds"> => ({ verdict: "broke", problems: [String(error)] }),
  );
  return { ...found, seconds: ((performance.now() - startedAt) / 1_000).toFixed(0) };
}

async function runIn(copy: string, programme: string): Promise<Omit<Finding, "seconds">> {
  const compiled = join(copy, ".build", "test", "prove", "run.js");
  // A group of its own, so that what it started ends with it.
  const child = spawn(process.execPath, [compiled, programme, "--small"], {
    ...{ cwd: copy, detached: true },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { out: "", errors: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (said.out += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (said.errors += chunk));
  const timer = setTimeout(() => endGroup(child), LONGEST_MS);
  const [code] = await once(child, "close");
  clearTimeout(timer);
  endGroup(child);
  const lines = said.out.trimEnd().split("\n");
  const last = lines.pop() ?? "";
  const problems = lines.flatMap((line) => /^FAIL {2}(.*)/.exec(line)?.[1] ?? []);
  if (code === 0 && last.startsWith(`pass  ${programme}: `)) return { verdict: "pass", problems };
  if (code === 1 && last.startsWith(`FAIL  ${programme}: `)) return { verdict: "FAIL", problems };
  const error = said.errors.split("\n").find((line) => /^\w*Error\b/.test(line)) ?? said.errors.slice(-SHOWN);
  return { verdict: "broke", problems: [`it ended with ${code}: ${[...problems, last, error].join(" ")}`] };
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}

async function allOf(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...tasks];
  const work = async () => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) await task();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
