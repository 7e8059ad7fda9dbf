/** The commands that look after an inbox as a whole: `oncehook inbox copy`, `reopen`, `migrate`, `prune`, `erase` and `export`. */
import { Command, Option } from "commander";
import { SetupError } from "../../../errors.ts";
import type { CopyProgress, CopyResult } from "../../../inbox/copy.ts";
import type { Subject } from "../../../inbox/subject.ts";
import { maskNumbers } from "../../../internal/logger.ts";
import type { Pruned } from "../../../receiver/open-inbox.ts";
import type { RetentionOptions } from "../../../receiver/options.ts";
import { CommandError, interruptible, NEGATIVE, USAGE_MISTAKE } from "../exit.ts";
import {
  type ActFlags,
  actorOf,
  addByFlag,
  duration,
  type InboxFlags,
  inWords,
  openAt,
  storeAt,
  withExamples,
  withInbox,
  withInboxFlags,
} from "../flags.ts";
import {
  type AskFlags,
  addOutputFlags,
  checkAskable,
  confirm,
  counted,
  jsonLine,
  type OutputFlags,
  type Progress,
  print,
  Terminal,
} from "../terminal.ts";

// `oncehook inbox copy`: moves an inbox to another store.

interface CopyFlags extends OutputFlags {
  readonly from: string;
  readonly to: string;
  readonly fromSchema?: string;
  readonly toSchema?: string;
  readonly move?: true;
}

export function copyCommand(): Command {
  const command = new Command("copy")
    .description("copy the inbox to another store, and compare them; stop every receiver first")
    .addOption(address("--from <address>", "the inbox: a SQLite file, or postgres://…").env("ONCEHOOK_STORE"))
    .addOption(address("--to <address>", "an empty inbox, or one that a copy was stopped in").env("ONCEHOOK_COPY_TO"))
    .option("--move", "mark --from at the end: it does not open any more, so nothing is handled in both")
    .option("--from-schema <name>", "the schema of --from, on Postgres (default: oncehook)")
    .option("--to-schema <name>", "the schema of --to, on Postgres (default: oncehook)");
  return withExamples(addOutputFlags(command), [
    "ONCEHOOK_COPY_TO=postgres://app:…@db.internal/app oncehook inbox copy --from inbox.db --move",
  ]).action(async (flags: CopyFlags) => {
    const terminal = new Terminal(flags);
    const { from, to, fromSchema, toSchema, move = false } = flags;
    const stores = {
      from: await storeAt({ store: from, ...(fromSchema !== undefined && { schema: fromSchema }) }),
      to: await storeAt({ store: to, ...(toSchema !== undefined && { schema: toSchema }) }),
    };
    const { copyInbox } = await import("../../../inbox/copy.ts");
    const steps = new Steps(terminal);
    let copied: CopyResult | undefined;
    try {
      const stopped = await interruptible(async (signal) => {
        copied = await copyInbox({ ...stores, move, signal, onProgress: (progress) => steps.at(progress) });
      }, "Give the same command again: it goes on where it was.").finally(() => steps.end());
      if (stopped) throw stopped;
    } catch (error) {
      throw inWords(error);
    }
    if (copied === undefined) return;
    const result = { from: stores.from.location, to: stores.to.location, ...copied };
    await terminal.result(result, () => copiedText(result));
  });
}

function address(flags: string, description: string): Option {
  return new Option(flags, description).makeOptionMandatory();
}

/** How far it is, in two phases. */
class Steps {
  readonly #terminal: Terminal;
  #phase: CopyProgress["phase"] | undefined;
  #bar: Progress | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  at({ phase, events }: CopyProgress): void {
    if (phase !== this.#phase) {
      this.end();
      this.#bar = this.#terminal.progress(phase === "copy" ? "Copying events" : "Comparing events", null);
      this.#phase = phase;
    }
    this.#bar?.at(events);
  }

  end(): void {
    this.#bar?.end();
  }
}

function copiedText(copied: CopyResult & { readonly from: string; readonly to: string }): string {
  const { from, to, lanes, events, quarantined, lanesBefore, moved } = copied;
  const before = lanesBefore === 0 ? "" : ` (${counted(lanesBefore, "message")} by an earlier call)`;
  const what = `${counted(events, "event")} of ${counted(lanes, "lane")}${before}, and ${quarantined} in quarantine,`;
  const next = moved
    ? `Moved: ${from} does not open any more. Start the receivers with ${to}.`
    : `Copied, not moved: ${from} opens as before. Start the receivers with one of the two only, because what both handle is done twice. To close the old one, give the same command with --move.`;
  return `${what} are in ${to}, the same as in ${from}. ${next}`;
}

