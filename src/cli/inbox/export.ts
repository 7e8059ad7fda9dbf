/** `oncehook inbox export`: everything that is held on a person or a message, for whoever asks for it. */
import { Command } from "commander";
import { NEGATIVE } from "../failure.ts";
import { jsonLine, print } from "../terminal.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { counted } from "./printable.ts";
import { addSubjectFlags, type SubjectFlags, subjectOf } from "./subject-flags.ts";

interface ExportFlags extends InboxFlags, SubjectFlags {}

export function exportCommand(): Command {
  const command = new Command("export").description(
    "print everything held on a person or a message, as JSON, one object a line; with numbers and texts",
  );
  return withInboxFlags(addSubjectFlags(command), [
    "oncehook inbox export --number +15550100002 --store inbox.db > held.jsonl",
  ]).action(async (flags: ExportFlags) => {
    const subject = subjectOf(flags);
    await withInbox(flags, async (inbox, terminal) => {
      let count = 0;
      for await (const record of inbox.exportSubject(subject)) {
        await print(jsonLine(record));
        count++;
      }
      terminal.note(count === 0 ? "Nothing is held." : `${counted(count, "record")}.`);
      if (count === 0) process.exitCode = NEGATIVE;
    });
  });
}
