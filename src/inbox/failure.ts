/** Turns an error of the application's code into what the inbox and the log keep: a code, a masked message, and its place. */
import { KeyringError, SetupError, StoreError } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import { applicationFrames, errorName, errorPlaceOf, propertyOf } from "../internal/foreign-error.ts";
import { type LogFields, maskNumbers } from "../internal/logger.ts";
import { hiddenTexts, maskText } from "./masking.ts";
import type { Failure } from "./store.ts";

const LONGEST_CODE = 64;
/** Of an error's causes, those that are logged. */
const MOST_CAUSES = 3;

/** Keeps the error's own code or name, and its message without the event's text and without phone numbers. */
export function describeFailure(error: unknown, event: WebhookEvent | null, durationMs: number): Failure {
  return {
    code: failureCode(error),
    message: maskText(messageOf(error), event),
    durationMs: Math.max(0, Math.round(durationMs)),
  };
}

/**
 * The log fields of an error that the application threw about `event`, in a handler, a hook or another function of its own: its
 * code, name, masked message, causes, and the application's frames. Where its message may hold secrets, as of a function that reads
 * them, use `errorPlaceOf`, which leaves the message out.
 */
export function errorFields(error: unknown, event: WebhookEvent | null): LogFields {
  const texts = hiddenTexts(event);
  const chain = [error, ...causesOf(error)];
  const isQuoted = (line: string) => texts.some((text) => text.includes(line));
  const at = chain.map((link) => applicationFrames(link, isQuoted)).find((frames) => frames.length > 0);
  const [said, ...causes] = chain.map((link) => sentenceOf(link, event));
  return {
    code: failureCode(error),
    error: said,
    ...(causes.length > 0 && { causes }),
    ...(at !== undefined && { at }),
  };
}

function sentenceOf(error: unknown, event: WebhookEvent | null): string {
  const name = errorName(error);
  const message = maskText(messageOf(error), event);
  return name === null || message === "" ? (name ?? message) : `${name}: ${message}`;
}

function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [];
  let cause = propertyOf(error, "cause");
  while (cause !== undefined && cause !== null && causes.length < MOST_CAUSES) {
    causes.push(cause);
    cause = propertyOf(cause, "cause");
  }
  return causes;
}

/** As `errorFields`, without any message: for errors that may quote secrets, requests or what was to be written. */
export function placeFields(error: unknown): LogFields {
  return { code: failureCode(error), ...errorPlaceOf(error) };
}

/** A stable label for what was thrown: its `code` when that is a plain word, else its `name`. */
export function failureCode(error: unknown): string {
  for (const label of [propertyOf(error, "code"), propertyOf(error, "name")]) {
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

function messageOf(error: unknown): string {
  const message = typeof error === "string" ? error : propertyOf(error, "message");
  if (typeof message === "string") return message;
  return `A value that is not an Error was thrown (${error === null ? "null" : typeof error}).`;
}