// `oncehook inbox reopen`: the way back from a move whose target is lost or was never used.

interface ReopenFlags extends InboxFlags, AskFlags {}

export function reopenCommand(): Command {
  const command = new Command("reopen")
    .description("let receivers open an inbox again that was moved, if the other one is lost or was never used")
    .option("--yes", "do not ask");
  return withInboxFlags(command, ["oncehook inbox reopen --store inbox.db"]).action(async (flags: ReopenFlags) => {
    checkAskable(flags);
    const terminal = new Terminal(flags);
    try {
      const movedTo = await whereMoved(flags);
      if (movedTo !== null) {
        await confirm(
          `Events that ${movedTo} accepted since are unknown here, and what it handled would be handled again. Go on?`,
          flags,
        );
        const { reopenMoved } = await import("../../../inbox/copy.ts");
        await reopenMoved(await storeAt(flags));
      }
      await terminal.result({ reopened: movedTo !== null, movedTo }, () =>
        movedTo === null ? "It was not moved, and opens as it is." : `It opens again. Let no receiver use ${movedTo}.`,
      );
    } catch (error) {
      throw inWords(error);
    }
  });
}

/** Null when it opens as it is. */
async function whereMoved(flags: InboxFlags): Promise<string | null> {
  try {
    await (await openAt(flags)).close();
    return null;
  } catch (error) {
    if (!(error instanceof SetupError) || error.code !== "inbox_moved") throw error;
    return String(error.fields.movedTo);
  }
}

// `oncehook inbox migrate`: brings an inbox to this version's schema, as a receiver with `migrate: "check"` needs it.

export function migrateCommand(): Command {
  const command = new Command("migrate").description("bring the inbox to this version's schema");
  return withInboxFlags(command, ["oncehook inbox migrate --store inbox.db"]).action(async (flags: InboxFlags) => {
    try {
      const terminal = new Terminal(flags);
      const missing = await missingMigration(flags);
      const inbox = await terminal.during("Migrating", () => openAt(flags, "auto"));
      const { location } = inbox;
      await inbox.close();
      const { from = null, to = null } = missing ?? {};
      await terminal.result({ location, migrated: missing !== null, from, to }, () =>
        missing === null ? `${location} needs no migration.` : `${location}: schema ${from} is now ${to}.`,
      );
    } catch (error) {
      throw inWords(error);
    }
  });
}

/** From which schema to which; null when the inbox can be opened as it is. */
async function missingMigration(flags: InboxFlags): Promise<{ readonly from: number; readonly to: number } | null> {
  try {
    await (await openAt(flags)).close();
    return null;
  } catch (error) {
    if (!(error instanceof SetupError) || error.code !== "migration_needed") throw error;
    return { from: Number(error.fields.schema), to: Number(error.fields.newest) };
  }
}

// `oncehook inbox prune`: removes what is past its retention, as a running receiver does every ten minutes.

interface PruneFlags extends InboxFlags, AskFlags {
  readonly handledBodies?: number;
  readonly otherBodies?: number;
  readonly identities?: number;
  readonly dead?: number;
}

export function pruneCommand(): Command {
  const command = new Command("prune")
    .description("remove what is past its retention; give it the times that the receiver has")
    .option("--handled-bodies <age>", "bodies of handled events (default: 7d)", duration)
    .option("--other-bodies <age>", "bodies of late and unhandled events (default: 30d)", duration)
    .option("--identities <age>", "identities, by which a repeat is known (default: 30d)", duration)
    .option("--dead <age>", "dead letters and quarantined bodies nobody acted on (default: 90d)", duration)
    .option("--yes", "do not ask");
  return withInboxFlags(command, [
    "oncehook inbox prune --store inbox.db",
    "oncehook inbox prune --handled-bodies 1d --yes --json --store inbox.db",
  ]).action(async (flags: PruneFlags) => {
    checkAskable(flags);
    await withInbox(flags, async (inbox, terminal) => {
      await confirm(`Would remove, for good, what is past its retention in ${inbox.location}. Go on?`, flags);
      let pruned: Pruned = { bodies: 0, events: 0, lanes: 0, quarantined: 0 };
      const bar = terminal.progress("Pruning", null);
      const stopped = await interruptible(async (signal) => {
        const onProgress = (sofar: Pruned) => {
          pruned = sofar;
          bar.at(sofar.bodies + sofar.events + sofar.lanes + sofar.quarantined);
        };
        pruned = await inbox.prune(retentionOf(flags), { signal, onProgress }).catch(inFlags);
      }, "Give the same command again for the rest.").finally(() => bar.end());
      await terminal.result(pruned, () => prunedText(pruned));
      if (stopped) throw stopped;
    });
  });
}

