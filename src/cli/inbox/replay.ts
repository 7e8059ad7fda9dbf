/** `oncehook inbox replay`: hands settled events to their handlers again. */
import { Command } from "commander";
import { bulkCommand } from "./bulk.ts";

export function replayCommand(): Command {
  const command = new Command("replay")
    .description("hand events to their handlers again: by id, or all dead letters that match")
    .option("--skip-superseded", "leave out an event of a message of which a later one was handled");
  return bulkCommand(command, {
    ...{ verb: "replay", done: "replayed", states: ["done", "dead", "late", "discarded"] },
    examples: [
      "oncehook inbox replay 17 18 --store inbox.db",
      "oncehook inbox replay --error ECONNREFUSED --skip-superseded --dry-run --store inbox.db",
      "oncehook inbox replay --all --rate 50/s --yes --store inbox.db",
    ],
    one: (inbox, event, options) => inbox.replay(event, options),
    all: (inbox, query, options, { skipSuperseded = false }) => inbox.replayAll(query, { ...options, skipSuperseded }),
  });
}
