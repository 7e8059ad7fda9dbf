/** Turns what a handler threw into what the inbox keeps of it: a code and a masked message. */
import { KeyringError, SetupError, StoreError } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import { maskNumbers } from "../internal/mask-numbers.ts";
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

/** A stable label for what was thrown: its `code` when that is a plain word, else its `name`. */
export function failureCode(error: unknown): string {
  for (const label of [read(error, "code"), read(error, "name")]) {
    if (typeof label === "string" && /^[A-Za-z_$][\w$.-]*$/.test(label) && !holdsNumber(label)) {
      return label.slice(0, LONGEST_CODE);
    }
  }
  return "thrown";
}

/** A label can group a number's digits by characters that masking leaves alone in a sentence. */
function holdsNumber(label: string): boolean {
  const spaced = label.replace(/[_$]/g, " ");
  return maskNumbers(spaced) !== spaced;
}

/** `sentence`, and what happened and what to do about it where that is a text of ours; any other error's may hold anything. */
export function explained(sentence: string, error: unknown): string {
  const isOurs = error instanceof StoreError || error instanceof SetupError || error instanceof KeyringError;
  return isOurs ? `${sentence} ${error.message}` : sentence;
}

/** Masks numbers to their last two digits and takes out the message's own text, then cuts to 500 characters. */
export function maskText(message: string, event: WebhookEvent | null): string {
  let masked = message;
  for (const text of textsOf(event)) masked = masked.replaceAll(text, "[text]");
  return maskNumbers(masked).slice(0, LONGEST_MESSAGE).toWellFormed();
}

function messageOf(error: unknown): string {
  const message = typeof error === "string" ? error : read(error, "message");
  return typeof message === "string" ? message : `A handler threw ${error === null ? "null" : typeof error}.`;
}

/** What a handler throws may be anything, even something that throws when it is looked at. */
function read(thrown: unknown, property: "code" | "message" | "name"): unknown {
  try {
    return (thrown as Record<string, unknown> | null | undefined)?.[property];
  } catch {
    return undefined;
  }
}

/**
 * What a person wrote: the body of an inbound message, and any `text` or `body` of an unknown event; also as it stands in
 * JSON, since errors often quote the event. The longest first, so that no part of one is left by another.
 */
function textsOf(event: WebhookEvent | null): string[] {
  const data: unknown = event?.data;
  if (typeof data !== "object" || data === null) return [];
  const { body, text } = data as { body?: unknown; text?: unknown };
  return [body, text]
    .filter((value): value is string => typeof value === "string" && value.length >= SHORTEST_TEXT)
    .flatMap((value) => [value, JSON.stringify(value).slice(1, -1)])
    .sort((a, b) => b.length - a.length);
}
