/** `oncehook inbox erase`: removes a person's data, or a message's. */
import { Command } from "commander";
import { CommandError, NEGATIVE } from "../failure.ts";
import { type ActFlags, actorOf, addByFlag } from "./acting.ts";
import { type AskFlags, checkAskable, confirm } from "./asking.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { counted } from "./printable.ts";
import { addSubjectFlags, type SubjectFlags, subjectOf, subjectText } from "./subject-flags.ts";

interface EraseFlags extends InboxFlags, SubjectFlags, AskFlags, ActFlags {}

export function eraseCommand(): Command {
  const command = new Command("erase").description(
    "remove bodies, numbers, references and error texts for good; what identifies an event stays",
  );
  addByFlag(addSubjectFlags(command).option("--yes", "do not ask"));
  return withInboxFlags(command, [
    "oncehook inbox erase --number +15550100002 --store inbox.db",
    "oncehook inbox erase --message msg_1 --yes --json --store inbox.db",
  ]).action(async (flags: EraseFlags) => {
    const subject = subjectOf(flags);
    checkAskable(flags);
    await withInbox(flags, async (inbox, terminal) => {
      await confirm(
        `Would erase what is held on ${subjectText(subject)}, for good, in ${inbox.location}. Go on?`,
        flags,
      );
      const result = await inbox.erase(subject, actorOf(flags));
      if (!result.ok)
        throw new CommandError(
          "A receiver is handling one of its events now: not everything was erased. Give the same command again.",
          NEGATIVE,
        );
      const { count } = result;
      if (count === 0) process.exitCode = NEGATIVE;
      await terminal.result({ erased: count }, () => erasedText(count));
      terminal.note("Backups, logs and what was forwarded keep their copies.");
    });
  });
}

function erasedText(count: number): string {
  return count === 0 ? "Nothing is held." : `Erased what ${counted(count, "row")} held.`;
}
