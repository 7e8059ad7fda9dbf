/** What logs, error messages and the inbox may contain about an event or an error: ids, codes and masked texts. */
import { KeyringError, OncehookError, SetupError, StoreError } from "../errors.ts";
import { applicationFrames, errorName, errorPlaceOf, isLabel, propertyOf } from "../internal/foreign-error.ts";
import { type LogFields, maskNumbers, PHONE_NUMBER } from "../internal/logger.ts";
import { publicId } from "./lane-key.ts";
import { matcherOf } from "./matches.ts";
import type { EventNotice } from "./record.ts";
import type { Failure } from "./store.ts";

const LONGEST_CODE = 64;
/** Causes of an error that are logged. */
const MOST_CAUSES = 3;

/** What the inbox keeps of a failed attempt: the error's code or name, and its masked message. */
export function describeFailure(error: unknown, masking: Masking, durationMs: number): Failure {
  return {
    code: failureCode(error, masking),
    message: masking.text(messageOf(error)),
    durationMs: Math.max(0, Math.round(durationMs)),
  };
}

/**
 * The log fields of an error that the application's code threw about an event: its code, name, masked message, causes, and the
 * application's stack frames. If the message may contain secrets, as from a function that reads them, use `errorPlaceOf`.
 */
export function errorFields(error: unknown, masking: Masking): LogFields {
  const chain = [error, ...causesOf(error)];
  const at = chain.map((link) => applicationFrames(link, masking.quotes)).find((frames) => frames.length > 0);
  const [first, ...causes] = chain.map((link) => sentenceOf(link, masking));
  return {
    code: failureCode(error, masking),
    error: first,
    ...(causes.length > 0 && { causes }),
    ...(at !== undefined && { at }),
  };
}

