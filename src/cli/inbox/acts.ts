/** The commands that act on an inbox: `oncehook inbox replay`, `discard`, `unblock` and `release`. */
import { Command, InvalidArgumentError, Option } from "commander";
import { OncehookError } from "../../errors.ts";
import type { EventId, EventState, LaneSummary } from "../../inbox/record.ts";
import type { ActResult, LaneQuery } from "../../inbox/store.ts";
import { type BulkOptions, type BulkQuery, type BulkRefusal, newestEvent } from "../../receiver/bulk.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { summaryShape } from "../../receiver/shown.ts";
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
import { eventOf, lanesOf, lanesText } from "./reads.ts";

// Acts on single rows, one after the other: who does them, what came of each, and how the command ends.

/** What the act was not done for. */
type Refusal = Extract<ActResult, { ok: false }>["reason"] | "invalid_event";

const REASONS: Readonly<Record<Refusal, string>> = {
  not_found: "there is none",
  in_progress: "a receiver is handling it now, try again",
  body_pruned: "its body was pruned or erased",
  wrong_state: "it is in no state for this",
  invalid_event: "its body is still no event to this version, or not one that its secret vouches for",
};

interface RowAct {
  /** `event`, `lane`: the word before the id. */
  readonly noun: string;
  /** `replayed` */
  readonly done: string;
  act(id: number): Promise<ActResult>;
  /** The state that was the wrong one, where rows have a word for it. */
  stateOf?(id: number): Promise<string | undefined>;
}

/** Does it for each id, and says what came of it. Ends with 3 unless all were done. */
export async function actOnEach(
  terminal: Terminal,
  ids: readonly number[],
  { noun, done, act, stateOf }: RowAct,
): Promise<void> {
  for (const id of ids) {
    const result = await attempt(() => act(id));
    if (!result.ok) process.exitCode = NEGATIVE;
    const event = result.ok && noun !== "event" && result.event !== undefined ? { event: result.event } : {};
    const state = !result.ok && result.reason === "wrong_state" ? await stateOf?.(id) : undefined;
    const said = result.ok ? done : `left as it is: ${state === undefined ? REASONS[result.reason] : `it is ${state}`}`;
    const row = { [noun]: id, ...event, result: result.ok ? done : result.reason };
    const line = `${noun} ${id}${"event" in event ? ` (event ${event.event})` : ""}: ${said}`;
    await terminal.result(row, () => printable(line));
  }
}

async function attempt(act: () => Promise<ActResult>) {
  try {
    return await act();
  } catch (error) {
    if (error instanceof OncehookError && error.code === "invalid_event")
      return { ok: false, reason: "invalid_event" } as const;
    throw error;
  }
}

// `oncehook inbox replay`: hands settled events to their handlers again.

export function replayCommand(): Command {
  const command = new Command("replay")
    .description("hand events to their handlers again: by id, or all dead letters that match")
    .option("--skip-superseded", "leave out an event of a message of which a later one was handled");
  return bulkCommand(command, {
    ...{ verb: "replay", done: "replayed", states: ["done", "dead", "late", "discarded"] },
    examples: [
      "oncehook inbox replay 17 18 --store inbox.db",
      "oncehook inbox replay --error ECONNREFUSED --skip-superseded --dry-run --store inbox.db",
      "oncehook inbox replay --all --rate 50/s --yes --store inbox.db",
    ],
    one: (inbox, event, options) => inbox.replay(event, options),
    all: (inbox, query, options, { skipSuperseded = false }) => inbox.replayAll(query, { ...options, skipSuperseded }),
  });
}

// `oncehook inbox discard`: sets events aside; what waits behind them goes on.

export function discardCommand(): Command {
  const command = new Command("discard").description(
    "set events aside: by id, or all dead letters that match; they can be replayed until they are pruned",
  );
  return bulkCommand(command, {
    ...{ verb: "discard", done: "discarded", states: ["pending", "dead"] },
    examples: [
      "oncehook inbox discard 17 --store inbox.db",
      "oncehook inbox discard --type message.queued --older-than 7d --store inbox.db",
    ],
    one: (inbox, event, options) => inbox.discard(event, options),
    all: (inbox, query, options) => inbox.discardAll(query, options),
  });
}

// `replay` and `discard`: single events by their ids, or all that match filters, in order and at a rate.

interface BulkFlags extends InboxFlags, FilterFlags, ActFlags, AskFlags {
  readonly all?: true;
  readonly rate?: number;
  readonly dryRun?: true;
  readonly skipSuperseded?: true;
}

/** How many events came to which end. */
type Counts = Partial<Readonly<Record<BulkAct["done"] | "superseded" | BulkRefusal, number>>>;

const NONE_LEFT: Readonly<Record<BulkRefusal, 0>> = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 };

