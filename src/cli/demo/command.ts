/** `oncehook demo`: the service, a client of it and a receiver in one process, from the first token to a rotated secret. */
import { Command } from "commander";
import { systemClock } from "../../internal/clock.ts";
import { FAILURE, interruptible } from "../exit.ts";
import { addOutputFlags, type OutputFlags, print, Terminal } from "../terminal.ts";

const HELP = `
It needs no network and leaves nothing behind: all of it happens on this machine, in a temporary folder.

Examples:
  $ oncehook demo
  $ oncehook demo --json

Exit codes: 0 every check held, 1 one did not, or the story could not be told to its end.`;

/** The command, for the program. */
export function demoCommand(): Command {
  const command = new Command("demo")
    .description("show emulator, client and receiver at work, and check what they promise")
    .addHelpText("after", HELP);
  return addOutputFlags(command).action(async (flags: OutputFlags) => {
    process.exitCode = await run(flags);
  });
}

/** Resolves with the exit code. */
async function run({ quiet = false, ...flags }: OutputFlags): Promise<number> {
  // Loaded here: "--help" needs none of it.
  const [{ Report }, { onStage }, { tellStory }] = await Promise.all([
    import("./report.ts"),
    import("./stage.ts"),
    import("./story.ts"),
  ]);
  const terminal = new Terminal(flags);
  const startedAt = systemClock.monotonic();
  const audience = {
    json: terminal.json,
    quiet,
    write: (line: string) => void process.stdout.write(`${line}\n`),
    style: terminal.style.bind(terminal),
  };
  let exitCode = FAILURE;
  const stopped = await interruptible(async (stop) => {
    const report = new Report({ ...audience, stop });
    await onStage((stage) => tellStory(stage, report));
    exitCode = report.end(Math.round(systemClock.monotonic() - startedAt) / 1_000);
  }, "Nothing is left behind.");
  if (stopped) throw stopped;
  await print("");
  return exitCode;
}