function sentenceOf(error: unknown, masking: Masking): string {
  const name = errorName(error);
  const message = masking.text(messageOf(error));
  if (name === null || isHidden(name, error, masking)) return message;
  return message === "" ? name : `${name}: ${message}`;
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

/** A stable label for what was thrown: its `code` if that is a plain word, otherwise its `name`. Not what `masking` hides. */
export function failureCode(error: unknown, masking: Masking = NOTHING_QUOTED): string {
  for (const label of [propertyOf(error, "code"), propertyOf(error, "name")]) {
    if (typeof label !== "string" || !/^[A-Za-z_$][\w$.-]*$/.test(label) || holdsNumber(label)) continue;
    if (!isHidden(label, error, masking)) return label.slice(0, LONGEST_CODE);
  }
  return "thrown";
}

/** Our own errors quote no event in their codes and names. */
function isHidden(label: string, error: unknown, masking: Masking): boolean {
  return !(error instanceof OncehookError) && masking.hides(label);
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

/** The log fields of an event. Omits the name of its lane and its id if it has none, or it may not be logged. */
export function logFieldsOf({
  eventId,
  eventType,
  sequence,
  lane,
  id,
}: Omit<EventNotice, "eventId"> & { readonly eventId: EventNotice["eventId"] | undefined }) {
  const [name, shownId] = [publicId(lane.name), publicId(id)];
  return {
    ...(eventId !== undefined && { eventId }),
    ...{ eventType, sequence, source: lane.source },
    ...(name !== null && { lane: name }),
    ...(shownId !== null && { id: shownId }),
  };
}

// Which fields of an event may be shown.

/** The fields that may be shown, as a tree of their names. */
export interface ShownFields {
  readonly isShown: boolean;
  readonly below: ReadonlyMap<string, ShownFields>;
}

interface GrowingFields extends ShownFields {
  isShown: boolean;
  readonly below: Map<string, GrowingFields>;
}

/** @param shows - paths of fields, with dots between the names. A path passes through lists: `items.id` is the id of each item */
export function shownFields(shows: readonly string[]): ShownFields {
  const root: GrowingFields = { isShown: false, below: new Map() };
  for (const path of shows) {
    let field = root;
    for (const name of path.split(".")) {
      const below = field.below.get(name) ?? { isShown: false, below: new Map() };
      field.below.set(name, below);
      field = below;
    }
    field.isShown = true;
  }
  return root;
}

/** An id, a word of a program, a time or a path. */
const PLAIN = /^[\w/][\w.:/+-]{0,254}$/;

/** A phone number in such a text, unless a letter, `_` or `/` makes it a part of an id. */
const NUMBER_APART = /(?<![\p{L}\p{N}_/])\d(?:[.-]{0,3}\d){6,14}(?![\p{L}\p{N}_])/gu;

/** The text of a field that may be shown: itself if it looks like an id or a word, since somebody may have written something else there. */
export function shownText(text: string): string {
  if (text === "") return text;
  if (PLAIN.test(text)) return text.replace(NUMBER_APART, maskNumbers);
  return isPhoneNumber(text) ? maskNumbers(text) : "[text]";
}

// What may not be shown of an event.

/** An event, as an error about it may quote it. */
export interface Quoted {
  /** Null if its body cannot be read. */
  readonly event: object | null;
  /** Of its body. */
  readonly bytes: number;
  /** The headers that are kept next to its body, as JSON. */
  readonly head: string | null;
  /** As in the definition of its source. */
  readonly shows: readonly string[];
  /** Texts of the event that are shown in any case, such as its type. */
  readonly named: readonly string[];
}

interface Found {
  readonly shown: ReadonlySet<string>;
  /** Texts, values of kept headers, and keys that do not look like names of fields. */
  readonly hidden: ReadonlySet<string>;
  /** Numbers, and keys like names of fields. They are hidden where they stand alone: a part of them says nothing. */
  readonly exact: ReadonlySet<string>;
}

const NOTHING: Found = { shown: new Set(), hidden: new Set(), exact: new Set() };

/** A larger event is not searched: it would hold up requests, at each failed attempt, and a stranger chooses what is in it. */
export const MOST_SEARCHED = { bytes: 131_072, values: 5_000 } as const;

/** Null if the event is too large. */
function search(quoted: Quoted): Found | null {
  if (quoted.bytes > MOST_SEARCHED.bytes) return null;
  try {
    return collected(quoted);
  } catch {
    // An event of an application's own source may have getters that throw.
    return null;
  }
}

/** An event that an application's own source makes may be nested deeply, or contain itself. */
function collected({ event, head, shows, named }: Quoted): Found | null {
  const shown = new Set(named);
  const hidden = new Set<string>();
  const exact = new Set<string>();
  let length = 0;
  const add = (texts: Set<string>, text: string) => {
    length += text.length;
    texts.add(text);
  };
  const seen = new Set<object>();
  const values: [value: unknown, field: ShownFields | undefined][] = keptTexts(head).map((text) => [text, undefined]);
  values.push([event, shownFields(shows)]);
  for (const [value, field] of values) {
    if (length > MOST_SEARCHED.bytes || values.length > MOST_SEARCHED.values) return null;
    if (typeof value === "string") add(field?.isShown && shownText(value) === value ? shown : hidden, value);
    else if (typeof value === "number" || typeof value === "bigint") {
      const digits = `${value}`.replace("-", "");
      // In a message it could as well be a phone number.
      const isLong = isPhoneNumber(digits);
      if (!field?.isShown) add(isLong ? hidden : exact, digits);
      else if (!isLong) add(shown, digits);
    } else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value) && !seen.has(value)) {
      seen.add(value);
      const isList = Array.isArray(value) || value instanceof Set;
      if (isList) for (const item of value) values.push([item, field]);
      for (const [key, item] of isList ? [] : value instanceof Map ? value : Object.entries(value)) {
        const below = field?.below.get(key);
        if (below === undefined && !isOrdinary(key)) add(FIELD_NAME.test(key) ? exact : hidden, `${key}`);
        values.push([item, below]);
      }
    }
  }
  for (const text of shown) {
    hidden.delete(text);
    exact.delete(text);
  }
  return { shown, hidden, exact };
}

/** The values of the kept headers, and of the parameters in a kept query. */
function keptTexts(head: string | null): readonly string[] {
  if (head === null) return [];
  const kept: Readonly<Record<string, string>> = JSON.parse(head);
  return Object.entries(kept).flatMap(([name, value]) =>
    name === ":query" ? [value, ...new URLSearchParams(value).values()] : value,
  );
}

