/** What a gate of `npm run check` is, and how it runs the tools. */
import { type SpawnOptions, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** One line of the check: a part of a gate can have its own. */
export interface GateResult {
  readonly name: string;
  /** What was looked at. Zero fails: a check can pass on nothing. */
  readonly count: number;
  readonly unit: string;
  /** Empty when it passed. */
  readonly problems: readonly string[];
  /** Printed, but the gate passes all the same. */
  readonly warnings?: readonly string[];
  /** Printed: what was found, good or bad. */
  readonly notes?: readonly string[];
}

export interface Gate {
  readonly name: string;
  run(context: GateContext): Promise<readonly GateResult[]>;
}

export interface GateContext {
  /** The root of the project. */
  readonly root: string;
  /** A folder of this run, removed after it. */
  readonly temp: string;
  /** The packed package; packs it on first use. */
  tarball(): Promise<string>;
  /** Take the results of an `npm test` that ran after the last edit, instead of running the tests again. */
  readonly reuseTests: boolean;
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  /** Both streams, in the order they came. */
  readonly output: string;
}

/** Runs a program to its end, without input. `timeoutMs` (default 15 minutes) kills it. */
export function run(
  command: string,
  args: readonly string[],
  options: SpawnOptions & { timeoutMs?: number } = {},
): Promise<Finished> {
  const { timeoutMs = 900_000, ...rest } = options;
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...rest, stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let output = "";
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    const finish = (code: number | null) => {
      clearTimeout(timer);
      resolve({ code, stdout, output });
    };
    child.stdout?.on("data", (chunk: Buffer) => {
      stdout += chunk;
      output += chunk;
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      output += chunk;
    });
    child.on("error", (error) => {
      output += error.message;
      finish(null);
    });
    child.on("close", finish);
  });
}

/** Runs a tool installed in node_modules/.bin. */
export function tool(
  root: string,
  name: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<Finished> {
  return run(join(root, "node_modules", ".bin", name), args, { cwd: root, ...options });
}

/** The last lines of `finished`, as problems; none when it ended well. */
export function problemsOf(finished: Finished, lines = 40): string[] {
  if (finished.code === 0) return [];
  const told = finished.output.split("\n").filter((line) => !line.startsWith("npm warn Unknown"));
  const tail = told.join("\n").trim().split("\n").slice(-lines);
  return [...tail, `ended with ${finished.code ?? "a signal"}`];
}

/** The files under `folder`, as paths from it, sorted. */
export function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}
