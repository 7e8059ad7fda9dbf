/** `oncehook inbox quarantine`: correctly signed bodies that were no events. */
import { Command } from "commander";
import type { QuarantineRecord } from "../../../inbox/record.ts";
import { bodyShape, quarantineShape, type ShownQuarantine } from "../../../receiver/shown.ts";
import {
  type ActFlags,
  actorOf,
  addByFlag,
  commandGroup,
  type InboxFlags,
  wholeNumber,
  withInbox,
  withInboxFlags,
} from "../flags.ts";
import { factsText, printableTable, printPage, timeText } from "../terminal.ts";
import { actOnEach } from "./acts.ts";
import { addPageFlags, choices, ids, type PageFlags, pageOf } from "./filters.ts";
import { bodyText, quarantinedOf } from "./reads.ts";

export function quarantineCommand(): Command {
  const makes = [lsCommand, showCommand, replayCommand, discardCommand];
  return commandGroup("quarantine", "look at correctly signed bodies that were no events, and act on them", makes);
}

interface LsFlags extends InboxFlags, PageFlags {
  readonly state?: readonly QuarantineRecord["state"][];
}

function lsCommand(): Command {
  const command = new Command("ls")
    .description("list them, newest first")
    .addOption(
      choices("--state <state>", "those in this state; may be given again", ["held", "replayed", "discarded"]),
    );
  addPageFlags(command, "bodies");
  return withInboxFlags(command, ["oncehook inbox quarantine ls --state held --store inbox.db"]).action(
    (flags: LsFlags) =>
      withInbox(flags, async (inbox, terminal) => {
        const { state } = flags;
        const page = await inbox.findQuarantined({ ...(state && { states: state }), ...pageOf(flags) });
        const items = page.items.map(quarantineShape);
        await printPage(terminal, { ...page, items }, { text: quarantineText, noun: "quarantined body" });
      }),
  );
}

function quarantineText(rows: readonly ShownQuarantine[]): string {
  const cells = ({ id, acceptedAt, source, reason, slot, state, bytes, hasBody }: ShownQuarantine) => [
    ...[`${id}`, timeText(acceptedAt), source, reason, slot, state, hasBody ? `${bytes}` : "-"],
  ];
  return printableTable(["id", "accepted", "source", "reason", "secret", "state", "bytes"], rows.map(cells));
}

interface ShowFlags extends InboxFlags, ActFlags {
  readonly reveal?: true;
}

function showCommand(): Command {
  const command = new Command("show")
    .description("show one")
    .argument("<body>", "its id", wholeNumber(1))
    .option("--reveal", "show its numbers and texts, which are masked otherwise; the audit records it");
  return withInboxFlags(addByFlag(command), ["oncehook inbox quarantine show 3 --reveal --store inbox.db"]).action(
    (id: number, flags: ShowFlags) =>
      withInbox(flags, async (inbox, terminal) => {
        const row = await quarantinedOf(inbox, id);
        if (flags.reveal === true) await inbox.revealQuarantined(id, actorOf(flags));
        const view = { reveal: flags.reveal === true, shows: await inbox.shows(row.source) };
        const shape = { ...quarantineShape(row), body: bodyShape(row.raw, view) };
        const { source, tenant, reason, slot, kinds, state, replayedAs, signedAt, acceptedAt } = row;
        const covered = kinds.length === 0 ? "all" : kinds.join(", ");
        await terminal.result(shape, () =>
          [
            factsText({
              ...{ id, source, tenant, reason, secret: slot, kinds: covered, state, "replayed as event": replayedAs },
              ...{ signed: timeText(signedAt), accepted: timeText(acceptedAt) },
            }),
            bodyText(shape.body),
          ].join("\n"),
        );
      }),
  );
}

interface QuarantineActFlags extends InboxFlags, ActFlags {}

function replayCommand(): Command {
  const command = new Command("replay")
    .description("parse them again, as after an upgrade, and accept what they are")
    .argument("<bodies...>", "ids", ids);
  const examples = ["oncehook inbox quarantine replay 3 --store inbox.db"];
  return withInboxFlags(addByFlag(command), examples).action((bodies: readonly number[], flags: QuarantineActFlags) =>
    withInbox(flags, (inbox, terminal) =>
      actOnEach(terminal, bodies, {
        ...{ noun: "quarantined", key: "quarantined", done: "replayed" },
        act: (id) => inbox.replayQuarantined(id, actorOf(flags)),
      }),
    ),
  );
}

function discardCommand(): Command {
  const command = new Command("discard").description("set them aside").argument("<bodies...>", "ids", ids);
  const examples = ["oncehook inbox quarantine discard 3 4 --store inbox.db"];
  return withInboxFlags(addByFlag(command), examples).action((bodies: readonly number[], flags: QuarantineActFlags) =>
    withInbox(flags, (inbox, terminal) =>
      actOnEach(terminal, bodies, {
        ...{ noun: "quarantined", key: "quarantined", done: "discarded" },
        act: (id) => inbox.discardQuarantined(id, actorOf(flags)),
      }),
    ),
  );
}
