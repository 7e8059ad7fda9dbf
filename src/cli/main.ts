#!/usr/bin/env node
/** The command `oncehook`. A new command is a file that makes it, and its line in `COMMANDS`. */
import { Command } from "commander";
import { VERSION } from "../internal/package.ts";
import { doctorCommand } from "./doctor/command.ts";
import { emulatorCommand } from "./emulator.ts";
import { endingOf } from "./exit.ts";
import { inboxCommand } from "./inbox/command.ts";
import { inspectCommand } from "./inspect.ts";
import { listenCommand } from "./listen.ts";
import { secretsCommand } from "./secrets.ts";
import { sendCommand } from "./send.ts";
import { triggerCommand } from "./trigger.ts";
import { verifyCommand } from "./verify/command.ts";

const COMMANDS: readonly (() => Command)[] = [
  doctorCommand,
  emulatorCommand,
  inboxCommand,
  inspectCommand,
  listenCommand,
  secretsCommand,
  sendCommand,
  triggerCommand,
  verifyCommand,
];

// A reader that is gone gets nothing more. Where that matters, the writer gets the error.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

try {
  await program().parseAsync();
} catch (error) {
  const { text, exitCode } = endingOf(error, { debug: process.argv.includes("--debug") });
  process.stderr.write(text);
  process.exitCode = exitCode;
}

function program(): Command {
  const program = new Command("oncehook")
    .description("The messaging service's webhooks, received and sent.")
    .version(VERSION)
    .exitOverride();
  for (const make of COMMANDS) program.addCommand(make().copyInheritedSettings(program));
  return program;
}
