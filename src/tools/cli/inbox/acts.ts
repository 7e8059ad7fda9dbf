/** The commands that act on an inbox: `oncehook inbox replay`, `discard`, `unblock` and `release`. */

import { Command, InvalidArgumentError, Option } from "commander";
import { allPages } from "../../../inbox/copy.ts";
import type { ActResult, LaneQuery } from "../../../inbox/store.ts";
import { systemClock } from "../../../internal/clock.ts";
import { DISCARDABLE, REFUSALS, REPLAYABLE } from "../../../receiver/bulk.ts";
import {
  actAnswer,
  type BulkCounts,
  type BulkOrder,
  boundedOrder,
  DONE,
  type RowRefusal,
  runBulk,
} from "../../../receiver/bulk-order.ts";
import type { Inbox } from "../../../receiver/open-inbox.ts";
import { summaryShape } from "../../../receiver/shown.ts";
import { CommandError, interruptible, NEGATIVE, USAGE_MISTAKE } from "../exit.ts";
import { type ActFlags, actorOf, addByFlag, type InboxFlags, withInbox, withInboxFlags } from "../flags.ts";
import {
  type AskFlags,
  checkAskable,
  confirm,
  counted,
  type Progress,
  printable,
  printPage,
  type Terminal,
} from "../terminal.ts";
import { addFilterFlags, type FilterFlags, filterOf, ids } from "./filters.ts";
import { addLaneFlags, eventOf, lanesOf, lanesText, type NamedLane } from "./reads.ts";

const REASONS: Readonly<Record<RowRefusal, string>> = {
  not_found: "there is none",
  in_progress: "a receiver is handling it now: try again later",
  body_pruned: "its body was pruned or erased",
  wrong_state: "its state does not allow this",
  invalid_event: "its body is still not a valid event for this version, or its secret does not cover this event",
  source_needed: "it came through a source that only the application has: replay it there",
};

interface RowAct {
  /** `event`, `lane`: the word before the number. */
  readonly noun: string;
  /** The number's field with `--json`. */
  readonly key: string;
  /** `replayed` */
  readonly done: string;
  act(id: number): Promise<ActResult>;
  /** The row's state, to name it where it was the wrong one. */
  stateOf?(id: number): Promise<string | undefined>;
}

/** Acts on each id in turn and prints each result. The command ends with 3 unless all were done. */
export async function actOnEach(
  terminal: Terminal,
  ids: readonly number[],
  { noun, key, done, act, stateOf }: RowAct,
): Promise<void> {
  for (const id of ids) {
    const result = await actAnswer(() => act(id));
    if (!result.ok) process.exitCode = NEGATIVE;
    const event = result.ok && noun !== "event" && result.event !== null ? { event: result.event } : {};
    const state = !result.ok && result.reason === "wrong_state" ? await stateOf?.(id) : undefined;
    const said = result.ok ? done : `left as it is: ${state === undefined ? REASONS[result.reason] : `it is ${state}`}`;
    const row = { [key]: id, ...event, result: result.ok ? done : result.reason };
    const line = `${noun} ${id}${"event" in event ? ` (event ${event.event})` : ""}: ${said}`;
    await terminal.result(row, () => printable(line));
  }
}

interface EventFlags extends InboxFlags, FilterFlags, ActFlags, AskFlags {
  readonly all?: true;
  readonly rate?: number;
  readonly dryRun?: true;
  readonly skipSuperseded?: true;
}

type EventVerb = "replay" | "discard";

export function replayCommand(): Command {
  const command = new Command("replay")
    .description("pass events to their handlers again: by id, or all dead letters that match")
    .option("--skip-superseded", "leave out an event if a later one of its lane was handled");
  return eventCommand(command, "replay", [
    "oncehook inbox replay 17 18 --store inbox.db",
    "oncehook inbox replay --error ECONNREFUSED --skip-superseded --dry-run --store inbox.db",
    "oncehook inbox replay --all --rate 50/s --yes --store inbox.db",
  ]);
}

export function discardCommand(): Command {
  const command = new Command("discard").description(
    "set events aside: by id, or all dead letters that match; they can be replayed until they are pruned",
  );
  return eventCommand(command, "discard", [
    "oncehook inbox discard 17 --store inbox.db",
    "oncehook inbox discard --type message.queued --older-than 7d --store inbox.db",
  ]);
}

