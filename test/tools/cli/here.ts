/** A command in this process: what it prints and its exit code, without the start of another one. */
import type { Command } from "commander";
import { vi } from "vitest";
import { endingOf } from "../../../src/tools/cli/exit.ts";

export interface HereExit {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** One at a time: output and environment are those of the process. */
export async function runHere(
  command: Command,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<HereExit> {
  let [output, errors] = ["", ""];
  const out = vi.spyOn(process.stdout, "write").mockImplementation((text, ...rest) => {
    output += text;
    const written = rest.find((each) => typeof each === "function");
    written?.();
    return true;
  });
  const err = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    errors += text;
    return true;
  });
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  const before = process.exitCode;
  const deafen = keepSignals();
  try {
    const code = await ending(command, args, (text) => (errors += text));
    return { code, output, errors };
  } finally {
    deafen();
    process.exitCode = before;
    vi.unstubAllEnvs();
    out.mockRestore();
    err.mockRestore();
  }
}

/** What it printed with `--json`. */
export function rowsOf({ output }: Pick<HereExit, "output">): readonly Record<string, unknown>[] {
  return output.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

/** As the program ends, with what commander and an error would print. */
async function ending(command: Command, args: readonly string[], tell: (text: string) => void): Promise<number> {
  process.exitCode = 0;
  try {
    await command.exitOverride().configureOutput({ writeErr: tell }).parseAsync(args, { from: "user" });
    return Number(process.exitCode);
  } catch (error) {
    const { text, exitCode } = endingOf(error);
    tell(text);
    return exitCode;
  }
}

// Commands that run in the tests' process hear its signals, and must not go on hearing them.

const SIGNALS = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"] as const;

/** The function it gives takes away whoever listens to a signal since. */
function keepSignals(): () => void {
  const before = SIGNALS.map((name) => [name, process.listeners(name)] as const);
  return () => {
    for (const [name, kept] of before)
      for (const listener of process.listeners(name)) if (!kept.includes(listener)) process.off(name, listener);
  };
}
