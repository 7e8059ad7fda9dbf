/** The command `oncehook` with all its commands. A new one is a file that makes it, and its line in `COMMANDS`. */
import { Command } from "commander";
import { VERSION } from "../../internal/package.ts";
import { doctorCommand } from "./doctor/command.ts";
import { emulatorCommand } from "./emulator.ts";
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

/** A new one: it can be run once. */
export function program(): Command {
  const program = new Command("oncehook")
    .description("The messaging service's webhooks, received and sent.")
    .version(VERSION)
    .exitOverride();
  for (const make of COMMANDS) program.addCommand(make().copyInheritedSettings(program));
  return program;
}
