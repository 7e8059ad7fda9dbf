/** `oncehook inbox ls`: events, newest first, or dead letters by what went wrong. */
import { Command, Option } from "commander";
import type { ErrorGroup } from "../../receiver/bulk.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { type EventShape, eventShape } from "../../receiver/shown/shapes.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
import type { Terminal } from "../terminal.ts";
import { addFilterFlags, addPageFlags, type FilterFlags, filterOf, type PageFlags, pageOf } from "./filters.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { counted, printableTable, timeText } from "./printable.ts";
import { printPage, printRows } from "./rows.ts";

interface LsFlags extends InboxFlags, FilterFlags, PageFlags {
  readonly oldest?: true;
  readonly groupBy?: "error";
}

export function lsCommand(): Command {
  const command = new Command("ls").description("list events, newest first");
  addFilterFlags(command, ["pending", "done", "dead", "late", "discarded"]);
  addPageFlags(command, "events")
    .option("--oldest", "oldest first")
    .addOption(new Option("--group-by <what>", "count dead letters that failed alike").choices(["error"]));
  return withInboxFlags(command, [
    "oncehook inbox ls --store inbox.db --state dead --since 2h",
    "oncehook inbox ls --store inbox.db --group-by error",
    "oncehook inbox ls --store inbox.db --message msg_1 --json",
  ]).action(async (flags: LsFlags) => {
    const { groupBy } = flags;
    if (groupBy !== undefined && flags.state?.some((state) => state !== "dead"))
      throw new CommandError("--group-by error counts dead letters: leave --state out.", USAGE_MISTAKE);
    await withInbox(flags, (inbox, terminal) => (groupBy ? listGroups : listEvents)(inbox, terminal, flags));
  });
}

async function listEvents(inbox: Inbox, terminal: Terminal, flags: LsFlags): Promise<void> {
  const order = flags.oldest ? "oldest" : "newest";
  const page = await inbox.find({ ...filterOf(flags), ...pageOf(flags), order });
  const items = page.items.map((event) => eventShape(event, false));
  await printPage(terminal, { ...page, items }, { text: eventsText, noun: "event" });
}

const COLUMNS = ["id", "accepted", "message", "seq", "type", "state", "tries", "error"];

export function eventsText(events: readonly EventShape[]): string {
  const cells = (event: EventShape) => [
    ...[`${event.id}`, timeText(event.acceptedAt), event.messageId, `${event.sequence}`, event.eventType],
    ...[stateText(event), `${event.attempts}`, event.errorCode ?? ""],
  ];
  return printableTable(COLUMNS, events.map(cells));
}

function stateText({ state, outcome, late, conflict }: EventShape): string {
  const marks = [outcome === "unhandled" && outcome, late && state !== "late" && "late", conflict && "conflict"];
  return [state, ...marks].filter(Boolean).join(", ");
}

async function listGroups(inbox: Inbox, terminal: Terminal, flags: LsFlags): Promise<void> {
  const { states: _states, ...filter } = filterOf(flags);
  const groups = await inbox.groupByError(filter);
  await printRows(terminal, groups.slice(0, flags.limit), groupsText);
  if (groups.length > flags.limit) terminal.caveat(`There are more: these are the largest ${flags.limit}.`);
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  terminal.note(`${counted(total, "dead letter")}, ${counted(groups.length, "kind")} of error.`);
}

function groupsText(groups: readonly ErrorGroup[]): string {
  const cells = ({ count, errorCode, error, oldestAt, newestAt, exampleId }: ErrorGroup) => [
    ...[`${count}`, errorCode ?? "-", timeText(oldestAt), timeText(newestAt), `${exampleId}`, error ?? ""],
  ];
  return printableTable(["count", "code", "oldest", "newest", "example", "error"], groups.map(cells));
}
