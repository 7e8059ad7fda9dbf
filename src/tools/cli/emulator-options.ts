/** The flags of `oncehook emulator`, and what they say: options of `createEmulator()`, as it checks them. */
import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { SetupError } from "../../errors.ts";
import type { EmulatorOptions } from "../../messaging/emulator/index.ts";
import { type ReadingName, readingFromText } from "../../messaging/emulator/unspecified.ts";
import { instantOf } from "./flags.ts";

/** Options of `createEmulator()` that a command line can give; a clock and a logger are code. */
export type FlagOption = Exclude<keyof EmulatorOptions, "systemClock" | "logger">;

/** What the command is asked for. */
export interface EmulatorInput {
  readonly options: EmulatorOptions;
  /** Print one JSON object instead of the start-up text. */
  readonly json: boolean;
  /** Leave the hints out of the start-up text. */
  readonly quiet: boolean;
  /** A shell command to run next to the emulator. */
  readonly exec: string | undefined;
}

interface Flag {
  /** As commander reads it: the name and, in angle brackets, its value. */
  readonly flags: string;
  readonly description: string;
  /** Read when the flag is absent; for secrets, because arguments show in process lists. */
  readonly environment?: string;
  /** Its text may hold a secret, or lead to one: never shown again. */
  readonly isPrivate?: true;
  /** Read from each occurrence; without it the flag is given at most once, and the last one counts. */
  readonly repeatable?: true;
  /** From the text to the option's value; without it, the text itself. A text that does not fit stays, and is refused as one. */
  readonly read?: (text: string, flag: string) => unknown;
}

/** A flag per option; the type holds it complete. */
export const FLAGS: Readonly<Record<FlagOption, Flag>> = {
  port: { flags: "--port <number>", description: "TCP port; 0 picks a free one (default: 4010)", read: wholeNumber },
  host: { flags: "--host <address>", description: "address to listen on (default: 127.0.0.1)" },
  basePath: { flags: "--base-path <path>", description: "a path before every route, such as /sms" },
  seed: {
    flags: "--seed <text>",
    description: "decides secrets and chances (default: oncehook); required beyond loopback",
    isPrivate: true,
  },
  import: { flags: "--import <file>", description: "starts from this export of an emulator's state", read: exported },
  keep: { flags: "--keep <number>", description: "ended messages to keep (default: 100000)", read: wholeNumber },
  clock: { flags: "--clock <mode>", description: "real, virtual, or a speed such as x60 (default: real)" },
  startAt: {
    flags: "--start-at <time>",
    description: "where its time starts: epoch ms, or 2026-01-01T00:00:00Z",
    read: instant,
  },
  timestampClock: { flags: "--timestamp-clock <clock>", description: "whose time signatures carry: real or emulator" },
  inboundUrl: {
    flags: "--inbound-url <url>",
    description: "default target of inbound webhooks, signed",
    isPrivate: true,
  },
  deliveryUrl: {
    flags: "--delivery-url <url>",
    description: "default target of delivery webhooks, signed",
    isPrivate: true,
  },
  webhookSecret: {
    flags: "--secret <secret>",
    description: "what both targets are signed with",
    environment: "ONCEHOOK_WEBHOOK_SECRET",
  },
  clientId: { flags: "--client-id <id>", description: "the main client's id (default: client_main)" },
  clientSecret: {
    flags: "--client-secret <secret>",
    description: "the main client's secret",
    environment: "ONCEHOOK_CLIENT_SECRET",
  },
  profile: { flags: "--profile <name>", description: "default, strict or hostile" },
  lifecycle: { flags: "--lifecycle <name>", description: "realistic, instant or manual" },
  magic: { flags: "--no-magic", description: "magic recipients are ordinary ones" },
  faults: {
    flags: "--fault <json>",
    description: "a fault rule; can be repeated",
    repeatable: true,
    read: faultRule,
  },
  unspecified: {
    flags: "--unspecified <name=value>",
    description: "another reading of what the specification does not show; can be repeated",
    repeatable: true,
    read: reading,
  },
  controlToken: {
    flags: "--control-token <token>",
    description: "asked for by the control API; required beyond loopback",
    environment: "ONCEHOOK_CONTROL_TOKEN",
  },
  allowPrivateTargets: {
    flags: "--allow-private-targets <cidr>",
    description: "a private network that webhooks may reach; can be repeated",
    repeatable: true,
  },
  allowPublicTargets: { flags: "--allow-public-targets", description: "let webhooks reach public addresses" },
  attemptTimeoutMs: {
    flags: "--attempt-timeout <ms>",
    description: "how long an attempt may take (default: 10000)",
    read: wholeNumber,
  },
};

const NAMES = Object.keys(FLAGS) as FlagOption[];
/** The same for commander. */
const OPTIONS = NAMES.map((name) => {
  const { flags, read } = FLAGS[name];
  return { name, read, flag: flags.replace(/ .*/, ""), option: commanderOption(FLAGS[name]) };
});
type CommandOption = (typeof OPTIONS)[number];

