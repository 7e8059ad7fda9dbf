/** `oncehook inbox show`: one event, or the story of a message. */
import { Command } from "commander";
import { type MessageShape, messageShape, type ShownBody } from "../../receiver/shown/shapes.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
import { wholeNumber } from "../flags.ts";
import { type ActFlags, actorOf, addByFlag } from "./acting.ts";
import { eventOf, lanesOf } from "./find-event.ts";
import { eventsText } from "./ls.ts";
import { type InboxFlags, withInbox, withInboxFlags } from "./opening.ts";
import { factsText, printable, printableTable, timeText } from "./printable.ts";

interface ShowFlags extends InboxFlags, ActFlags {
  readonly message?: string;
  readonly client?: string;
  readonly reveal?: true;
}

export function showCommand(): Command {
  const command = new Command("show")
    .description("show an event, or everything about a message")
    .argument("[event]", "the event's id", wholeNumber(1))
    .option("--message <id>", "the message with all of its events, instead of one event")
    .option("--client <id>", "the API client of the message, if several have the same id")
    .option("--reveal", "show numbers and texts, which are masked otherwise; the audit tells of it");
  return withInboxFlags(addByFlag(command), [
    "oncehook inbox show 17 --store inbox.db",
    "oncehook inbox show --message msg_1 --store inbox.db",
    "oncehook inbox show 17 --reveal --json --store inbox.db",
  ]).action(async (event: number | undefined, flags: ShowFlags) => {
    if ((event === undefined) === (flags.message === undefined))
      throw new CommandError("Say what: the id of an event, or --message with the id of a message.", USAGE_MISTAKE);
    if (event !== undefined && flags.client !== undefined)
      throw new CommandError("--client goes with --message, not with an id.", USAGE_MISTAKE);
    await withInbox(flags, async (inbox, terminal) => {
      const { message, client, reveal = false } = flags;
      const lanes =
        message === undefined ? [(await eventOf(inbox, event ?? 0)).laneId] : await lanesOf(inbox, message, client);
      for (const id of lanes) {
        const lane = await inbox.lane(id);
        if (lane === null) continue;
        if (reveal) await inbox.reveal(id, actorOf(flags));
        const shape = messageShape(lane, { reveal, only: event });
        await terminal.result(shape, () => (event === undefined ? storyText(shape) : eventText(shape)));
      }
    });
  });
}

function storyText(message: MessageShape): string {
  const { gaps, attempts } = message;
  const parts = [messageText(message), eventsText(message.events)];
  if (gaps.length > 0) {
    const rows = gaps.map(({ from, to, skippedAt, filledAt }) => [
      `${from}`,
      `${to}`,
      ...[skippedAt, filledAt].map(timeText),
    ]);
    parts.push(printableTable(["gap from", "to", "given up", "came after all"], rows));
  }
  if (attempts.length > 0) parts.push(attemptsText(message));
  return parts.join("\n");
}

function messageText(message: MessageShape): string {
  const { messageId, apiClientId, tag, lane, status, cursor, readyAt, peer, externalReference } = message;
  return factsText({
    ...{ message: messageId, client: apiClientId, direction: tag, lane, status, cursor },
    ...{ "ready at": timeText(readyAt), number: peer, reference: externalReference },
  });
}

function attemptsText({ attempts }: MessageShape): string {
  const rows = attempts.map(({ eventId, attempt, at, durationMs, errorCode, error }) => [
    ...[`${eventId}`, `${attempt}`, timeText(at), `${Math.round(durationMs)} ms`, errorCode, error],
  ]);
  return printableTable(["event", "failed try", "at", "took", "error", "text"], rows);
}

function eventText(message: MessageShape): string {
  const [event] = message.events;
  if (event === undefined) return "";
  const { id, identity, eventType, sequence, state, outcome, attempts, duplicates, late, forced, conflict } = event;
  const facts = factsText({
    ...{ event: id, identity, type: eventType, sequence, state, outcome },
    ...{ late: yesNo(late), replayed: yesNo(forced), conflict: yesNo(conflict), duplicates, tries: attempts },
    ...{ occurred: timeText(event.occurredAt), accepted: timeText(event.acceptedAt) },
    ...{ started: timeText(event.startedAt), finished: timeText(event.finishedAt) },
    ...{ "error code": event.errorCode, error: event.error },
  });
  const parts = [messageText(message), facts];
  if (message.attempts.length > 0) parts.push(attemptsText(message));
  return [...parts, bodyText(event.body)].join("\n");
}

/** Over several lines if it is JSON, else as it is. */
export function bodyText(body: ShownBody | null): string {
  if (body === null) return "The body was pruned or erased.\n";
  const lines = "masked" in body ? linesOf(body.masked) : "text" in body ? linesOf(parsed(body.text)) : [body.base64];
  return lines.map((line) => `${printable(line)}\n`).join("");
}

function linesOf(value: unknown): readonly string[] {
  return typeof value === "string" ? [value] : JSON.stringify(value, null, 2).split("\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function yesNo(value: boolean): string {
  return value ? "yes" : "no";
}
