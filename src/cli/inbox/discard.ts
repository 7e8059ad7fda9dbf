/** `oncehook inbox discard`: sets events aside; what waits behind them goes on. */
import { Command } from "commander";
import { bulkCommand } from "./bulk.ts";

export function discardCommand(): Command {
  const command = new Command("discard").description(
    "set events aside: by id, or all dead letters that match; they can be replayed until they are pruned",
  );
  return bulkCommand(command, {
    ...{ verb: "discard", done: "discarded", states: ["pending", "dead"] },
    examples: [
      "oncehook inbox discard 17 --store inbox.db",
      "oncehook inbox discard --type message.queued --older-than 7d --store inbox.db",
    ],
    one: (inbox, event, options) => inbox.discard(event, options),
    all: (inbox, query, options) => inbox.discardAll(query, options),
  });
}