function retentionOf({ handledBodies, otherBodies, identities, dead }: PruneFlags): RetentionOptions {
  return {
    ...(handledBodies !== undefined && { handledBodiesMs: handledBodies }),
    ...(otherBodies !== undefined && { otherBodiesMs: otherBodies }),
    ...(identities !== undefined && { identitiesMs: identities }),
    ...(dead !== undefined && { deadMs: dead }),
  };
}

const RETENTION_FLAGS: Readonly<Record<string, string>> = {
  "retention.handledBodiesMs": "--handled-bodies",
  "retention.otherBodiesMs": "--other-bodies",
  "retention.identitiesMs": "--identities",
  "retention.deadMs": "--dead",
};

/** A time out of bounds, in the words of the command line. */
function inFlags(error: unknown): never {
  const option = error instanceof SetupError ? String(error.fields.option) : "";
  const flag = RETENTION_FLAGS[option];
  if (!(error instanceof SetupError) || flag === undefined) throw error;
  throw new CommandError(error.message.replace(`Option "${option}"`, flag), USAGE_MISTAKE, { cause: error });
}

function prunedText({ bodies, events, lanes, quarantined }: Pruned): string {
  const counts = { bodies, events, lanes, "quarantined bodies": quarantined };
  const told = Object.entries(counts).map(([name, count]) => `${count.toLocaleString("en-US")} ${name}`);
  return `Removed ${told.join(", ")}.`;
}

// Whom a request for access or erasure is about, as flags.

interface SubjectFlags {
  readonly number?: string;
  readonly id?: string;
}

function addSubjectFlags(command: Command): Command {
  return command
    .option("--number <number>", "a person, by their number as it was delivered: +15550100002")
    .option("--id <id>", "a message, or what else has this id, such as a customer");
}

/** @throws CommandError unless one of them was given */
function subjectOf({ number, id }: SubjectFlags): Subject {
  if ((number === undefined) === (id === undefined))
    throw new CommandError("Say about whom or what: --number NUMBER or --id ID.", USAGE_MISTAKE);
  return number === undefined ? { id: id ?? "" } : { peer: number };
}

/** For a question. */
function subjectText(subject: Subject): string {
  return "peer" in subject ? `the number ${maskNumbers(subject.peer)}` : `the id ${subject.id}`;
}

// `oncehook inbox erase`: removes a person's data, or what has an id.

interface EraseFlags extends InboxFlags, SubjectFlags, AskFlags, ActFlags {}

export function eraseCommand(): Command {
  const command = new Command("erase").description(
    "remove bodies, numbers, references and error texts for good; what identifies an event stays",
  );
  addByFlag(addSubjectFlags(command).option("--yes", "do not ask"));
  return withInboxFlags(command, [
    "oncehook inbox erase --number +15550100002 --store inbox.db",
    "oncehook inbox erase --id msg_1 --yes --json --store inbox.db",
  ]).action(async (flags: EraseFlags) => {
    const subject = subjectOf(flags);
    checkAskable(flags);
    await withInbox(flags, async (inbox, terminal) => {
      await confirm(`Would erase all data on ${subjectText(subject)}, for good, in ${inbox.location}. Go on?`, flags);
      const result = await terminal.during("Erasing", () => inbox.erase(subject, actorOf(flags)));
      if (!result.ok)
        throw new CommandError(
          "A receiver is handling one of its events now: not everything was erased. Give the same command again.",
          NEGATIVE,
        );
      const { count } = result;
      if (count === 0) process.exitCode = NEGATIVE;
      await terminal.result({ erased: count }, () => erasedText(count));
      terminal.note("Backups, logs and what was forwarded keep their copies.");
    });
  });
}

function erasedText(count: number): string {
  return count === 0 ? "Nothing is held." : `Erased what ${counted(count, "row")} held.`;
}

// `oncehook inbox export`: everything that the inbox holds on a person or an id.

interface ExportFlags extends InboxFlags, SubjectFlags {}

export function exportCommand(): Command {
  const command = new Command("export").description(
    "print everything held on a person or an id, as JSON, one object a line; with numbers and texts",
  );
  return withInboxFlags(addSubjectFlags(command), [
    "oncehook inbox export --number +15550100002 --store inbox.db > held.jsonl",
  ]).action(async (flags: ExportFlags) => {
    const subject = subjectOf(flags);
    await withInbox(flags, async (inbox, terminal) => {
      let count = 0;
      for await (const record of inbox.exportSubject(subject)) {
        await print(jsonLine(record));
        count++;
      }
      terminal.note(count === 0 ? "Nothing is held." : `${counted(count, "record")}.`);
      if (count === 0) process.exitCode = NEGATIVE;
    });
  });
}
