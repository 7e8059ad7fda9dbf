/** `oncehook inbox unblock`: lets messages go on that are parked behind a dead letter. */
import { Command } from "commander";
import { laneCommand } from "./lane-act.ts";

export function unblockCommand(): Command {
  const command = new Command("unblock").description('let messages go on that a dead letter blocks (onDead: "block")');
  return laneCommand(command, {
    ...{ verb: "unblock", done: "unblocked", status: "blocked" },
    act: (inbox, lane, options) => inbox.unblock(lane, options),
  });
}
