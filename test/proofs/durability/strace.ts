/** strace, which tells what a process asked of the kernel, and in which order. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

/** Why strace cannot be used here; null when it can. Some containers have it and forbid what it does. */
export function straceIsMissing(): string | null {
  const { status, error } = spawnSync("strace", ["-f", "-o", "/dev/null", "true"]);
  if (error !== undefined) return `there is no strace (${error.message})`;
  return status === 0 ? null : "strace is not allowed to trace here";
}

export interface Tracing {
  /** System calls, separated by commas. */
  readonly calls: string;
  /** Further arguments of strace. */
  readonly more?: readonly string[];
  /** Where the calls are written. */
  readonly log: string;
}

/** Starts the compiled programme `command[0]` of this repository under strace; its output is a pipe. */
export function traced({ calls, more = [], log }: Tracing, command: readonly string[]): ChildProcess {
  const options = ["-f", "-qq", "-e", `trace=${calls}`, "-e", "signal=none", ...more, "-o", log];
  return spawn("strace", [...options, process.execPath, ...command], { stdio: ["ignore", "pipe", "inherit"] });
}

/** Asks the process that strace started to end, and waits for both. */
export async function endTraced(strace: ChildProcess): Promise<void> {
  const exited = once(strace, "exit");
  spawnSync("pkill", ["-TERM", "-P", String(strace.pid)]);
  await exited;
}

/** Puts a call that strace shows in two pieces ("unfinished", "resumed") together at its end. */
export class Joiner {
  readonly #unfinished = new Map<string, string>();

  /** The call that ends with this line of the log, without the process id; null when it ends later. */
  join(line: string): string | null {
    const end = line.indexOf(" ");
    const [pid, rest] = [line.slice(0, end), line.slice(end)];
    if (rest.endsWith("<unfinished ...>")) {
      this.#unfinished.set(pid, rest.slice(0, -"<unfinished ...>".length));
      return null;
    }
    const resumed = /^\s*<\.\.\. \w+ resumed>(.*)/s.exec(rest);
    return resumed === null ? rest : `${this.#unfinished.get(pid) ?? ""}${resumed[1]}`;
  }
}
