/** `replay` and `discard`: single events by their ids, or all that match filters, in order and at a rate. */
import { type Command, InvalidArgumentError } from "commander";
import type { EventId, EventState } from "../../inbox/record.ts";
import type { ActResult } from "../../inbox/store.ts";
import { type BulkOptions, type BulkQuery, type BulkRefusal, newestEvent } from "../../receiver/bulk.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { CommandError, NEGATIVE, USAGE_MISTAKE } from "../failure.ts";
import type { Progress, Terminal } from "../terminal.ts";
import { type ActFlags, actOnEach, actorOf, addByFlag } from "./acting.ts";
import { type AskFlags, checkAskable, confirm } from "./asking.ts";
import { addFilterFlags, type FilterFlags, filterOf, ids } from "./filters.ts";
import { eventOf } from "./find-event.ts";
import { interruptible } from "./interruption.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { counted } from "./printable.ts";

export interface BulkFlags extends InboxFlags, FilterFlags, ActFlags, AskFlags {
  readonly all?: true;
  readonly rate?: number;
  readonly dryRun?: true;
  readonly skipSuperseded?: true;
}

/** How many events came to which end. */
type Counts = Partial<Readonly<Record<BulkAct["done"] | "superseded" | BulkRefusal, number>>>;

const NONE_LEFT: Readonly<Record<BulkRefusal, 0>> = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 };

export interface BulkAct {
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