const FIELD_NAME = /^[_$]*[A-Za-z]+(?:[_-][A-Za-z]+)*\d{0,2}$/;
/** Names of fields made of these words say nothing of an event, and without them few messages could be read. */
const ORDINARY_WORDS = new Set(
  (
    "account action active address amount api app attempt attributes author balance billing body by card cart category channel city client " +
    "code comment content contact count country created currency customer data date delivery description details device discount due email " +
    "end entity error event events expires external failed field fields file files first format group header headers id ids image index info " +
    "input invoice is item items key kind label language last level line lines link list live location login media member members message " +
    "messages metadata method mobile mode model name new next note notes number object offset old option options order org organization " +
    "output owner page parent password path payload payment period phone plan position postal price product project property provider " +
    "quantity query rate reason receipt record recipient ref reference refund region repository request resource response result role " +
    "sender sequence service session shipping shop size source start state status street subject subscription success summary target tax " +
    "team tenant test text time timestamp title token topic total tracking transaction type unit update updated uri url user username value " +
    "values version webhook zip"
  ).split(" "),
);

function isOrdinary(key: unknown): boolean {
  if (typeof key !== "string" || !FIELD_NAME.test(key)) return false;
  const words = key.split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/);
  return words.every((word) => word === "" || ORDINARY_WORDS.has(word.toLowerCase()));
}

// How it is hidden in a message.

/** Hides what errors quote of an event. The event is searched once, when that is needed. */
export interface Masking {
  /**
   * The message, at most 500 characters. Phone numbers keep two digits. What may not be shown of the event becomes `[text]` or `[number]`:
   * texts also in part, because an error often quotes the beginning of a text, or one word of it. Credentials in URLs are removed. If the
   * event is too large to be searched, a sentence that says so stands for the message.
   */
  text(message: string): string;
  /** Whether a name or a code of an error is something that may not be shown. */
  hides(label: string): boolean;
  /** Whether a line of an error's stack stands in a text of the event. */
  quotes(line: string): boolean;
}

const LEFT_OUT = "[The message is left out: its event is too large to be searched for what may not be shown.]";

/** @param quoted - null if an error is about no event, or nothing is known of it */
export function maskingOf(quoted: Quoted | null): Masking {
  let result: { readonly found: Found | null } | undefined;
  const found = () => {
    result ??= { found: quoted === null ? NOTHING : search(quoted) };
    return result.found;
  };
  // The inbox and the log get the same message, one after the other.
  let last: { readonly message: string; readonly text: string } | undefined;
  return {
    text(message) {
      if (last?.message !== message) {
        const all = found();
        last = { message, text: all === null ? LEFT_OUT : maskedMessage(message, all) };
      }
      return last.text;
    },
    hides(label) {
      const all = found();
      return all === null ? !isLabel(label) : all.hidden.has(label) || all.exact.has(label);
    },
    quotes: (line) => [...(found()?.hidden ?? [])].some((text) => text.includes(line)),
  };
}

export const NOTHING_QUOTED = maskingOf(null);

const LONGEST_MESSAGE = 500;
/** The part of a message that is read: enough for 500 characters after its texts are removed. */
const LONGEST_READ = 4 * LONGEST_MESSAGE;
/** Shorter texts ("ok") would mask half of an error message, and reveal nothing. */
const SHORTEST_TEXT = 4;
/** The same for scripts with shorter words, and for emoji. */
const SHORTEST_BEYOND_LATIN = 2;

const TELEPHONE = /^\+?[\d\s().-]+$/;

