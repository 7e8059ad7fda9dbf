/** `oncehook inspect`: the page that shows what happened to a message, for one person on this machine. */
import { Command, Option } from "commander";
import { wholeNumber } from "../flags.ts";
import { addByFlag } from "../inbox/acting.ts";
import { inWords, withInboxFlags } from "../inbox/opening.ts";
import type { InspectFlags } from "./flags.ts";

const EXAMPLES = ["oncehook inspect --store inbox.db", "oncehook inspect --store inbox.db --access read --port 4000"];

/** The command, for the program. */
export function inspectCommand(): Command {
  const command = new Command("inspect")
    .description("open a page that shows an inbox, for one person on this machine")
    .addOption(port())
    .addOption(access());
  return withInboxFlags(addByFlag(command), EXAMPLES).action(async (flags: InspectFlags) => {
    process.exitCode = await run(flags);
  });
}

async function run(flags: InspectFlags): Promise<number> {
  // Loaded here: "--help" needs none of it.
  const { inspect } = await import("./run.ts");
  try {
    return await inspect(flags);
  } catch (error) {
    throw inWords(error);
  }
}

function port(): Option {
  return new Option("--port <number>", "TCP port on 127.0.0.1; 0 picks a free one")
    .default(0)
    .argParser(wholeNumber(0, 65_535));
}

function access(): Option {
  const means = "what the page may do: read, act (replay, discard, …) or reveal (numbers and texts) too";
  return new Option("--access <right>", means).choices(["read", "act", "reveal"]).default("reveal");
}
