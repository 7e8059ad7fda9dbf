/** `oncehook inbox stats`: what an inbox holds, and what has happened in it. */
import { Command } from "commander";
import type { InboxStats } from "../../inbox/store.ts";
import { systemClock } from "../../internal/clock.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { factsText, timeText } from "./printable.ts";

export function statsCommand(): Command {
  const command = new Command("stats").description("show what the inbox holds and has counted");
  return withInboxFlags(command, ["oncehook inbox stats --store inbox.db", "oncehook inbox stats --json"]).action(
    (flags: InboxFlags) =>
      withInbox(flags, async (inbox, terminal) => {
        const stats = await inbox.stats();
        const { location, rules } = inbox;
        await terminal.result({ location, ...rules, ...stats }, () => statsText(location, rules.name, stats));
      }),
  );
}

function statsText(location: string, name: string, stats: InboxStats): string {
  const { gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances } = stats;
  const waits = oldestPendingAt === null ? null : `${Math.round((systemClock.now() - oldestPendingAt) / 1_000)} s`;
  const receivers = instances.map(({ pid, seenAt }) => `process ${pid} (seen ${timeText(seenAt)})`);
  return [
    factsText({
      ...{ inbox: location, "receiver's name": name, receivers: receivers.join(", ") || "none" },
      ...{ "oldest pending waits for": waits, "newest delivery": timeText(newestSignedAt) },
      "retries are signed anew": serviceResigns ? "yes" : "not seen",
    }),
    `Now\n${indented(gauges)}`,
    `Since the inbox was made\n${indented(counters)}`,
  ].join("\n");
}

function indented(counts: Readonly<Record<string, number>>): string {
  const spelled = Object.entries(counts).map(([name, count]) => [
    name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
    count.toLocaleString("en-US"),
  ]);
  return factsText(Object.fromEntries(spelled)).replace(/^/gm, "  ").trimEnd().concat("\n");
}