interface BulkAct {
  readonly verb: "replay" | "discard";
  /** The name of its count. */
  readonly done: "replayed" | "discarded";
  readonly states: readonly EventState[];
  readonly examples: readonly string[];
  one(inbox: Inbox, event: number, options: { readonly by: string }): Promise<ActResult>;
  all(inbox: Inbox, query: BulkQuery, options: BulkOptions<Counts>, flags: BulkFlags): Promise<Counts>;
}

/** Gives a command its arguments, flags and action; its own flags come first. */
export function bulkCommand(command: Command, act: BulkAct): Command {
  command.argument("[events...]", "ids of events", ids);
  addFilterFlags(command, act.states)
    .option("--all", "all dead letters, with no other filter")
    .option("--rate <number>", "at most so many: 50/s, 600/m", rate)
    .option("--dry-run", "change nothing, and count what would be done")
    .option("--yes", "do not ask");
  return withInboxFlags(addByFlag(command), act.examples).action(
    async (events: readonly number[], flags: BulkFlags) => {
      const query = checked(act, events, flags);
      const isBulk = events.length === 0;
      // Better known before the inbox is opened and read.
      if (isBulk && !flags.dryRun) checkAskable(flags);
      await withInbox(flags, (inbox, terminal) =>
        isBulk
          ? actOnMatching({ inbox, terminal, act, flags, query })
          : actOnEach(terminal, events, {
              ...{ noun: "event", done: act.done },
              act: (event) => act.one(inbox, event, actorOf(flags)),
              // Gone meanwhile: the line then does without, and the others are still to be acted on.
              stateOf: (event) =>
                eventOf(inbox, event).then(
                  ({ state }) => state,
                  () => undefined,
                ),
            }),
      );
    },
  );
}

/** `50/s`, `600/m`, `50`: in a second. */
export function rate(text: string): number {
  const [, amount, unit = "s"] = /^(\d+(?:\.\d+)?)(?:\/(s|m))?$/.exec(text) ?? [];
  const perSecond = Number(amount) / (unit === "m" ? 60 : 1);
  if (perSecond >= 0.01 && perSecond <= 100_000) return perSecond;
  throw new InvalidArgumentError("Write a number of events and a unit: 50/s, 600/m.");
}

/** @throws CommandError unless it is said which events are meant, and in one way */
function checked({ verb }: BulkAct, events: readonly number[], flags: BulkFlags): BulkQuery {
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
  return query;
}

interface Matching {
  readonly inbox: Inbox;
  readonly terminal: Terminal;
  readonly act: BulkAct;
  readonly flags: BulkFlags;
  readonly query: BulkQuery;
}

async function actOnMatching(matching: Matching): Promise<void> {
  const { inbox, terminal, act, flags, query } = matching;
  const { dryRun = false, yes, rate } = flags;
  const bounds = dryRun || yes ? {} : await agreed(matching);
  if (bounds === null) return;
  let counts: Counts = { [act.done]: 0, ...(act.verb === "replay" && { superseded: 0 }), ...NONE_LEFT };
  let bar: Progress | undefined;
  const stopped = await interruptible(async (signal) => {
    counts = await act.all(
      inbox,
      query,
      {
        ...{ ...bounds, signal, dryRun, ...actorOf(flags) },
        ...(rate !== undefined && { ratePerSecond: rate }),
        onProgress(progress) {
          counts = progress.counts;
          bar ??= terminal.progress(act.verb === "replay" ? "Replaying" : "Discarding", progress.total);
          bar.at(progress.done);
        },
      },
      flags,
    );
  }, "Give the same command again for the rest.").finally(() => bar?.end());
  await report(matching, counts);
  if (stopped) throw stopped;
}

/** Asks, and gives what was asked about; null where that is nothing. What is accepted while somebody thinks is none of it. */
async function agreed(matching: Matching): Promise<{ readonly upTo: EventId } | null> {
  const { inbox, act, flags, query } = matching;
  const bounds = { upTo: await newestEvent(inbox) };
  const planned = await act.all(inbox, query, { ...bounds, dryRun: true }, flags);
  if (planned[act.done] === 0) {
    await report(matching, planned);
    return null;
  }
  await confirm(`${summaryText(act, planned, true)} In ${inbox.location}. Go on?`, flags);
  return bounds;
}

async function report({ terminal, act, flags }: Matching, counts: Counts): Promise<void> {
  const { dryRun = false } = flags;
  await terminal.result({ ...counts, dryRun }, () => summaryText(act, counts, dryRun));
  if (refused(act, counts) > 0) process.exitCode = NEGATIVE;
}

/** Those that could not be acted on; a superseded one was left out on request. */
function refused({ done }: BulkAct, counts: Counts): number {
  const left = Object.entries(counts).filter(([name]) => name !== done && name !== "superseded");
  return left.reduce((sum, [, count]) => sum + count, 0);
}

