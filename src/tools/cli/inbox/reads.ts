/** The commands that look into an inbox: `oncehook inbox ls`, `show`, `stats`, `incomplete` and `audit`. */
import { Command, Option } from "commander";
import { entryNameOf } from "../../../inbox/lane-key.ts";
import type { AuditRecord, EventSummary, InboxStats, LaneId, QuarantineRecord } from "../../../inbox/record.ts";
import { systemClock } from "../../../internal/clock.ts";
import type { ErrorGroup } from "../../../receiver/bulk.ts";
import type { Inbox } from "../../../receiver/open-inbox.ts";
import {
  type EventShape,
  eventShape,
  type MessageShape,
  messageShape,
  type ShownBody,
  type SummaryShape,
  summaryShape,
} from "../../../receiver/shown.ts";
import { TERMINAL_EVENT_TYPES } from "../../../sources/messaging/parse.ts";
import { CommandError, NEGATIVE, USAGE_MISTAKE } from "../exit.ts";
import {
  type ActFlags,
  actorOf,
  addByFlag,
  duration,
  type InboxFlags,
  wholeNumber,
  withInbox,
  withInboxFlags,
} from "../flags.ts";
import {
  counted,
  factsText,
  printable,
  printableTable,
  printPage,
  printRows,
  type Terminal,
  timeText,
} from "../terminal.ts";
import { addFilterFlags, addPageFlags, type FilterFlags, filterOf, type PageFlags, pageOf } from "./filters.ts";

// `oncehook inbox ls`: events, newest first, or dead letters by what went wrong.

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

function eventsText(events: readonly EventShape[]): string {
  const cells = (event: EventShape) => [
    ...[`${event.id}`, timeText(event.acceptedAt), event.messageId, `${event.sequence}`, event.eventType],
    ...[stateText(event), `${event.attempts}`, event.errorCode ?? ""],
  ];
  return printableTable(COLUMNS, events.map(cells));
}