/** Letters, digits and emoji, without the punctuation and symbols that stand between them. */
const WORD = /[^\s\p{P}$+<=>^`|~]+/gu;
const BEYOND_LATIN = /[\u0250-\u{10ffff}]/u;
const CREDENTIALS = /(?<=:\/\/)[^\s/@]+(?=@)|(?<=\b(?:bearer|basic)\s)(?=\S*\d)[\w.~+/=-]{8,}/gi;

type Span = readonly [from: number, to: number];
/** A part of a message, and what stands for it. */
type Masked = readonly [span: Span, by: string];

function maskedMessage(message: string, found: Found): string {
  const read = message.slice(0, LONGEST_READ).replace(CREDENTIALS, "…");
  const spans = found === NOTHING ? writtenNumbers(read) : maskedSpans(read, found);
  return replaced(read, spans).slice(0, LONGEST_MESSAGE).toWellFormed();
}

/** Phone numbers, whether they are of the event or not. */
function writtenNumbers(message: string): Masked[] {
  return [...message.matchAll(PHONE_NUMBER)].map(({ index, 0: digits }) => [
    [index, index + digits.length],
    maskNumbers(digits),
  ]);
}

function maskedSpans(message: string, { shown, hidden, exact }: Found): Masked[] {
  const said = lowerCase(message);
  const match = matcherOf(said);
  const phones: string[] = [];
  const texts: string[] = [];
  for (const text of hidden) (isPhoneNumber(text) ? phones : texts).push(text);
  const alone = (words: ReadonlySet<string>) =>
    wholesIn(match([...words].map(lowerCase)).wholes).filter((span) => standsAlone(said, span));
  // "msg_4711" stays, though a text has the word 4711.
  const ids = alone(shown);
  const isId = coverOf(said.length, ids);
  const numbers = writtenNumbers(message).filter(([[from, to]]) => isId.subarray(from, to).includes(0));
  const words = alone(exact).map((span): Masked => [span, /\d/.test(said.charAt(span[0])) ? "[number]" : "[text]"]);
  const { wholes, parts } = match(texts.flatMap((text) => formsOf(text, message)).map(lowerCase));
  const whole = wholesIn(wholes);
  const taken = coverOf(said.length, [...whole, ...ids, ...[...words, ...numbers].map(([span]) => span)]);
  const quoted = quotedParts(said, { parts, phones, taken });
  return [...[...whole, ...quoted].map((span): Masked => [span, "[text]"]), ...words, ...numbers];
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

function wholesIn(wholes: readonly number[]): Span[] {
  return wholes.flatMap((length, to): Span[] => (length < SHORTEST_TEXT ? [] : [[to - length, to]]));
}

/** 1 for each character that is in one of the spans. */
function coverOf(length: number, spans: readonly Span[]): Uint8Array {
  const cover = new Uint8Array(length);
  let end = 0;
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    cover.fill(1, Math.max(from, end), to);
    end = Math.max(end, to);
  }
  return cover;
}

/** Whether it is not part of a longer word or number. */
function standsAlone(message: string, [from, to]: Span): boolean {
  const isJoined = (edge: string, beside: string) =>
    /\d/.test(beside) || (/\p{L}/u.test(edge) && /[\p{L}\p{N}]/u.test(beside));
  return (
    !isJoined(message.charAt(from), message.charAt(from - 1)) && !isJoined(message.charAt(to - 1), message.charAt(to))
  );
}

interface Quotes {
  /** See `Matches`. */
  readonly parts: readonly number[];
  readonly phones: readonly string[];
  /** 1 for each character that is masked already, or an id. */
  readonly taken: Uint8Array;
}

/** The places of words of the texts, in the order of a text, upper or lower case. */
function quotedParts(said: string, { parts, phones, taken }: Quotes): Span[] {
  const words = [...said.matchAll(WORD)]
    .map(({ index, 0: { length } }): Span => [index, index + length])
    .filter(([from, to]) => !taken.subarray(from, to).includes(1));
  const ends = new Set(phones.flatMap(numberEnds));
  const spans: Span[] = [];
  for (let first = 0; first < words.length; ) {
    const from = words[first]?.[0] ?? 0;
    let next = first;
    let to = from;
    for (let word = words[next]; word !== undefined && (parts[word[1]] ?? 0) >= word[1] - from; word = words[++next]) {
      to = word[1];
    }
    const digits = words[first]?.[1] ?? from;
    if (isTelling(said.slice(from, to))) spans.push([from, to]);
    else if (ends.has(said.slice(from, digits))) spans.push([from, digits]);
    first = Math.max(next, first + 1);
  }
  return spans;
}

/** The last digits, by which people know a number. More than six are masked wherever they are. */
function numberEnds(number: string): readonly string[] {
  const digits = number.replace(/\D/g, "");
  return [4, 5, 6].map((count) => digits.slice(-count));
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

function replaced(message: string, spans: readonly Masked[]): string {
  let masked = "";
  let end = 0;
  for (const [[from, to], by] of spans.toSorted(([a], [b]) => a[0] - b[0])) {
    if (from >= end) masked += message.slice(end, from) + by;
    end = Math.max(end, to);
  }
  return masked + message.slice(end);
}