/** `Replayed 4,000 events. Left as they are: 1,000 superseded, 2 body_pruned.` */
export function summaryText({ verb, done }: Pick<BulkAct, "verb" | "done">, counts: Counts, dryRun: boolean): string {
  const left = Object.entries(counts).filter(([name, count]) => name !== done && count > 0);
  const begin = dryRun ? `Would ${verb}` : `${done.charAt(0).toUpperCase()}${done.slice(1)}`;
  const first = `${begin} ${counted(counts[done] ?? 0, "event")}.`;
  if (left.length === 0) return first;
  return `${first} Left as they are: ${left.map(([name, count]) => `${count.toLocaleString("en-US")} ${name}`).join(", ")}.`;
}

// `oncehook inbox unblock`: lets messages go on that are parked behind a dead letter.

export function unblockCommand(): Command {
  const command = new Command("unblock").description('let messages go on that a dead letter blocks (onDead: "block")');
  return laneCommand(command, {
    ...{ verb: "unblock", done: "unblocked", status: "blocked" },
    act: (inbox, lane, options) => inbox.unblock(lane, options),
  });
}

// `oncehook inbox release`: gives up the gaps that messages wait for.

export function releaseCommand(): Command {
  const command = new Command("release").description("let messages go on that wait for a missing event");
  return laneCommand(command, {
    ...{ verb: "release", done: "released", status: "gap" },
    act: (inbox, lane, options) => inbox.releaseGap(lane, options),
  });
}

// `unblock` and `release`: lets messages go on that wait for somebody, or for what does not come.

interface LaneFlags extends InboxFlags, ActFlags, AskFlags {
  readonly message?: string;
  readonly client?: string;
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
  command
    .argument("[lanes...]", "numbers of lanes, as --list and show tell them", ids)
    .option("--message <id>", "this message, instead of a lane's number")
    .option("--client <id>", "messages of this API client; with --message, if several have the same id")
    .option("--all", "all of them")
    .addOption(new Option("--list", "only list them").conflicts(["all", "message"]))
    .option("--yes", "do not ask");
  return withInboxFlags(addByFlag(command), [
    `oncehook inbox ${act.verb} --list --store inbox.db`,
    `oncehook inbox ${act.verb} --message msg_1 --store inbox.db`,
    `oncehook inbox ${act.verb} --all --yes --store inbox.db`,
  ]).action(async (lanes: readonly number[], flags: LaneFlags) => {
    checkMeant(act, lanes, flags);
    if (flags.all) checkAskable(flags);
    await withInbox(flags, async (inbox, terminal) => {
      if (flags.list) return listLanes(inbox, terminal, queryOf(act, flags));
      const found = await meant(inbox, act, lanes, flags);
      if (found.length === 0) terminal.note(`There is nothing to ${act.verb}.`);
      await actOnEach(terminal, found, {
        ...{ noun: "lane", done: act.done },
        act: (lane) => act.act(inbox, lane, actorOf(flags)),
      });
    });
  });
}

/** @throws CommandError unless it is said which messages are meant, and in one way */
function checkMeant({ verb }: LaneAct, lanes: readonly number[], { message, client, all, list }: LaneFlags): void {
  if ([lanes.length > 0, message !== undefined, all, list].filter(Boolean).length !== 1)
    throw new CommandError(`Say in one way what to ${verb}: lanes, --message, --all or --list.`, USAGE_MISTAKE);
  if (lanes.length > 0 && client !== undefined)
    throw new CommandError("--client goes with --message, --all or --list, not with lanes.", USAGE_MISTAKE);
}

function queryOf({ status }: LaneAct, { client }: LaneFlags): LaneQuery {
  return { statuses: [status], ...(client !== undefined && { apiClientId: client }), limit: 1_000 };
}

async function listLanes(inbox: Inbox, terminal: Terminal, query: LaneQuery): Promise<void> {
  const page = await inbox.findLanes(query);
  const items = page.items.map(summaryShape);
  await printPage(terminal, { items, next: null }, { text: lanesText, noun: "message" });
  if (page.next !== null) terminal.caveat(`There are more: these are the newest ${items.length}.`);
}

async function meant(inbox: Inbox, act: LaneAct, lanes: readonly number[], flags: LaneFlags) {
  const { message, client, all } = flags;
  if (message !== undefined) return lanesOf(inbox, message, client);
  if (!all) return lanes;
  const found: number[] = [];
  for await (const { id } of lanesIn(inbox, queryOf(act, flags))) found.push(id);
  if (found.length > 0) await confirm(`Would ${act.verb} ${counted(found.length, "message")}. Go on?`, flags);
  return found;
}

async function* lanesIn(inbox: Inbox, query: LaneQuery): AsyncGenerator<LaneSummary> {
  for (let after: number | null | undefined; after !== null; ) {
    const page = await inbox.findLanes(after === undefined ? query : { ...query, after });
    yield* page.items;
    after = page.next;
  }
}
