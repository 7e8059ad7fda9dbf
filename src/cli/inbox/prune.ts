/** `oncehook inbox prune`: removes what is past its retention, as a running receiver does every ten minutes. */
import { Command } from "commander";
import { SetupError } from "../../errors.ts";
import type { Pruned } from "../../receiver/open-inbox.ts";
import type { RetentionOptions } from "../../receiver/retention.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
import { duration } from "../flags.ts";
import { type AskFlags, checkAskable, confirm } from "./asking.ts";
import { interruptible } from "./interruption.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";

interface PruneFlags extends InboxFlags, AskFlags {
  readonly handledBodies?: number;
  readonly otherBodies?: number;
  readonly identities?: number;
  readonly dead?: number;
}

export function pruneCommand(): Command {
  const command = new Command("prune")
    .description("remove what is past its retention; give it the times that the receiver has")
    .option("--handled-bodies <age>", "bodies of handled events (default: 7d)", duration)
    .option("--other-bodies <age>", "bodies of late and unhandled events (default: 30d)", duration)
    .option("--identities <age>", "identities, by which a repeat is known (default: 30d)", duration)
    .option("--dead <age>", "dead letters and quarantined bodies nobody acted on (default: 90d)", duration)
    .option("--yes", "do not ask");
  return withInboxFlags(command, [
    "oncehook inbox prune --store inbox.db",
    "oncehook inbox prune --handled-bodies 1d --yes --json --store inbox.db",
  ]).action(async (flags: PruneFlags) => {
    checkAskable(flags);
    await withInbox(flags, async (inbox, terminal) => {
      await confirm(`Would remove, for good, what is past its retention in ${inbox.location}. Go on?`, flags);
      let pruned: Pruned = { bodies: 0, events: 0, lanes: 0, quarantined: 0 };
      const bar = terminal.progress("Pruning", null);
      const stopped = await interruptible(async (signal) => {
        const onProgress = (sofar: Pruned) => {
          pruned = sofar;
          bar.at(sofar.bodies + sofar.events + sofar.lanes + sofar.quarantined);
        };
        pruned = await inbox.prune(retentionOf(flags), { signal, onProgress }).catch(inFlags);
      }, "Give the same command again for the rest.").finally(() => bar.end());
      await terminal.result(pruned, () => prunedText(pruned));
      if (stopped) throw stopped;
    });
  });
}

function retentionOf({ handledBodies, otherBodies, identities, dead }: PruneFlags): RetentionOptions {
  return {
    ...(handledBodies !== undefined && { handledBodiesMs: handledBodies }),
    ...(otherBodies !== undefined && { otherBodiesMs: otherBodies }),
    ...(identities !== undefined && { identitiesMs: identities }),
    ...(dead !== undefined && { deadMs: dead }),
  };
}

const FLAGS: Readonly<Record<string, string>> = {
  "retention.handledBodiesMs": "--handled-bodies",
  "retention.otherBodiesMs": "--other-bodies",
  "retention.identitiesMs": "--identities",
  "retention.deadMs": "--dead",
};

/** A time out of bounds, in the words of the command line. */
function inFlags(error: unknown): never {
  const option = error instanceof SetupError ? String(error.fields.option) : "";
  const flag = FLAGS[option];
  if (!(error instanceof SetupError) || flag === undefined) throw error;
  throw new CommandError(error.message.replace(`Option "${option}"`, flag), USAGE_MISTAKE, { cause: error });
}

function prunedText({ bodies, events, lanes, quarantined }: Pruned): string {
  const counts = { bodies, events, messages: lanes, "quarantined bodies": quarantined };
  const told = Object.entries(counts).map(([name, count]) => `${count.toLocaleString("en-US")} ${name}`);
  return `Removed ${told.join(", ")}.`;
}
