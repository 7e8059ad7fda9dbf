/** `oncehook inbox audit`: what operators did. */
import { Command } from "commander";
import type { AuditRecord } from "../../inbox/record.ts";
import { wholeNumber } from "../flags.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { printableTable, timeText } from "./printable.ts";
import { printPage } from "./rows.ts";

interface AuditFlags extends InboxFlags {
  readonly limit: number;
}

export function auditCommand(): Command {
  const command = new Command("audit")
    .description("list what operators did, newest first")
    .option("--limit <number>", "at most this many acts, 1 to 1000", wholeNumber(1, 1_000), 50);
  return withInboxFlags(command, ["oncehook inbox audit --store inbox.db"]).action((flags: AuditFlags) =>
    withInbox(flags, async (inbox, terminal) => {
      const items = await inbox.audit(flags.limit);
      await printPage(terminal, { items, next: null }, { text: auditText, noun: "act" });
      if (items.length === flags.limit) terminal.caveat(`There may be more: these are the newest ${items.length}.`);
    }),
  );
}

function auditText(rows: readonly AuditRecord[]): string {
  const cells = ({ id, at, by, act, detail }: AuditRecord) => [`${id}`, timeText(at), by, act, detail];
  return printableTable(["id", "at", "by", "act", "detail"], rows.map(cells));
}
