/** `unblock` and `release`: lets messages go on that wait for somebody, or for what does not come. */
import { type Command, Option } from "commander";
import type { LaneSummary } from "../../inbox/record.ts";
import type { ActResult, LaneQuery } from "../../inbox/store.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { summaryShape } from "../../receiver/shown/shapes.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
import type { Terminal } from "../terminal.ts";
import { type ActFlags, actOnEach, actorOf, addByFlag } from "./acting.ts";
import { type AskFlags, checkAskable, confirm } from "./asking.ts";
import { ids } from "./filters.ts";
import { lanesOf } from "./find-event.ts";
import { lanesText } from "./incomplete.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { counted } from "./printable.ts";
import { printPage } from "./rows.ts";

interface LaneFlags extends InboxFlags, ActFlags, AskFlags {
  readonly message?: string;
  readonly client?: string;
  readonly all?: true;
  readonly list?: true;
}

export interface LaneAct {
  readonly verb: "unblock" | "release";
  readonly done: "unblocked" | "released";
  /** The status of the lanes it is for. */
  readonly status: "blocked" | "gap";
  act(inbox: Inbox, lane: number, options: { readonly by: string }): Promise<ActResult>;
}

export function laneCommand(command: Command, act: LaneAct): Command {
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
