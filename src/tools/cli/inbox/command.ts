/** `oncehook inbox`: what a person who looks after an inbox asks of it, one command each. */
import type { Command } from "commander";
import { commandGroup } from "../flags.ts";
import { discardCommand, releaseCommand, replayCommand, unblockCommand } from "./acts.ts";
import { quarantineCommand } from "./quarantine.ts";
import { auditCommand, incompleteCommand, lsCommand, showCommand, statsCommand } from "./reads.ts";
import { copyCommand, eraseCommand, exportCommand, migrateCommand, pruneCommand, reopenCommand } from "./upkeep.ts";

/** The command, for the program. */
export function inboxCommand(): Command {
  return commandGroup("inbox", "look into an inbox, and act on what is in it", [
    ...[lsCommand, showCommand, statsCommand, incompleteCommand, auditCommand],
    ...[replayCommand, discardCommand, unblockCommand, releaseCommand, quarantineCommand],
    ...[exportCommand, eraseCommand, pruneCommand, migrateCommand, copyCommand, reopenCommand],
  ]);
}
