/** What the chapters of the story stand on: the stage, the people, and the messages that it is about. */
import { isTerminal } from "../../events/parse.ts";
import type { WebhookEvent } from "../../events/types.ts";
import type { Report } from "./report.ts";
import type { Stage } from "./stage.ts";

export interface Plot {
  readonly stage: Stage;
  readonly report: Report;
  readonly apiClientId: string;
  /** The number to send from: its id, never its E.164 form. */
  readonly numberId: string;
  /** The messages that the table shows, by their part in the story. */
  readonly cast: Map<Part, string>;
}

export type Part = "meets a 503" | "fails" | "backwards, twice" | "waited for" | "handler throws" | "from a customer";

/** The last two are magic: the emulator treats them as their names say; see docs/emulator.md. */
export const RECIPIENTS = {
  ordinary: "+14155550101",
  invalid: "0155 50101",
  fails: "+15005550002",
  reversed: "+15005550006",
} as const;

export const TEXTS = { ours: "Your order is on its way.", theirs: "Thank you, see you on Friday." } as const;

/** After so much of the service's time everything has happened to a message. */
export const LIFETIME_MS = 20_000;

/** Sends to the ordinary recipient. Returns the message's id. */
export async function sendOne({ stage, numberId }: Plot, externalReference: string): Promise<string> {
  const sent = await stage.client.messages.send({
    sendFrom: numberId,
    to: [RECIPIENTS.ordinary],
    messageType: "SMS",
    text: TEXTS.ours,
    externalReference,
  });
  return sent.throwIfRejected().results[0]?.messageId ?? "";
}

/** What can end a message. */
export function isOutcome({ eventType }: WebhookEvent): boolean {
  return isTerminal(eventType);
}

/** @throws when the story comes to a message that nobody has sent */
export function messageOf({ cast }: Plot, part: Part): string {
  const messageId = cast.get(part);
  if (messageId === undefined) throw new Error(`No message "${part}" was sent.`);
  return messageId;
}
