/** `oncehook emulator`: the service on this machine, until it is told to end or the command beside it ends. */
import { Command } from "commander";
import type { Emulator, EmulatorOptions } from "../emulator/index.ts";
import { SetupError } from "../errors.ts";
import { announcementHints, announcementLine, announcementText } from "./announcement.ts";
import { cannotListen, isListenError } from "./cannot-listen.ts";
import { startCompanion } from "./companion.ts";
import { addEmulatorFlags, type EmulatorInput, emulatorInput, inFlags } from "./emulator-options.ts";
import { CommandError, USAGE_MISTAKE } from "./failure.ts";
import { endingSignal } from "./signals.ts";
import { print } from "./terminal.ts";

/** The command, for the program. */
export function emulatorCommand(): Command {
  const command = new Command("emulator").description("run the messaging service on this machine");
  return addEmulatorFlags(command).action(async () => {
    process.exitCode = await run(emulatorInput(command));
  });
}

/** Resolves with the exit code once it has ended. */
async function run({ options, json, quiet, exec }: EmulatorInput): Promise<number> {
  // Heard from before the first line is out: whoever reads it may send one.
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
  const { createEmulator } = await import("../emulator/index.ts");
  try {
    return await createEmulator(options);
  } catch (error) {
    throw error instanceof SetupError ? commandError(error, options) : error;
  }
}

/** The same in the words of the command line; a socket that cannot be opened is no mistake in it. */
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
