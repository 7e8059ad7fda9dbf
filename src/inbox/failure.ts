/** Turns what a handler threw into what the inbox keeps of it: a code and a masked message. */
import type { WebhookEvent } from "../events/types.ts";
import type { Failure } from "./store.ts";

const LONGEST_MESSAGE = 500;
const LONGEST_CODE = 64;
/** Shorter texts ("ok") would blank out half of an error message, and tell nothing. */
const SHORTEST_TEXT = 4;

/** Keeps the error's own code or name, and its message without the event's text and without phone numbers. */
export function describeFailure(error: unknown, event: WebhookEvent | null, durationMs: number): Failure {
  return {
    code: failureCode(error),
    message: maskText(messageOf(error), event),
    durationMs: Math.max(0, Math.round(durationMs)),
  };
}

/** A stable label for what was thrown: its `code` when that is a plain word, else its class. */
export function failureCode(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  if (typeof code === "string" && /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(code)) return code.slice(0, LONGEST_CODE);
  if (error instanceof Error && /^[A-Za-z_$][\w$]*$/.test(error.name)) return error.name.slice(0, LONGEST_CODE);
  return "thrown";
}

/** Masks numbers to their last two digits and takes out the message's own text, then cuts to 500 characters. */
export function maskText(message: string, event: WebhookEvent | null): string {
  let masked = message;
  for (const text of textsOf(event)) masked = masked.replaceAll(text, "[text]");
  return maskNumbers(masked).slice(0, LONGEST_MESSAGE).toWellFormed();
}

/** Every run of seven or more digits, whatever separates them, keeps its last two. */
export function maskNumbers(message: string): string {
  return message.replace(/\+?\d(?:[\s().-]{0,3}\d){6,}/g, (number) => `…${number.slice(-2)}`);
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === "string" ? error : `A handler threw ${error === null ? "null" : typeof error}.`;
}

/** What a person wrote: the body of an inbound message, and any `text` or `body` of an unknown event. */
function textsOf(event: WebhookEvent | null): string[] {
  const data: unknown = event?.data;
  if (typeof data !== "object" || data === null) return [];
  const { body, text } = data as { body?: unknown; text?: unknown };
  return [body, text].filter((value): value is string => typeof value === "string" && value.length >= SHORTEST_TEXT);
}
