/** The commands that look into an inbox: `oncehook inbox ls`, `show`, `stats`, `incomplete` and `audit`. */
import { Command, Option } from "commander";
import type { AuditRecord, EventSummary, InboxStats, LaneId, QuarantineRecord } from "../../../inbox/record.ts";
import type { EventQuery } from "../../../inbox/store.ts";
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
    "oncehook inbox ls --store inbox.db --lane msg_1 --json",
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

const COLUMNS = ["event", "accepted", "source", "lane or id", "seq", "type", "state", "tries", "error"];

function eventsText(events: readonly EventShape[]): string {
  const cells = (event: EventShape) => [
    ...[`${event.id}`, timeText(event.acceptedAt), event.source, event.lane ?? event.ownId ?? "-"],
    ...[`${event.sequence}`, event.eventType],
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

// `oncehook inbox show`: one event, or the story of a lane.

interface ShowFlags extends InboxFlags, ActFlags, NamedLane {
  readonly reveal?: true;
}

export function showCommand(): Command {
  const command = new Command("show")
    .description("show an event, or everything about a lane")
    .argument("[event]", "the event's number", wholeNumber(1));
  addLaneFlags(command).option("--reveal", "show numbers and texts, which are masked otherwise; the audit records it");
  return withInboxFlags(addByFlag(command), [
    "oncehook inbox show 17 --store inbox.db",
    "oncehook inbox show --id msg_1 --store inbox.db",
    "oncehook inbox show 17 --reveal --json --store inbox.db",
  ]).action(async (event: number | undefined, flags: ShowFlags) => {
    const { lane: name, id, source, tenant, reveal = false } = flags;
    if ([event, name, id].filter((one) => one !== undefined).length !== 1)
      throw new CommandError("Say what: the number of an event, or --lane, or --id.", USAGE_MISTAKE);
    if (event !== undefined && (source ?? tenant) !== undefined)
      throw new CommandError("--source and --tenant go with --lane or --id, not with a number.", USAGE_MISTAKE);
    await withInbox(flags, async (inbox, terminal) => {
      const lanes = event === undefined ? await lanesOf(inbox, flags) : [(await eventOf(inbox, event)).laneId];
      for (const number of lanes) {
        const lane = await inbox.lane(number);
        if (lane === null) continue;
        if (reveal) await inbox.reveal(number, actorOf(flags));
        const shows = await inbox.shows(lane.key.source);
        const shown = event === undefined ? lane.events.map((one) => one.id).reverse() : [event];
        const shape = messageShape(lane, await inbox.bodies(shown), { reveal, shows, only: event });
        await terminal.result(shape, () => (event === undefined ? storyText(shape) : eventText(shape)));
      }
    });
  });
}

function storyText(lane: MessageShape): string {
  const { gaps, attempts, more } = lane;
  const parts = [laneText(lane), eventsText(lane.events)];
  if (more) parts.push("There are more events: these are next to the cursor.\n");
  if (gaps.length > 0) {
    const rows = gaps.map(({ from, to, skippedAt, filledAt }) => [
      `${from}`,
      `${to}`,
      ...[skippedAt, filledAt].map(timeText),
    ]);
    parts.push(printableTable(["gap from", "to", "given up", "came after all"], rows));
  }
  if (attempts.length > 0) parts.push(attemptsText(lane));
  return parts.join("\n");
}

function laneText(shape: MessageShape): string {
  const { laneId, source, tenant, lane: name, order, status, cursor, readyAt, peer, externalReference } = shape;
  return factsText({
    ...{ lane: laneId, name, source, tenant, order, status, cursor },
    ...{ "ready at": timeText(readyAt), number: peer, reference: externalReference },
  });
}

function attemptsText({ attempts }: MessageShape): string {
  const rows = attempts.map(({ eventId, attempt, at, durationMs, errorCode, error }) => [
    ...[`${eventId}`, `${attempt}`, timeText(at), `${Math.round(durationMs)} ms`, errorCode, error],
  ]);
  return printableTable(["event", "failed try", "at", "took", "error", "text"], rows);
}

function eventText(lane: MessageShape): string {
  const [event] = lane.events;
  if (event === undefined) return "";
  const { id, ownId, identity, eventType, sequence, state, outcome, attempts, duplicates, late, forced, conflict } =
    event;
  const facts = factsText({
    ...{ event: id, id: ownId, identity, type: eventType, sequence, state, outcome },
    ...{ late: yesNo(late), replayed: yesNo(forced), conflict: yesNo(conflict), duplicates, tries: attempts },
    ...{ occurred: timeText(event.occurredAt), accepted: timeText(event.acceptedAt) },
    ...{ started: timeText(event.startedAt), finished: timeText(event.finishedAt) },
    ...{ "error code": event.errorCode, error: event.error },
  });
  const parts = [laneText(lane), facts];
  if (lane.attempts.length > 0) parts.push(attemptsText(lane));
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
  readonly tenant?: string;
}

export function incompleteCommand(): Command {
  const command = new Command("incomplete")
    .description("list outbound messages without message.delivery or message.failed, the newest first")
    .addOption(
      new Option("--older-than <age>", "nothing of it came for this long")
        .argParser(duration)
        .default(OLDER_THAN_MS, "90m"),
    )
    .option("--tenant <id>", "messages of this API client");
  addPageFlags(command, "messages");
  return withInboxFlags(command, [
    "oncehook inbox incomplete --store inbox.db",
    "oncehook inbox incomplete --older-than 6h --json --store inbox.db",
  ]).action((flags: IncompleteFlags) =>
    withInbox(flags, async (inbox, terminal) => {
      const { olderThan, tenant } = flags;
      const page = await inbox.findLanes({
        ...{ order: "sequence", without: TERMINAL_EVENT_TYPES, quietSince: systemClock.now() - olderThan },
        ...(tenant !== undefined && { tenant }),
        ...pageOf(flags),
      });
      await printPage(terminal, { ...page, items: page.items.map(summaryShape) }, { text: lanesText, noun: "message" });
    }),
  );
}

/** A table of lanes. */
export function lanesText(lanes: readonly SummaryShape[]): string {
  const cells = ({ laneId, source, lane, status, cursor, newest, peer }: SummaryShape) => [
    ...[`${laneId}`, source, lane ?? newest.ownId ?? "-", status, `${cursor ?? "-"}`],
    ...[newest.eventType, timeText(newest.acceptedAt), peer ?? ""],
  ];
  return printableTable(
    ["lane", "source", "name or id", "status", "cursor", "newest event", "accepted", "number"],
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

/** What names lanes, as flags. */
export interface NamedLane {
  readonly lane?: string;
  readonly id?: string;
  readonly source?: string;
  readonly tenant?: string;
}

export function addLaneFlags(command: Command): Command {
  return command
    .option("--lane <name>", "the lane with this name")
    .option("--id <id>", "the message with this id, or the lane of the event to which its source gave it")
    .option("--source <name>", "of this source only, by its name in the receiver")
    .option("--tenant <id>", "of this tenant only; of the messaging service, of this API client");
}

/** More than one lane only if sources or tenants have the same names and ids. @throws CommandError when there is none */
export async function lanesOf(inbox: Inbox, { lane, id, source, tenant }: NamedLane): Promise<readonly LaneId[]> {
  const find = async (filter: Partial<EventQuery>) => {
    const whose = { ...(source !== undefined && { source }), ...(tenant !== undefined && { tenant }) };
    return (await inbox.find({ ...filter, ...whose, limit: 1_000 })).items;
  };
  let events = await find({ lane: lane ?? id ?? "" });
  if (id !== undefined) {
    // The id of an outbound message is the name of its lane.
    events = events.filter((event) => event.lane.order === "sequence");
    if (events.length === 0) events = await find({ id });
  }
  const lanes = new Set(events.map(({ laneId }) => laneId));
  if (lanes.size === 0) throw new CommandError("The inbox has no such lane or id, or no longer.", NEGATIVE);
  return [...lanes].sort((a, b) => a - b);
}
