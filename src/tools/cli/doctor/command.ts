/** `oncehook doctor`: finds mistakes in the set-up, and says how to fix them. */
import { Command } from "commander";
import { systemClock } from "../../../internal/clock.ts";
import { NEGATIVE } from "../exit.ts";
import { addHttpFlag, addStoreFlags } from "../flags.ts";
import { addSecretFlag, CLIENT_SECRET, WEBHOOK_SECRET } from "../input.ts";
import { addOutputFlags, counted, type OutputFlags, printable, Terminal } from "../terminal.ts";
import type { DoctorFlags } from "./examine.ts";
import type { Finding, Level } from "./finding.ts";

const EXAMPLES = `
What cannot be looked at without a flag is skipped. It exits with 0 if there is no problem, and with 3 if there is one.

Examples:
  $ oncehook doctor --store inbox.db --secret-file webhook.secret
  $ oncehook doctor --base-url https://api.example.com --client-id cli_1 --client-secret-file client.secret
  $ oncehook doctor --url https://hooks.example.com/webhooks --json
  $ oncehook doctor --store inbox.db --watch`;

/** The command, for the program. */
export function doctorCommand(): Command {
  const command = new Command("doctor").description("find mistakes in the set-up, and how to fix them");
  addSecretFlag(addStoreFlags(command), WEBHOOK_SECRET)
    .option("--base-url <url>", "the service's address, to ask it about webhooks and numbers")
    .option("--client-id <id>", "the API client that asks");
  addHttpFlag(addSecretFlag(command, CLIENT_SECRET)).option(
    "--url <url>",
    "the webhook's public address, to ask it without a signature",
  );
  command.option("--watch", "print what begins to need a person in the inbox, and what ends, until Ctrl-C");
  return addOutputFlags(command)
    .addHelpText("after", EXAMPLES)
    .action(async (flags: DoctorFlags & OutputFlags & { readonly watch?: true }) => {
      process.exitCode = flags.watch ? await runWatch(flags) : await run(flags);
    });
}

/** Resolves with the exit code once everything is printed. */
async function run(flags: DoctorFlags & OutputFlags): Promise<number> {
  const terminal = new Terminal(flags);
  // Loaded here: "--help" needs none of it.
  const [{ examine }, { thisRuntime }] = await Promise.all([import("./examine.ts"), import("./runtime.ts")]);
  const around = { clock: systemClock, fetch: globalThis.fetch, env: process.env, runtime: thisRuntime() };
  const counts: Record<Level, number> = { ok: 0, warning: 0, problem: 0, skipped: 0 };
  for await (const finding of examine(flags, around)) {
    counts[finding.level] += 1;
    if (!flags.quiet || finding.level === "problem" || finding.level === "warning")
      await terminal.result(finding, () => findingText(finding, terminal));
  }
  terminal.note(
    `\n${counted(counts.problem, "problem")}, ${counted(counts.warning, "warning")}, ${counts.skipped} skipped.`,
  );
  return counts.problem > 0 ? NEGATIVE : 0;
}

/** Ends with 0 at a signal. */
async function runWatch(flags: DoctorFlags & OutputFlags): Promise<number> {
  // Loaded here: "--help" needs none of it.
  const { watch } = await import("./watch.ts");
  await watch(flags, new Terminal(flags));
  return 0;
}

const STYLES = { ok: "green", warning: "yellow", problem: "red", skipped: "dim" } as const satisfies Record<
  Level,
  string
>;
const WIDTH = "problem".length;

function findingText({ level, code, what, fix }: Finding, terminal: Terminal): string {
  const head = terminal.style(STYLES[level], level.padEnd(WIDTH));
  const told = `${head}  ${printable(what)} (${code})`;
  if (fix === null) return told;
  // Flags to give, or a sentence that says what to do.
  const lead = fix.startsWith("--") ? "with" : "fix:";
  return `${told}\n${" ".repeat(WIDTH)}  ${lead} ${printable(fix)}`;
}
