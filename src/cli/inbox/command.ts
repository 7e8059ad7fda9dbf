/** `oncehook inbox`: what a person who looks after an inbox asks of it, one command each. */
import type { Command } from "commander";
import { auditCommand } from "./audit.ts";
import { copyCommand } from "./copy.ts";
import { discardCommand } from "./discard.ts";
import { eraseCommand } from "./erase.ts";
import { exportCommand } from "./export.ts";
import { commandGroup } from "./group.ts";
import { incompleteCommand } from "./incomplete.ts";
import { lsCommand } from "./ls.ts";
import { migrateCommand } from "./migrate.ts";
import { pruneCommand } from "./prune.ts";
import { quarantineCommand } from "./quarantine.ts";
import { releaseCommand } from "./release.ts";
import { replayCommand } from "./replay.ts";
import { showCommand } from "./show.ts";
import { statsCommand } from "./stats.ts";
import { unblockCommand } from "./unblock.ts";

/** The command, for the program. */
export function inboxCommand(): Command {
  return commandGroup("inbox", "look into an inbox, and act on what is in it", [
    ...[lsCommand, showCommand, statsCommand, incompleteCommand, auditCommand],
    ...[replayCommand, discardCommand, unblockCommand, releaseCommand, quarantineCommand],
    ...[exportCommand, eraseCommand, pruneCommand, migrateCommand, copyCommand],
  ]);
}
