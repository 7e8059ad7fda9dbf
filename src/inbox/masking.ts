/** What may be said of an event and of an error about it: numbers keep two digits, texts are left out. */
import type { WebhookEvent } from "../events/types.ts";
import { maskNumbers, PHONE_NUMBER } from "../internal/logger.ts";

const LONGEST_MESSAGE = 500;
/** What is read of a message: enough for 500 characters once its texts are left out. */
const LONGEST_READ = 4 * LONGEST_MESSAGE;
/** Shorter texts ("ok") would blank out half of an error message, and tell nothing. */
const SHORTEST_TEXT = 4;
/** In scripts that need fewer characters for a word, and for emoji. */
const SHORTEST_BEYOND_LATIN = 2;

/** Fields that say what an event is, as far as they look like an id or a word of a program. */
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

/** What may be shown of the string `text` that an event has in the field `key`: itself, its number masked, or `[text]`. */
export function shownText(text: string, key: string): string {
  if (text === "" || (IDS.has(key) && PLAIN_ID.test(text)) || (WORDS.has(key) && PLAIN_WORD.test(text))) return text;
  const shown = maskNumbers(text);
  // The application's own reference, which people search by.
  if (key === "externalReference") return shown;
  // Fewer digits are no telephone number, and may be what somebody has to type in.
  return TELEPHONE.test(text) && shown !== text ? shown : "[text]";
}

/**
 * The message of an error about `event`, at most 500 characters. Numbers keep two digits. Strings of the event that may not be shown
 * become `[text]`, whole and in part: an error often quotes the beginning of a text, or one word of it. Credentials in URLs go too.
 */
export function maskText(message: string, event: WebhookEvent | null): string {
  const said = message.slice(0, LONGEST_READ).replace(CREDENTIALS, "…");
  return maskNumbers(withoutTexts(said, stringsOf(event)))
    .slice(0, LONGEST_MESSAGE)
    .toWellFormed();
}

/** The strings of an event that may not be shown as they are. */
export function hiddenTexts(event: WebhookEvent | null): readonly string[] {
  return stringsOf(event).hidden;
}

/** The strings of an event: those that may be shown as they are, and the others. */
interface Strings {
  readonly shown: readonly string[];
  readonly hidden: readonly string[];
}

function stringsOf(event: WebhookEvent | null): Strings {
  const found = { shown: new Set<string>(), hidden: new Set<string>() };
  collect(event, "", found);
  return { shown: [...found.shown], hidden: [...found.hidden] };
}

/** A parsed event is nested 64 levels deep at most. */
function collect(
  value: unknown,
  key: string,
  found: { readonly shown: Set<string>; readonly hidden: Set<string> },
): void {
  if (typeof value === "string") {
    const isTime = TIMES.has(key) && PLAIN_TIME.test(value);
    const isShown = isTime || key === "externalReference" || shownText(value, key) === value;
    (isShown ? found.shown : found.hidden).add(value);
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, key, found);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, item] of Object.entries(value)) collect(item, name, found);
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

/** Where the texts stand as a whole. */
function placesOf(message: string, texts: readonly string[]): Span[] {
  const spans: Span[] = [];
  for (const text of texts) {
    if (text.length < SHORTEST_TEXT) continue;
    for (let at = message.indexOf(text); at >= 0; at = message.indexOf(text, at + 1))
      spans.push([at, at + text.length]);
  }
  return spans;
}

/** Whether it stands alone and not inside a longer word. */
function standsAlone(message: string, [from, to]: Span): boolean {
  return !/[\p{L}\p{N}]$/u.test(message.slice(0, from)) && !/^[\p{L}\p{N}]/u.test(message.slice(to));
}

/** Where words of the texts stand, in the order of a text and in any case of letters; `taken` is dealt with already. */
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

/** Four digits or more by which people know a number. */
function endsNumber(word: string, numbers: readonly string[]): boolean {
  return /^\d{4,}$/.test(word) && numbers.some((number) => number.replace(/\D/g, "").endsWith(word));
}

function isTelling(part: string): boolean {
  const letters = part.match(WORD)?.join("") ?? "";
  return letters.length >= (BEYOND_LATIN.test(letters) ? SHORTEST_BEYOND_LATIN : SHORTEST_TEXT);
}

/** Of the same length, so that places stay: a few letters have a longer lower case. */
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
