/** `oncehook emulator`: the service on this machine, until a signal ends it, or the command that it started ends. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { Command } from "commander";
import { SetupError } from "../../errors.ts";
import { type Clock, sleep, systemClock } from "../../internal/clock.ts";
import type { Emulator, EmulatorOptions } from "../../messaging/emulator/index.ts";
import { addEmulatorFlags, type EmulatorInput, emulatorInput, inFlags } from "./emulator-options.ts";
import { CommandError, cannotListen, codeOf, endingSignal, isListenError, USAGE_MISTAKE } from "./exit.ts";
import { jsonLine, print } from "./terminal.ts";

/** The command, for the program. */
export function emulatorCommand(): Command {
  const command = new Command("emulator").description("run the messaging service on this machine");
  return addEmulatorFlags(command).action(async () => {
    process.exitCode = await run(emulatorInput(command));
  });
}

/** Resolves with the exit code once it has ended. */
async function run({ options, json, quiet, exec }: EmulatorInput): Promise<number> {
  // Listened to before the first line is printed: its reader may send one.
  const signal = endingSignal();
  const emulator = await start(options);
  try {
    await print(json ? announcementLine(emulator) : announcementText(emulator));
    if (!json && !quiet) await print(announcementHints(emulator));
    if (exec !== undefined) return await runBeside(emulator, exec, signal);
    await signal;
    return 0;
  } finally {
    await emulator.close();
  }
}

async function start(options: EmulatorOptions): Promise<Emulator> {
  // Loaded here: "--help" needs none of it.
  const { createEmulator } = await import("../../messaging/emulator/index.ts");
  try {
    return await createEmulator(options);
  } catch (error) {
    throw error instanceof SetupError ? commandError(error, options) : error;
  }
}

/** The same in the words of the command line; a socket that cannot be opened is not a usage mistake. */
function commandError(error: SetupError, options: EmulatorOptions): CommandError {
  const { cause } = error;
  const { host = "127.0.0.1", port } = options;
  if (!isListenError(cause)) return new CommandError(inFlags(error, options), USAGE_MISTAKE, { cause: error });
  return cannotListen({ host, port: `${port}`, option: error.fields.option === "host" ? "host" : "port" }, cause);
}

/** Resolves with the command's exit code. */
function runBeside(emulator: Emulator, command: string, signal: Promise<NodeJS.Signals>): Promise<number> {
  const companion = startCompanion(command, {
    SERVICE_BASE_URL: emulator.url,
    SERVICE_CLIENT_ID: emulator.clientId,
    SERVICE_CLIENT_SECRET: emulator.clientSecret,
    WEBHOOK_SECRET: emulator.webhookSecret,
  });
  void signal.then(companion.signal);
  return companion.ended;
}

// What `oncehook emulator` says once it listens: a text for a person, or a line of JSON for a program.

/** One JSON object on one line. */
export function announcementLine(emulator: Emulator): string {
  const { url, apiClientId, clientId, clientSecret, webhookSecret, fixtures } = emulator;
  return jsonLine({ url, apiClientId, clientId, clientSecret, webhookSecret, fixtures });
}

/** The text: where it is, and who one is there. */
export function announcementText({ url, clientId, clientSecret, webhookSecret, fixtures }: Emulator): string {
  const numbers = Object.entries(fixtures.numbers).map(([name, id]) => `    ${name.padEnd(12)}${id}`);
  return `The service is emulated at ${url}

  client id       ${clientId}
  client secret   ${clientSecret}
  webhook secret  ${webhookSecret}
  control API     ${url}/_emulator
  numbers
${numbers.join("\n")}
`;
}

/** What to try first, and how it ends: for people. */
export function announcementHints({ url, clientId, clientSecret }: Emulator): string {
  return `
Try:
  curl -s ${shellWord(`${url}/api/auth/token`)} -d grant_type=client_credentials \\
    --data-urlencode ${shellWord(`client_id=${clientId}`)} --data-urlencode ${shellWord(`client_secret=${clientSecret}`)}

Ctrl-C ends it.
`;
}

/** A text as one word of a POSIX shell, quoted where needed. */
function shellWord(text: string): string {
  return /^[\w.~:/=[\]-]+$/.test(text) && !text.includes("[") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// A command run next to the emulator, through the shell and in a process group of its own, which is ended as a whole.

/** How long the rest of the group may take to end by itself after SIGTERM. */
const GRACE_MS = 5_000;
const LOOK_EVERY_MS = 20;

interface Companion {
  /** Resolves with its exit code (128 + the number of the signal that ended it) once nothing of its group runs any more. */
  readonly ended: Promise<number>;
  /** Sends a signal to the whole group; harmless when it is gone. */
  signal(signal: NodeJS.Signals): void;
}

/** Starts `command` with `environment` added to this process's own, on this process's standard streams. */
export function startCompanion(
  command: string,
  environment: Readonly<Record<string, string>>,
  clock: Clock = systemClock,
): Companion {
  const child = spawn(isOneProgramme(command) ? `exec ${command}` : command, {
    shell: true,
    // A group of its own: the shell may have started others, and a signal to the shell alone would leave them.
    detached: true,
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  const { pid } = child;
  const signal = (name: NodeJS.Signals | 0) => pid !== undefined && signalGroup(pid, name);
  // However this process ends, unless by a signal that it does not hear.
  const atExit = () => signal("SIGKILL");
  process.once("exit", atExit);
  const ended = async () => {
    const [code, name] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    await endRest(signal, clock);
    process.off("exit", atExit);
    return name === null ? (code ?? 0) : codeOf(name);
  };
  return { ended: ended(), signal };
}

/**
 * Whether the shell has nothing to do but to run one programme. That takes the shell's place then, because some shells stay above it,
 * die of the first signal, and leave nobody who knows its exit code. What looks like more is more, whether quoted or not.
 */
function isOneProgramme(command: string): boolean {
  const operators = /[;|()`\n]|(?<![<>])&/;
  const [, quoted, word = quoted] = /^\s*(?:"([^"$\\]+)"|([\w./+@-]+))(?=\s|$)/.exec(command) ?? [];
  return word !== undefined && !operators.test(command) && isProgramme(word);
}

/** Whether the shell would run a word as a programme: it knows best which words are its own, and answers for the others with a path. */
function isProgramme(word: string): boolean {
  return spawnSync("/bin/sh", ["-c", 'command -v "$1"', "sh", word], { encoding: "utf8" }).stdout?.startsWith("/");
}

/** Ends what the shell left behind. */
async function endRest(signal: (name: NodeJS.Signals | 0) => boolean, clock: Clock): Promise<void> {
  signal("SIGTERM");
  const limit = clock.monotonic() + GRACE_MS;
  while (signal(0)) {
    if (clock.monotonic() >= limit) return void signal("SIGKILL");
    await sleep(clock, LOOK_EVERY_MS);
  }
}

/** Signals a process group; false when nothing of it is left. 0 only asks. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}
