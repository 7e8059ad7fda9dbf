/** What logs, error messages and the inbox may contain about an event or an error: ids, codes and masked texts. */
import { KeyringError, SetupError, StoreError } from "../errors.ts";
import { applicationFrames, errorName, errorPlaceOf, propertyOf } from "../internal/foreign-error.ts";
import { type LogFields, maskNumbers, PHONE_NUMBER } from "../internal/logger.ts";
import { entryNameOf, publicId } from "./lane-key.ts";
import type { EventNotice } from "./record.ts";
import type { Failure } from "./store.ts";

const LONGEST_CODE = 64;
/** Causes of an error that are logged. */
const MOST_CAUSES = 3;

/** What the inbox keeps of a failed attempt: the error's code or name, and its message without the event's texts and phone numbers. */
export function describeFailure(error: unknown, event: object | null, durationMs: number): Failure {
  return {
    code: failureCode(error),
    message: maskText(messageOf(error), event),
    durationMs: Math.max(0, Math.round(durationMs)),
  };
}

/**
 * The log fields of an error that the application's code threw about `event`: its code, name, masked message, causes, and the
 * application's stack frames. If the message may contain secrets, as from a function that reads them, use `errorPlaceOf`.
 */
export function errorFields(error: unknown, event: object | null): LogFields {
  const texts = hiddenTexts(event);
  const chain = [error, ...causesOf(error)];
  const isQuoted = (line: string) => texts.some((text) => text.includes(line));
  const at = chain.map((link) => applicationFrames(link, isQuoted)).find((frames) => frames.length > 0);
  const [first, ...causes] = chain.map((link) => sentenceOf(link, event));
  return {
    code: failureCode(error),
    error: first,
    ...(causes.length > 0 && { causes }),
    ...(at !== undefined && { at }),
  };
}

