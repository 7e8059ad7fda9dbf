/** `oncehook inbox incomplete`: messages of whose end nothing has come, as after an outage longer than the service's retries. */
import { Command, Option } from "commander";
import { TERMINAL_EVENT_TYPES } from "../../events/parse.ts";
import { systemClock } from "../../internal/clock.ts";
import { type SummaryShape, summaryShape } from "../../receiver/shown/shapes.ts";
import { duration } from "../flags.ts";
import { addPageFlags, type PageFlags, pageOf } from "./filters.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { printableTable, timeText } from "./printable.ts";
import { printPage } from "./rows.ts";

/** The service's last retry comes after 81 minutes: whatever is missing then does not come any more. */
const OLDER_THAN_MS = 90 * 60_000;

interface IncompleteFlags extends InboxFlags, PageFlags {
  readonly olderThan: number;
  readonly client?: string;
}

export function incompleteCommand(): Command {
  const command = new Command("incomplete")
    .description("list outbound messages without message.delivery or message.failed, the newest first")
    .addOption(
      new Option("--older-than <age>", "nothing of it came for this long")
        .argParser(duration)
        .default(OLDER_THAN_MS, "90m"),
    )
    .option("--client <id>", "messages of this API client");
  addPageFlags(command, "messages");
  return withInboxFlags(command, [
    "oncehook inbox incomplete --store inbox.db",
    "oncehook inbox incomplete --older-than 6h --json --store inbox.db",
  ]).action((flags: IncompleteFlags) =>
    withInbox(flags, async (inbox, terminal) => {
      const { olderThan, client } = flags;
      const page = await inbox.findLanes({
        ...{ tag: "outbound", without: TERMINAL_EVENT_TYPES, quietSince: systemClock.now() - olderThan },
        ...(client !== undefined && { apiClientId: client }),
        ...pageOf(flags),
      });
      await printPage(terminal, { ...page, items: page.items.map(summaryShape) }, { text: lanesText, noun: "message" });
    }),
  );
}

/** A table of messages. */
export function lanesText(lanes: readonly SummaryShape[]): string {
  const cells = ({ lane, messageId, status, cursor, newest, peer }: SummaryShape) => [
    ...[`${lane}`, messageId, status, `${cursor ?? "-"}`, newest.eventType, timeText(newest.acceptedAt), peer ?? ""],
  ];
  return printableTable(
    ["lane", "message", "status", "cursor", "newest event", "accepted", "number"],
    lanes.map(cells),
  );
}