function stateText({ state, outcome, late, conflict }: EventShape): string {
  const marks = [outcome !== "handled" && outcome, late && state !== "late" && "late", conflict && "conflict"];
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

// `oncehook inbox show`: one event, or the story of a message.

interface ShowFlags extends InboxFlags, ActFlags {
  readonly message?: string;
  readonly client?: string;
  readonly reveal?: true;
}

export function showCommand(): Command {
  const command = new Command("show")
    .description("show an event, or everything about a message")
    .argument("[event]", "the event's id", wholeNumber(1))
    .option("--message <id>", "the message with all of its events, instead of one event")
    .option("--client <id>", "the API client of the message, if several have the same id")
    .option("--reveal", "show numbers and texts, which are masked otherwise; the audit records it");
  return withInboxFlags(addByFlag(command), [
    "oncehook inbox show 17 --store inbox.db",
    "oncehook inbox show --message msg_1 --store inbox.db",
    "oncehook inbox show 17 --reveal --json --store inbox.db",
  ]).action(async (event: number | undefined, flags: ShowFlags) => {
    if ((event === undefined) === (flags.message === undefined))
      throw new CommandError("Say what: the id of an event, or --message with the id of a message.", USAGE_MISTAKE);
    if (event !== undefined && flags.client !== undefined)
      throw new CommandError("--client goes with --message, not with an id.", USAGE_MISTAKE);
    await withInbox(flags, async (inbox, terminal) => {
      const { message, client, reveal = false } = flags;
      const lanes =
        message === undefined ? [(await eventOf(inbox, event ?? 0)).laneId] : await lanesOf(inbox, message, client);
      for (const id of lanes) {
        const lane = await inbox.lane(id);
        if (lane === null) continue;
        if (reveal) await inbox.reveal(id, actorOf(flags));
        const shows = await inbox.shows(entryNameOf(lane.key));
        const shown = event === undefined ? lane.events.map((one) => one.id).reverse() : [event];
        const shape = messageShape(lane, await inbox.bodies(shown), { reveal, shows, only: event });
        await terminal.result(shape, () => (event === undefined ? storyText(shape) : eventText(shape)));
      }
    });
  });
}

function storyText(message: MessageShape): string {
  const { gaps, attempts, more } = message;
  const parts = [messageText(message), eventsText(message.events)];
  if (more) parts.push("There are more events: these are next to the cursor.\n");
  if (gaps.length > 0) {
    const rows = gaps.map(({ from, to, skippedAt, filledAt }) => [
      `${from}`,
      `${to}`,
      ...[skippedAt, filledAt].map(timeText),
    ]);
    parts.push(printableTable(["gap from", "to", "given up", "came after all"], rows));
  }
  if (attempts.length > 0) parts.push(attemptsText(message));
  return parts.join("\n");
}

function messageText(message: MessageShape): string {
  const { messageId, apiClientId, tag, lane, status, cursor, readyAt, peer, externalReference } = message;
  return factsText({
    ...{ message: messageId, client: apiClientId, direction: tag, lane, status, cursor },
    ...{ "ready at": timeText(readyAt), number: peer, reference: externalReference },
  });
}

function attemptsText({ attempts }: MessageShape): string {
  const rows = attempts.map(({ eventId, attempt, at, durationMs, errorCode, error }) => [
    ...[`${eventId}`, `${attempt}`, timeText(at), `${Math.round(durationMs)} ms`, errorCode, error],
  ]);
  return printableTable(["event", "failed try", "at", "took", "error", "text"], rows);
}

function eventText(message: MessageShape): string {
  const [event] = message.events;
  if (event === undefined) return "";
  const { id, identity, eventType, sequence, state, outcome, attempts, duplicates, late, forced, conflict } = event;
  const facts = factsText({
    ...{ event: id, identity, type: eventType, sequence, state, outcome },
    ...{ late: yesNo(late), replayed: yesNo(forced), conflict: yesNo(conflict), duplicates, tries: attempts },
    ...{ occurred: timeText(event.occurredAt), accepted: timeText(event.acceptedAt) },
    ...{ started: timeText(event.startedAt), finished: timeText(event.finishedAt) },
    ...{ "error code": event.errorCode, error: event.error },
  });
  const parts = [messageText(message), facts];
  if (message.attempts.length > 0) parts.push(attemptsText(message));
  return [...parts, bodyText(event.body)].join("\n");
}

/** Over several lines if it is JSON, otherwise as it is. */
export function bodyText(body: ShownBody | null): string {
  if (body === null) return "The body was pruned or erased.\n";
  const lines = "masked" in body ? linesOf(body.masked) : "text" in body ? linesOf(parsed(body.text)) : [body.base64];
  return lines.map((line) => `${printable(line)}\n`).join("");
}

function linesOf(value: unknown): readonly string[] {
  return typeof value === "string" ? [value] : JSON.stringify(value, null, 2).split("\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function yesNo(value: boolean): string {
  return value ? "yes" : "no";
}

// `oncehook inbox stats`: what an inbox holds, and what has happened in it.

export function statsCommand(): Command {
  const command = new Command("stats").description("show what the inbox holds and has counted");
  return withInboxFlags(command, ["oncehook inbox stats --store inbox.db", "oncehook inbox stats --json"]).action(
    (flags: InboxFlags) =>
      withInbox(flags, async (inbox, terminal) => {
        const stats = await inbox.stats();
        const { location, rules } = inbox;
        await terminal.result({ location, ...rules, ...stats }, () => statsText(location, rules.name, stats));
      }),
  );
}

function statsText(location: string, name: string, stats: InboxStats): string {
  const { gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances } = stats;
  const waits = oldestPendingAt === null ? null : `${Math.round((systemClock.now() - oldestPendingAt) / 1_000)} s`;
  const receivers = instances.map(({ pid, seenAt }) => `process ${pid} (seen ${timeText(seenAt)})`);
  return [
    factsText({
      ...{ inbox: location, "receiver's name": name, receivers: receivers.join(", ") || "none" },
      ...{ "oldest pending waits for": waits, "newest delivery": timeText(newestSignedAt) },
      "retries are signed anew": serviceResigns ? "yes" : "not seen",
    }),
    `Now\n${indented(gauges)}`,
    `Since the inbox was made\n${indented(counters)}`,
  ].join("\n");
}

function indented(counts: Readonly<Record<string, number>>): string {
  const spelled = Object.entries(counts).map(([name, count]) => [
    name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
    count.toLocaleString("en-US"),
  ]);
  return factsText(Object.fromEntries(spelled)).replace(/^/gm, "  ").trimEnd().concat("\n");
}

// `oncehook inbox incomplete`: messages of whose end nothing has come, as after an outage longer than the service's retries.

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

// `oncehook inbox audit`: what operators did.

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

// Finds what a person names by its id.

/** @throws CommandError when there is none */
export async function eventOf(inbox: Inbox, id: number): Promise<EventSummary> {
  const { items } = await inbox.find({ after: id + 1, limit: 1 });
  // What comes first behind the next id is the one itself, if it is there.
  const event = items.find((row) => row.id === id);
  if (event === undefined) throw new CommandError(`There is no event ${id}.`, NEGATIVE);
  return event;
}

/** @throws CommandError when there is none */
export async function quarantinedOf(inbox: Inbox, id: number): Promise<QuarantineRecord> {
  const found = await inbox.quarantined(id);
  if (found === null) throw new CommandError(`There is no quarantined body ${id}.`, NEGATIVE);
  return found.row;
}

/** The lanes of a message: more than one only if API clients have the same message ids. @throws CommandError when there is none */
export async function lanesOf(inbox: Inbox, message: string, client: string | undefined): Promise<readonly LaneId[]> {
  const filter = { messageId: message, ...(client !== undefined && { apiClientId: client }) };
  const { items } = await inbox.find({ ...filter, limit: 1_000 });
  const lanes = new Set(items.map(({ laneId }) => laneId));
  if (lanes.size === 0) throw new CommandError("The inbox knows no such message, or no longer.", NEGATIVE);
  return [...lanes].sort((a, b) => a - b);
}
