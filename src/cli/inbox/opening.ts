/** What every command on an inbox shares: its flags, the open inbox, and errors in the words of the command line. */
import type { Command } from "commander";
import { OncehookError, SetupError } from "../../errors.ts";
import { silentLogger } from "../../internal/logger.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { CommandError, FAILURE, USAGE_MISTAKE } from "../failure.ts";
import { addStoreFlags, type StoreFlags, storeAt } from "../inbox-address.ts";
import { addOutputFlags, type OutputFlags, Terminal } from "../terminal.ts";

export interface InboxFlags extends StoreFlags, OutputFlags {}

/** Ends a command's own flags with those that all have, and its help with examples. */
export function withInboxFlags(command: Command, examples: readonly string[]): Command {
  return withExamples(addOutputFlags(addStoreFlags(command)), examples);
}

export function withExamples(command: Command, examples: readonly string[]): Command {
  return command.addHelpText("after", `\nExamples:\n${examples.map((line) => `  $ ${line}`).join("\n")}`);
}

/** Opens the inbox that is meant, does `work` with it, and closes it. */
export async function withInbox(
  flags: InboxFlags,
  work: (inbox: Inbox, terminal: Terminal) => Promise<void>,
): Promise<void> {
  try {
    const inbox = await openAt(flags);
    try {
      await work(inbox, new Terminal(flags));
    } finally {
      await inbox.close();
    }
  } catch (error) {
    throw inWords(error);
  }
}

/** @throws what `openInbox` throws: `inWords` tells it to a person */
export async function openAt(flags: StoreFlags, migrate: "check" | "auto" = "check"): Promise<Inbox> {
  // Loaded here: "--help" needs none of it.
  const { openInbox } = await import("../../receiver/open-inbox.ts");
  // What a store warns of at open is for whoever runs the receiver.
  return openInbox({ store: await storeAt(flags), migrate, logger: silentLogger });
}

/** Of these the command line is the cause, and nothing was tried. */
const MISTAKES: readonly string[] = ["invalid_option", "invalid_argument", "no_inbox"];

/** Options that have another name on the command line. */
const OF_OPTIONS: Readonly<Record<string, string>> = {
  database:
    'The address is none that Postgres has: postgres://user:password@host:5432/database, with "@" in it as %40, "/" as %2F.',
  peer: "--number takes the whole number, at least three characters.",
  messageId: "--message takes the whole id, at least three characters.",
};

const OF_POSTGRES: Readonly<Record<string, string>> = {
  "28": "Check the user and the password in the address.",
  "3D": "Check the database's name in the address.",
};

/** The same error with the cause and the fix as a user of the command knows them. */
export function inWords(error: unknown): unknown {
  if (!(error instanceof OncehookError)) return error;
  const { code, message, fields } = error;
  if (error instanceof SetupError && MISTAKES.includes(code)) {
    const text = OF_OPTIONS[String(fields.option)];
    // The encoding of a database has an option's name too, and a text of its own.
    if (text === undefined || fields.encoding !== undefined) return error;
    return new CommandError(text, USAGE_MISTAKE, { cause: error });
  }
  const ending = (text: string) => new CommandError(text, FAILURE, { cause: error });
  if (code === "migration_needed") {
    const { schema, newest } = fields;
    return ending(
      `The inbox has schema ${schema}, and this version needs ${newest}: run "oncehook inbox migrate" on it.`,
    );
  }
  if (code === "copy_unfinished")
    return ending('A copy into this inbox has not come to its end: run the same "oncehook inbox copy" again.');
  return ending(code === "store_unavailable" ? `${message} ${adviceFor(error)}`.trimEnd() : message);
}

function adviceFor({ fields }: OncehookError): string {
  const { sqliteCode, sqlState } = fields;
  // The store's own message has it.
  if (typeof sqliteCode === "string") return "";
  if (typeof sqlState === "string") return OF_POSTGRES[sqlState.slice(0, 2)] ?? "";
  return "Check that the server runs, and that the address is right.";
}
