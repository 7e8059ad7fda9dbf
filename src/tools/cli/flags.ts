/** Flags that several commands share: their values, the inbox and the service that they name. */
import { userInfo } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { OncehookError, SetupError } from "../../errors.ts";
import type { InboxStore } from "../../inbox/store.ts";
import { silentLogger } from "../../internal/logger.ts";
import type { Client, ClientOptions } from "../../messaging/client/index.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { CommandError, FAILURE, USAGE_MISTAKE } from "./exit.ts";
import { addSecretFlag, CLIENT_SECRET, neededSecret } from "./input.ts";
import { addOutputFlags, type OutputFlags, Terminal } from "./terminal.ts";

// Values of flags that several commands read: from the text to what is meant, or a message that says how it is written.

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90m`, `7d`, `250ms`: in milliseconds. */
export function duration(text: string): number {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (amount === undefined) throw new InvalidArgumentError("Write a number and a unit: 30s, 90m, 12h, 7d.");
  return Math.round(Number(amount) * (UNIT_MS[unit] ?? Number.NaN));
}

/** A reader of whole numbers from `min` to `max`. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`It takes a whole number ${range}.`);
  };
}

/** A time of day means nothing without its zone; a day alone begins in UTC. */
const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?:(:\d\d)(\.\d+)?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/;

/** An instant as epoch milliseconds or in ISO 8601: in epoch milliseconds. */
export function instant(text: string): number {
  const value = instantOf(text);
  if (value !== undefined) return value;
  throw new InvalidArgumentError("Write epoch milliseconds, or a time such as 2026-01-01T00:00:00Z.");
}

/** The same for a flag with words of its own; undefined for a text that is not an instant. */
export function instantOf(text: string): number | undefined {
  // Thirteen digits: seconds would be a day of 1970.
  if (/^\d{13}$/.test(text)) return Number(text);
  const [, day, minute = "00:00", second = ":00", fraction = "", zone = "Z"] = ISO_TIME.exec(text) ?? [];
  const time = `${day}T${minute}${second}`;
  // 30 February is read as a day of March: what does not print back as it was written does not exist.
  const there = Date.parse(`${time}Z`);
  if (Number.isNaN(there) || !new Date(there).toISOString().startsWith(time)) return undefined;
  return Date.parse(`${time}${fraction}${zone}`);
}

/** For a flag that may be given several times: all of its values. */
export function repeated(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

// A command that does nothing itself and has others under it.

export function commandGroup(name: string, description: string, makes: readonly (() => Command)[]): Command {
  // Said before its commands are added, which take it over: how a mistake ends the process is the program's to decide.
  const group = new Command(name).description(description).exitOverride();
  for (const make of makes) group.addCommand(make().copyInheritedSettings(group));
  return group;
}

// The store behind an address that a person types: a file's path, or the URL of a database.

const POSTGRES = /^postgres(?:ql)?:\/\//;
const STORE_ENVIRONMENT = "ONCEHOOK_STORE";

/** Gives a command `--store`, which the environment may hold too: a database's URL has a password in it. */
export function addStoreFlags(command: Command): Command {
  const store = new Option("--store <address>", "the inbox: a SQLite file, or postgres://…").env(STORE_ENVIRONMENT);
  return command.addOption(store).option("--schema <name>", "the inbox's schema, on Postgres (default: oncehook)");
}

export interface StoreFlags {
  readonly store?: string;
  readonly schema?: string;
}

/** Where an inbox is: a file, or a database with its schema. */
type InboxAddress =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly schema?: string };

/** What it cannot be is refused here, without showing the address. @throws CommandError */
export function addressOf({ store: address, schema }: StoreFlags): InboxAddress {
  if (address === undefined || address === "")
    throw new CommandError(
      `Say which inbox: --store inbox.db, or ${STORE_ENVIRONMENT} in the environment.`,
      USAGE_MISTAKE,
    );
  if (POSTGRES.test(address)) return { kind: "postgres", url: address, ...(schema === undefined ? {} : { schema }) };
  if (schema !== undefined) throw new CommandError("--schema goes with a postgres:// address.", USAGE_MISTAKE);
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(address))
    throw new CommandError("--store takes a SQLite file or a postgres:// URL.", USAGE_MISTAKE);
  return { kind: "sqlite", path: address.replace(/^sqlite:/, "") };
}

/** The store that is meant; not open. @throws CommandError */
export async function storeAt(flags: StoreFlags): Promise<InboxStore<never>> {
  const address = addressOf(flags);
  if (address.kind === "postgres") {
    const { url, kind: _, ...options } = address;
    const { postgresStore } = await import("../../stores/postgres.ts");
    return postgresStore(url, options) as InboxStore<never>;
  }
  const { sqliteStore } = await import("../../stores/sqlite.ts");
  return sqliteStore(address.path) as InboxStore<never>;
}

// What every command on an inbox shares: its flags, the open inbox, and errors in the words of the command line.

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
  const { openInbox } = await import("../../create.ts");
  // Warnings of a store at open are for the receiver.
  return openInbox({ store: await storeAt(flags), migrate, logger: silentLogger });
}

/** Of these the command line is the cause, and nothing was tried. */
const MISTAKES: readonly string[] = ["invalid_option", "invalid_argument", "no_inbox"];

/** Options that have another name on the command line. */
const OF_OPTIONS: Readonly<Record<string, string>> = {
  database:
    'The address is not one of Postgres: postgres://user:password@host:5432/database, with "@" in it as %40, "/" as %2F.',
  peer: "--number takes the whole number, at least three characters.",
  id: "--id takes the whole id, at least three characters.",
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

export interface ActFlags {
  readonly by?: string;
}

export function addByFlag(command: Command): Command {
  return command.option("--by <name>", "who acts, for the audit (default: this user's name)");
}

/** A name, for the audit. */
export function actorOf({ by }: ActFlags): { readonly by: string } {
  return { by: by ?? userName() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container's user may have none.
    return "oncehook";
  }
}

// The flags of commands that call the service's API, and the client that they make.

export interface ServiceFlags {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecretFile?: string;
  readonly allowPrivateHttp?: true;
}

/** Options of the client, by the flags that give them. */
const CLIENT_FLAGS: Readonly<Record<string, string>> = {
  baseUrl: "--base-url",
  clientId: "--client-id",
  clientSecret: "--client-secret-file",
};

const ALLOW_HTTP = "--allow-private-http";

/** Gives a command the flag for a service on a private network without TLS. */
export function addHttpFlag(command: Command): Command {
  return command.option(ALLOW_HTTP, "take http:// in --base-url for a host of a private network too");
}

/** Gives a command the flags that name the service, the API client and its secret. */
export function addServiceFlags(command: Command, clientWhat: string): Command {
  command
    .requiredOption("--base-url <url>", "the service's address")
    .requiredOption("--client-id <id>", `the API client that ${clientWhat}`);
  return addHttpFlag(addSecretFlag(command, CLIENT_SECRET));
}

/** Asks for the secret where it was given nowhere. @throws CommandError for what the client refuses, in the words of the command line */
export async function clientOf(
  flags: ServiceFlags,
  terminal: Terminal,
  options: Partial<ClientOptions> = {},
): Promise<Client> {
  const { baseUrl, clientId, allowPrivateHttp: allowHttpToPrivateHosts } = flags;
  const clientSecret = await neededSecret(CLIENT_SECRET, flags.clientSecretFile, terminal);
  // Loaded here: "--help" needs none of it.
  const { createClient } = await import("../../messaging/client/index.ts");
  const note = (_fields: object, message: string) => terminal.note(message);
  const logger = { ...silentLogger, warn: note, error: note };
  try {
    return createClient({ baseUrl, clientId, clientSecret, allowHttpToPrivateHosts, logger, ...options });
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    throw new CommandError(inFlags(error.message), USAGE_MISTAKE, { cause: error });
  }
}

/** `Option "baseUrl" must be …` and `sendFrom: must be …` in the words of the command line; `more` are flags of the command's own. */
export function inFlags(text: string, more: Readonly<Record<string, string>> = {}): string {
  return text
    .replace(/^(?:Option ")?([\w.]+)[":]/, (said, name) => more[name] ?? CLIENT_FLAGS[name] ?? said)
    .replace("allowHttpToPrivateHosts: true", ALLOW_HTTP);
}