/** Single events by their ids, or all that match filters, in order and at a rate. */
function eventCommand(command: Command, verb: EventVerb, examples: readonly string[]): Command {
  command.argument("[events...]", "ids of events", ids);
  addFilterFlags(command, verb === "replay" ? REPLAYABLE : DISCARDABLE)
    .option("--all", "all dead letters, with no other filter")
    .option("--rate <number>", "at most this many: 50/s, 600/m", rate)
    .option("--dry-run", "change nothing, only count what would be done")
    .option("--yes", "do not ask");
  return withInboxFlags(addByFlag(command), examples).action(async (events: readonly number[], flags: EventFlags) => {
    const order = orderOf(verb, events, flags);
    const isBulk = events.length === 0;
    // Checked before the inbox is opened and read.
    if (isBulk && !flags.dryRun) checkAskable(flags);
    await withInbox(flags, (inbox, terminal) =>
      isBulk
        ? actOnMatching(inbox, terminal, order, flags)
        : actOnEach(terminal, events, {
            ...{ noun: "event", key: "event", done: DONE[verb] },
            act: (event) => inbox[verb](event, actorOf(flags)),
            // An event that is gone by now has no state to print, and the others still have their turn.
            stateOf: (event) =>
              eventOf(inbox, event).then(
                ({ state }) => state,
                () => undefined,
              ),
          }),
    );
  });
}

/** `50/s`, `600/m`, `50`: per second. */
export function rate(text: string): number {
  const [, amount, unit = "s"] = /^(\d+(?:\.\d+)?)(?:\/(s|m))?$/.exec(text) ?? [];
  const perSecond = Number(amount) / (unit === "m" ? 60 : 1);
  if (perSecond >= 0.01 && perSecond <= 100_000) return perSecond;
  throw new InvalidArgumentError("Write a number of events and a unit: 50/s, 600/m.");
}

/** @throws CommandError unless the events are named in exactly one way */
function orderOf(verb: EventVerb, events: readonly number[], flags: EventFlags): EventOrder {
  const query = filterOf(flags);
  const filters = Object.keys(query).length > 0;
  const ways = [events.length > 0, filters, flags.all === true].filter(Boolean).length;
  if (ways !== 1) {
    const mistake = ways === 0 ? "Say which events" : "Say in one way which events";
    throw new CommandError(`${mistake} to ${verb}: ids, filters such as --error CODE, or --all.`, USAGE_MISTAKE);
  }
  const { rate, dryRun, skipSuperseded } = flags;
  const many = { "--rate": rate, "--dry-run": dryRun, "--skip-superseded": skipSuperseded };
  const [flag] = Object.entries(many).find(([, value]) => value !== undefined) ?? [];
  if (events.length > 0 && flag !== undefined)
    throw new CommandError(`${flag} goes with filters or --all, not with ids.`, USAGE_MISTAKE);
  return verb === "replay" ? { act: verb, query, skipSuperseded: skipSuperseded === true } : { act: verb, query };
}

type EventOrder = Extract<BulkOrder, { act: EventVerb }>;

async function actOnMatching(inbox: Inbox, terminal: Terminal, order: EventOrder, flags: EventFlags): Promise<void> {
  const { act } = order;
  const { dryRun = false, yes, rate } = flags;
  const agreed = dryRun || yes ? order : await agreedOrder(inbox, terminal, order, flags);
  if (agreed === null) return;
  let counts: BulkCounts = { [DONE[act]]: 0, ...(act === "replay" && { superseded: 0 }), ...REFUSALS };
  let bar: Progress | undefined;
  const stopped = await interruptible(async (signal) => {
    counts = await runBulk(inbox, agreed, {
      ...{ clock: systemClock, signal, dryRun, ...actorOf(flags) },
      ...(rate !== undefined && { ratePerSecond: rate }),
      onProgress(progress) {
        counts = progress.counts;
        bar ??= terminal.progress(act === "replay" ? "Replaying" : "Discarding", progress.total);
        bar.at(progress.done);
      },
    });
  }, "Give the same command again for the rest.").finally(() => bar?.end());
  await report(terminal, act, counts, dryRun);
  if (stopped) throw stopped;
}

/** Asks, and returns what was asked about: without events that are accepted meanwhile. Null where there is nothing to do. */
async function agreedOrder(
  inbox: Inbox,
  terminal: Terminal,
  order: EventOrder,
  flags: EventFlags,
): Promise<BulkOrder | null> {
  const { act } = order;
  const bounded = await boundedOrder(inbox, order);
  const planned = await runBulk(inbox, bounded, { clock: systemClock, dryRun: true });
  if (!planned[DONE[act]]) {
    await report(terminal, act, planned, false);
    return null;
  }
  await confirm(`${summaryText(act, planned, true)} In ${inbox.location}. Go on?`, flags);
  return bounded;
}

async function report(terminal: Terminal, act: EventVerb, counts: BulkCounts, dryRun: boolean): Promise<void> {
  await terminal.result({ ...counts, dryRun }, () => summaryText(act, counts, dryRun));
  // A superseded event was left out on request.
  const { [DONE[act]]: _done, superseded: _superseded, ...refused } = counts;
  if (Object.values(refused).some((count) => count > 0)) process.exitCode = NEGATIVE;
}

