/** `oncehook inbox release`: gives up the gaps that messages wait for. */
import { Command } from "commander";
import { laneCommand } from "./lane-act.ts";

export function releaseCommand(): Command {
  const command = new Command("release").description("let messages go on that wait for a missing event");
  return laneCommand(command, {
    ...{ verb: "release", done: "released", status: "gap" },
    act: (inbox, lane, options) => inbox.releaseGap(lane, options),
  });
}
