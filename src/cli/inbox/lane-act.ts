/** `unblock` and `release`: lets messages go on that wait for somebody, or for what does not come. */
import { type Command, Option } from "commander";
import type { LaneSummary } from "../../inbox/record.ts";
import type { ActResult, LaneQuery } from "../../inbox/store.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { summaryShape } from "../../receiver/shown/shapes.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
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
    .option("--client <id>", "the API client of the message, if several have the same id")
    .option("--all", "all of them")
    .addOption(new Option("--list", "only list them").conflicts(["all", "message"]))
    .option("--yes", "do not ask");
  return withInboxFlags(addByFlag(command), [
    `oncehook inbox ${act.verb} --list --store inbox.db`,
    `oncehook inbox ${act.verb} --message msg_1 --store inbox.db`,
    `oncehook inbox ${act.verb} --all --yes --store inbox.db`,
  ]).action(async (lanes: readonly number[], flags: LaneFlags) => {
    const { message, all, list } = flags;
    if ([lanes.length > 0, message !== undefined, all, list].filter(Boolean).length !== 1)
      throw new CommandError(`Say in one way what to ${act.verb}: lanes, --message, --all or --list.`, USAGE_MISTAKE);
    if (all) checkAskable(flags);
    await withInbox(flags, async (inbox, terminal) => {
      if (list) {
        const page = await inbox.findLanes({ statuses: [act.status], limit: 1_000 });
        const items = page.items.map(summaryShape);
        await printPage(terminal, { items, next: null }, { text: lanesText, noun: "message" });
        if (page.next !== null) terminal.note(`There are more: these are the newest ${items.length}.`);
        return;
      }
      const found = await meant(inbox, act, lanes, flags);
      if (found.length === 0) terminal.note(`There is nothing to ${act.verb}.`);
      await actOnEach(terminal, found, {
        ...{ noun: "lane", done: act.done },
        act: (lane) => act.act(inbox, lane, actorOf(flags)),
      });
    });
  });
}

async function meant(inbox: Inbox, act: LaneAct, lanes: readonly number[], flags: LaneFlags) {
  const { message, client, all } = flags;
  if (message !== undefined) return lanesOf(inbox, message, client);
  if (!all) return lanes;
  const found: number[] = [];
  for await (const { id } of lanesIn(inbox, act.status)) found.push(id);
  if (found.length > 0) await confirm(`Would ${act.verb} ${counted(found.length, "message")}. Go on?`, flags);
  return found;
}

async function* lanesIn(inbox: Inbox, status: LaneAct["status"]): AsyncGenerator<LaneSummary> {
  const query: LaneQuery = { statuses: [status], limit: 1_000 };
  for (let after: number | null | undefined; after !== null; ) {
    const page = await inbox.findLanes(after === undefined ? query : { ...query, after });
    yield* page.items;
    after = page.next;
  }
}