/** `Replayed 4,000 events. Left as they are: 1,000 superseded, 2 body_pruned.` */
export function summaryText(act: EventVerb, counts: BulkCounts, dryRun: boolean): string {
  const done = DONE[act];
  const left = Object.entries(counts).filter(([name, count]) => name !== done && count > 0);
  const begin = dryRun ? `Would ${act}` : `${done.charAt(0).toUpperCase()}${done.slice(1)}`;
  const first = `${begin} ${counted(counts[done] ?? 0, "event")}.`;
  if (left.length === 0) return first;
  return `${first} Left as they are: ${left.map(([name, count]) => `${count.toLocaleString("en-US")} ${name}`).join(", ")}.`;
}

export function unblockCommand(): Command {
  const command = new Command("unblock").description('let lanes go on that a dead letter blocks (onDead: "block")');
  return laneCommand(command, {
    ...{ verb: "unblock", done: "unblocked", status: "blocked" },
    act: (inbox, lane, options) => inbox.unblock(lane, options),
  });
}

export function releaseCommand(): Command {
  const command = new Command("release").description("let lanes go on that wait for a missing event");
  return laneCommand(command, {
    ...{ verb: "release", done: "released", status: "gap" },
    act: (inbox, lane, options) => inbox.releaseGap(lane, options),
  });
}

interface LaneFlags extends InboxFlags, ActFlags, AskFlags, NamedLane {
  readonly all?: true;
  readonly list?: true;
}

interface LaneAct {
  readonly verb: "unblock" | "release";
  readonly done: "unblocked" | "released";
  /** The status of the lanes it is for. */
  readonly status: "blocked" | "gap";
  act(inbox: Inbox, lane: number, options: { readonly by: string }): Promise<ActResult>;
}

function laneCommand(command: Command, act: LaneAct): Command {
  command.argument("[lanes...]", "numbers of lanes, as --list and show tell them", ids);
  addLaneFlags(command)
    .option("--all", "all of them")
    .addOption(new Option("--list", "only list them").conflicts(["all", "lane", "id"]))
    .option("--yes", "do not ask");
  return withInboxFlags(addByFlag(command), [
    `oncehook inbox ${act.verb} --list --store inbox.db`,
    `oncehook inbox ${act.verb} --id msg_1 --store inbox.db`,
    `oncehook inbox ${act.verb} --all --yes --store inbox.db`,
  ]).action(async (lanes: readonly number[], flags: LaneFlags) => {
    checkMeant(act, lanes, flags);
    if (flags.all) checkAskable(flags);
    await withInbox(flags, async (inbox, terminal) => {
      if (flags.list) return listLanes(inbox, terminal, queryOf(act, flags));
      const found = await meant(inbox, act, lanes, flags);
      if (found.length === 0) terminal.note(`There is nothing to ${act.verb}.`);
      await actOnEach(terminal, found, {
        ...{ noun: "lane", key: "laneId", done: act.done },
        act: (lane) => act.act(inbox, lane, actorOf(flags)),
      });
    });
  });
}

/** @throws CommandError unless the lanes are named in exactly one way */
function checkMeant({ verb }: LaneAct, lanes: readonly number[], flags: LaneFlags): void {
  const { lane, id, source, tenant, all, list } = flags;
  if ([lanes.length > 0, lane !== undefined, id !== undefined, all, list].filter(Boolean).length !== 1)
    throw new CommandError(`Say in one way what to ${verb}: lanes, --lane, --id, --all or --list.`, USAGE_MISTAKE);
  if (lanes.length > 0 && (source ?? tenant) !== undefined)
    throw new CommandError("--source and --tenant do not go with numbers of lanes.", USAGE_MISTAKE);
}

function queryOf({ status }: LaneAct, { source, tenant }: LaneFlags): LaneQuery {
  const whose = { ...(source !== undefined && { source }), ...(tenant !== undefined && { tenant }) };
  return { statuses: [status], ...whose, limit: 1_000 };
}

async function listLanes(inbox: Inbox, terminal: Terminal, query: LaneQuery): Promise<void> {
  const page = await inbox.findLanes(query);
  const items = page.items.map(summaryShape);
  await printPage(terminal, { items, next: null }, { text: lanesText, noun: "lane" });
  if (page.next !== null) terminal.caveat(`There are more: these are the newest ${items.length}.`);
}

async function meant(inbox: Inbox, act: LaneAct, lanes: readonly number[], flags: LaneFlags) {
  const { lane, id, all } = flags;
  if ((lane ?? id) !== undefined) return lanesOf(inbox, flags);
  if (!all) return lanes;
  const found: number[] = [];
  const query = queryOf(act, flags);
  for await (const { id } of allPages((page) => inbox.findLanes({ ...query, ...page }))) found.push(id);
  if (found.length > 0) await confirm(`Would ${act.verb} ${counted(found.length, "lane")}. Go on?`, flags);
  return found;
}