/** What the command does otherwise than `createEmulator()`: a person at a terminal expects a known port and running time. */
const DEFAULTS = { port: 4010, clock: "real" } as const satisfies EmulatorOptions;

/** Gives a command its flags. */
export function addEmulatorFlags(command: Command): Command {
  for (const { option } of OPTIONS) command.addOption(option);
  return command
    .option("--json", "print one line of JSON instead of the start-up text")
    .option("--quiet", "print where it is and its credentials, and no hints")
    .option("--debug", "print the stack of an error")
    .option("--exec <command>", "run a shell command next to it, and end with it");
}

/**
 * What the flags of a parsed command say.
 *
 * @throws SetupError for a text that is not of a flag's form; the values themselves are checked by `createEmulator()`
 */
export function emulatorInput(command: Command): EmulatorInput {
  const given = command.opts();
  const values = OPTIONS.map((each) => [each.name, valueGiven(each, command)] as const).filter(
    ([, value]) => value !== undefined,
  );
  return {
    // createEmulator() checks every name and value, as it does for callers without types.
    options: { ...DEFAULTS, ...Object.fromEntries(values) } as EmulatorOptions,
    json: given.json === true,
    quiet: given.quiet === true,
    exec: commandGiven(given.exec),
  };
}

function commandGiven(text: string | undefined): string | undefined {
  if (text === undefined || text.trim() !== "") return text;
  throw mistake("--exec takes a shell command.");
}

/**
 * A message about options of `createEmulator()` in the words of the command line. It shows what was given where an option never shows a
 * text, unless the flag's can be a secret.
 */
export function inFlags(error: SetupError, options: EmulatorOptions): string {
  const option = String(error.fields.option);
  const [, reading] = /^unspecified\["(.*)"\]$/.exec(option) ?? [];
  const name = (reading === undefined ? option : "unspecified") as FlagOption;
  const flag = flagOf(name);
  const given = reading === undefined ? options[name] : options.unspecified?.[reading as ReadingName];
  const hidden = given === undefined || FLAGS[name]?.isPrivate || FLAGS[name]?.environment;
  const said = error.message.replace(/; it is (?:string|undefined)(?=\.$)/, () => (hidden ? "" : `; it is "${given}"`));
  return withFlags(flag === undefined ? said : said.replace(`"${option}"`, [flag, reading].filter(Boolean).join(" ")));
}

/** Names that are no words of prose. */
function withFlags(text: string): string {
  return text.replace(/(?<!["\w-])(?:[a-z]+[A-Z]\w*|unspecified)(?!["\w])/g, (name) => flagOf(name) ?? name);
}

/** The flag of an option, for messages: `--start-at` for `startAt`. */
export function flagOf(option: string): string | undefined {
  return OPTIONS.find(({ name }) => name === option)?.flag;
}

function commanderOption({ flags, description, environment, repeatable }: Flag): Option {
  const option = new Option(flags, description);
  if (environment !== undefined) option.env(environment);
  if (repeatable) option.argParser((text: string, before: readonly string[] = []) => [...before, text]);
  return option;
}

function valueGiven({ name, flag, option, read = (text) => text }: CommandOption, command: Command): unknown {
  const attribute = option.attributeName();
  // Commander makes up a value for a flag that begins with "no-".
  const value = command.getOptionValueSource(attribute) === "default" ? undefined : command.getOptionValue(attribute);
  if (typeof value === "string") return read(value, flag);
  if (!Array.isArray(value)) return value;
  const values = value.map((text: string) => read(text, flag));
  return name === "unspecified" ? Object.assign({}, ...values) : values;
}

function wholeNumber(text: string, flag: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw mistake(`${flag} takes a whole number, not "${text}".`);
}

function instant(text: string, flag: string): number {
  const time = instantOf(text);
  if (time !== undefined) return time;
  throw mistake(`${flag} takes epoch milliseconds or a time such as 2026-01-01T00:00:00Z, not "${text}".`);
}

/** Nothing of what it holds is said: there are secrets in it. */
function exported(file: string, flag: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const { code = "no JSON" } = error as NodeJS.ErrnoException;
    throw mistake(`${flag} takes a file with what GET /_emulator/state answered, not "${file}" (${code}).`);
  }
}

function faultRule(text: string, flag: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const example = '{"match":{"webhook":true},"action":{"type":"duplicate"}}';
    throw mistake(`${flag} takes a rule as JSON, such as '${example}', not: ${text}`);
  }
}

function reading(text: string, flag: string): unknown {
  const at = text.indexOf("=");
  if (at > 0) return readingOf(text.slice(0, at), text.slice(at + 1));
  throw mistake(`${flag} takes name=value, such as timestampUnit=s, not "${text}".`);
}

function readingOf(name: string, text: string): unknown {
  try {
    return readingFromText(name, text);
  } catch (error) {
    throw error instanceof SetupError ? mistake(withFlags(error.message)) : error;
  }
}

function mistake(message: string): SetupError {
  return new SetupError("invalid_option", message);
}