function sentenceOf(error: unknown, event: object | null): string {
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

/** As `errorFields`, without messages: for errors that may quote secrets, requests or rows. */
export function placeFields(error: unknown): LogFields {
  return { code: failureCode(error), ...errorPlaceOf(error) };
}

/** A stable label for what was thrown: its `code` if that is a plain word, otherwise its `name`. */
export function failureCode(error: unknown): string {
  for (const label of [propertyOf(error, "code"), propertyOf(error, "name")]) {
    if (typeof label === "string" && /^[A-Za-z_$][\w$.-]*$/.test(label) && !holdsNumber(label)) {
      return label.slice(0, LONGEST_CODE);
    }
  }
  return "thrown";
}

/** In a label, other characters may separate the digits of a number than in a sentence. */
function holdsNumber(label: string): boolean {
  const spaced = label.replace(/[_$]/g, " ");
  return maskNumbers(spaced) !== spaced;
}

/** `sentence`, followed by the error's message if it is our own: any other message may contain anything. */
export function explained(sentence: string, error: unknown): string {
  const isOurs = error instanceof StoreError || error instanceof SetupError || error instanceof KeyringError;
  return isOurs ? `${sentence} ${error.message}` : sentence;
}

function messageOf(error: unknown): string {
  const message = typeof error === "string" ? error : propertyOf(error, "message");
  if (typeof message === "string") return message;
  return `A value that is not an Error was thrown (${error === null ? "null" : typeof error}).`;
}

/** The log fields of an event. Omits `messageId` if it may not be logged. */
export function logFieldsOf({
  eventId,
  eventType,
  sequence,
  lane,
}: Omit<EventNotice, "eventId"> & { readonly eventId: EventNotice["eventId"] | undefined }) {
  const messageId = publicId(lane);
  const source = entryNameOf(lane);
  const id = eventId === undefined ? {} : { eventId };
  return { ...id, eventType, sequence, ...(source !== null && { source }), ...(messageId !== null && { messageId }) };
}

const LONGEST_MESSAGE = 500;
/** The part of a message that is read: enough for 500 characters after its texts are removed. */
const LONGEST_READ = 4 * LONGEST_MESSAGE;
/** Shorter texts ("ok") would mask half of an error message, and reveal nothing. */
const SHORTEST_TEXT = 4;
/** The same for scripts with shorter words, and for emoji. */
const SHORTEST_BEYOND_LATIN = 2;

/** Fields that are shown if they look like an id or a word of a program. */
const IDS = new Set(["apiClientId", "messageId", "conversationId", "numberId", "providerMessageRef"]);
const WORDS = new Set(["eventType", "direction", "status", "code"]);
const TIMES = new Set(["occurredAt", "timestamp"]);
const PLAIN_ID = /^[\w.:-]+$/;
const PLAIN_WORD = /^[A-Za-z][\w.:-]*$/;
const PLAIN_TIME = /^[\d:.TZ+-]{1,40}$/;
const TELEPHONE = /^\+?[\d\s().-]+$/;

/** Letters, digits and emoji, without the punctuation and symbols that stand between them. */
const WORD = /[^\s\p{P}$+<=>^`|~]+/gu;
const BEYOND_LATIN = /[\u0250-\u{10ffff}]/u;
const CREDENTIALS = /(?<=:\/\/)[^\s/@]+(?=@)|(?<=\b(?:bearer|basic)\s)(?=\S*\d)[\w.~+/=-]{8,}/gi;

/** The string `text` of an event's field `key`, as it may be shown: itself, with its number masked, or `[text]`. */
export function shownText(text: string, key: string): string {
  if (text === "" || (IDS.has(key) && PLAIN_ID.test(text)) || (WORDS.has(key) && PLAIN_WORD.test(text))) return text;
  const shown = maskNumbers(text);
  // The application's own reference. People search by it.
  if (key === "externalReference") return shown;
  // Fewer digits are not a phone number. They may be a code that a person has to type in.
  return TELEPHONE.test(text) && shown !== text ? shown : "[text]";
}

/**
 * The message of an error about `event`, at most 500 characters. Phone numbers keep two digits. Strings of the event that may not be shown
 * become `[text]`, also in part: an error often quotes the beginning of a text, or one word of it. Credentials in URLs are removed.
 */
export function maskText(message: string, event: object | null): string {
  const read = message.slice(0, LONGEST_READ).replace(CREDENTIALS, "…");
  return maskNumbers(withoutTexts(read, stringsOf(event)))
    .slice(0, LONGEST_MESSAGE)
    .toWellFormed();
}

/** The strings of an event that may not be shown as they are. */
function hiddenTexts(event: object | null): readonly string[] {
  return stringsOf(event).hidden;
}

/** The strings of an event: those that may be shown as they are, and the others. */
interface Strings {
  readonly shown: readonly string[];
  readonly hidden: readonly string[];
}

function stringsOf(event: object | null): Strings {
  const found = { shown: new Set<string>(), hidden: new Set<string>() };
  collect(event, found);
  return { shown: [...found.shown], hidden: [...found.hidden] };
}

/** An event that an application's own source makes may be nested deeply, or contain itself. */
function collect(event: object | null, found: { readonly shown: Set<string>; readonly hidden: Set<string> }): void {
  const seen = new Set<object>();
  const values: [key: string, value: unknown][] = [["", event]];
  for (const [key, value] of values) {
    if (typeof value === "string") {
      const isTime = TIMES.has(key) && PLAIN_TIME.test(value);
      const isShown = isTime || key === "externalReference" || shownText(value, key) === value;
      (isShown ? found.shown : found.hidden).add(value);
    }
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    const isList = Array.isArray(value);
    for (const [name, item] of Object.entries(value)) values.push([isList ? key : name, item]);
  }
}

type Span = readonly [from: number, to: number];

function withoutTexts(message: string, { shown, hidden }: Strings): string {
  if (hidden.length === 0) return message;
  const numbers = hidden.filter(isPhoneNumber);
  const texts = hidden.filter((text) => !isPhoneNumber(text)).flatMap((text) => formsOf(text, message));
  const whole = placesOf(message, texts);
  // "msg_4711" stays, though a text has the word 4711.
  const ids = placesOf(message, shown).filter((span) => standsAlone(message, span));
  const written = [...message.matchAll(PHONE_NUMBER)].map(({ index, 0: { length } }): Span => [index, index + length]);
  return replaced(message, [...whole, ...quotedParts(message, { texts, numbers }, [...whole, ...ids, ...written])]);
}

function isPhoneNumber(text: string): boolean {
  return TELEPHONE.test(text) && maskNumbers(text) !== text;
}

/** As it is, within JSON and within a URL: as errors quote what they were given. */
function formsOf(text: string, message: string): string[] {
  const forms = [text];
  if (message.includes("\\")) forms.push(JSON.stringify(text).slice(1, -1));
  if (message.includes("%")) forms.push(encodeURIComponent(text.toWellFormed()));
  return forms;
}

/** The places of the texts as a whole. */
function placesOf(message: string, texts: readonly string[]): Span[] {
  const spans: Span[] = [];
  for (const text of texts) {
    if (text.length < SHORTEST_TEXT) continue;
    for (let at = message.indexOf(text); at >= 0; at = message.indexOf(text, at + 1))
      spans.push([at, at + text.length]);
  }
  return spans;
}

/** Whether it is a word, and not part of a longer one. */
function standsAlone(message: string, [from, to]: Span): boolean {
  return !/[\p{L}\p{N}]$/u.test(message.slice(0, from)) && !/^[\p{L}\p{N}]/u.test(message.slice(to));
}

/** The places of words of the texts, in the order of a text, upper or lower case. `taken` places are masked already. */
function quotedParts(
  message: string,
  { texts, numbers }: { readonly texts: readonly string[]; readonly numbers: readonly string[] },
  taken: readonly Span[],
): Span[] {
  const said = lowerCase(message);
  const texted = lowerCase(texts.join("\n"));
  const words = [...said.matchAll(WORD)]
    .map(({ index, 0: { length } }): Span => [index, index + length])
    .filter(([from, to]) => !taken.some((span) => span[0] < to && from < span[1]));
  const spans: Span[] = [];
  for (let first = 0; first < words.length; ) {
    const from = words[first]?.[0] ?? 0;
    let next = first;
    let to = from;
    for (
      let word = words[next];
      word !== undefined && texted.includes(said.slice(from, word[1]));
      word = words[++next]
    ) {
      to = word[1];
    }
    const digits = words[first]?.[1] ?? from;
    if (isTelling(said.slice(from, to))) spans.push([from, to]);
    else if (endsNumber(said.slice(from, digits), numbers)) spans.push([from, digits]);
    first = Math.max(next, first + 1);
  }
  return spans;
}

/** The last four digits or more, by which people know a number. */
function endsNumber(word: string, numbers: readonly string[]): boolean {
  return /^\d{4,}$/.test(word) && numbers.some((number) => number.replace(/\D/g, "").endsWith(word));
}

function isTelling(part: string): boolean {
  const letters = part.match(WORD)?.join("") ?? "";
  return letters.length >= (BEYOND_LATIN.test(letters) ? SHORTEST_BEYOND_LATIN : SHORTEST_TEXT);
}

/** Keeps the length, so that places stay the same: a few letters have a longer lower case. */
function lowerCase(text: string): string {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return lower;
  return text.replace(/./gsu, (char) => (char.toLowerCase().length === char.length ? char.toLowerCase() : char));
}

function replaced(message: string, spans: readonly Span[]): string {
  let masked = "";
  let end = 0;
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    if (from >= end) masked += `${message.slice(end, from)}[text]`;
    end = Math.max(end, to);
  }
  return masked + message.slice(end);
}
