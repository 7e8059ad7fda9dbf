/** What a source is: its definition and the options of every source, and the checks of both. */

import { isIdText, type LaneOrder } from "../inbox/lane-key.ts";
import { choiceOption, functionOption, invalidOption, isRecord, numberOption } from "../internal/options.ts";
import type { EventFilter } from "./filter.ts";
import { isHeaderName, isKeptName, type Kept, type RequestHead } from "./headers.ts";
import type { Key, Keyring, KeyringProvider } from "./keys.ts";
import type { SourceAnswer, SourceEvents } from "./source.ts";

/** The highest `at`. One event with a huge sequence would make all later events of its lane late. */
export const HIGHEST = { position: 9_000_000_000_000, sequence: 10_000 } as const;
export const KIB = 1024;
export const DAY_MS = 86_400_000;
const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const MOST_SHOWN = 100;

/** The key that signed a delivery, and the time that is signed, epoch milliseconds; null if none is. Or why it was not verified. */
export type Verdict =
  | {
      readonly ok: true;
      readonly key: Key;
      readonly signedAt: number | null;
      /**
       * A text outside of the body that the signature covers, such as an id in a header. It is kept as `:proven`, cut after 1,024 characters.
       * With the body and the key it alone may decide an identity or a lane: others can be added to a captured delivery.
       */
      readonly proven?: string;
    }
  /** A word for logs and counters, such as `signature_mismatch`. */
  | { readonly ok: false; readonly code: string };

/** An event, or a word that says why the body is not one, such as `invalid_json`. */
export type Parsed<Event> =
  | { readonly ok: true; readonly event: Event }
  | { readonly ok: false; readonly code: string };

/** The bytes of an event. */
export interface EventBytes {
  readonly bytes: Uint8Array;
  /** Their SHA-256, in hex. */
  digest(): string;
}

/** Everything that the inbox knows of an event. From the body, `:proven` and the key alone, except what is only shown. */
export interface Place {
  /** 1 to 512 characters. */
  readonly type: string;
  /**
   * What makes two deliveries the same event, whatever their lane: 1 to 512 characters. Who could change it could suppress an event, or have it
   * handled twice. Left out only for an event in a lane by sequence: there lane, sequence and type are its identity.
   */
  readonly id?: string;
  /** Whose event it is, if its bytes say so. A key of another tenant does not cover it: 401. Default: the key's. */
  readonly tenant?: string | undefined;
  /** Which of the source's `kinds` it is. Default: it does not say, so every key covers it that has a secret. */
  readonly kind?: string | undefined;
  /**
   * Which lane it belongs to, 1 to 512 characters. The events of a lane are passed to handlers one at a time, in the order of the definition.
   * Null or left out: it is by itself.
   *
   * An id that is unique only within an account or a shop needs that owner in the name: `JSON.stringify([owner, id])`. Otherwise the events of
   * one owner are late, or wait, because of another's.
   */
  readonly lane?: string | null | undefined;
  /**
   * Its place in the lane: by position a whole number from 0 to 9,000,000,000,000, lower ones first; by sequence 0 to 10,000, without gaps. Null
   * or left out: it is by itself. Unused by arrival.
   */
  readonly at?: number | null | undefined;
  /** An id to search by, for an event by itself or in a lane by sequence. It takes no part in the identity. */
  readonly reference?: string | null | undefined;
  /** When it happened, epoch milliseconds. Default: when it was signed or accepted. */
  readonly occurredAt?: number | null | undefined;
  /** The person whom it is about, such as a phone number, to export and erase by. Where `reference` can be. */
  readonly about?: string | null | undefined;
}

/**
 * One provider's way to sign, write and name its events. Every function is synchronous and pure; `id` alone may be a random text, where each
 * delivery is a new event. After verification only the kept part of the request is left (`Kept`), from the first delivery on, because after a
 * restart there is nothing else.
 *
 * Before the signature is verified an exception is answered with 500. After it, the body is quarantined (`source_failed`), and replayed once
 * the code is fixed.
 */
export interface SourceDefinition<Event extends object> {
  /** The name of this kind of source, recorded in the inbox: `[a-z][a-z0-9-]{0,31}`. */
  readonly preset: string;
  /** Bytes of a body at most. 1,024 to 33,554,432 (32 MiB). Default 1,048,576 (1 MiB). */
  readonly maxBodyBytes?: number;
  /** How long the provider waits for an answer, milliseconds: 1,000 to 60,000. Default 10,000. With `ack: "handled"` it bounds the wait. */
  readonly answerMs?: number;
  /** How long after an event its provider may send it again, milliseconds: 0 (never) to 30 days. Identities are kept for a day more. */
  readonly lastRetryMs: number;
  /** How old or how far ahead a signed time may be, milliseconds. Default 300,000 both ways. Unused if no time is signed. */
  readonly toleranceMs?: { readonly past: number; readonly future: number };
  /**
   * What is stored of the request next to the body: lower-case names of headers, `?name` for one parameter of the query, `:query` for all of it,
   * `:path`. Each is cut after 1,024 characters, `:query` after 8,192. A query may hold a secret: name its parameters instead. Default: none.
   */
  readonly keep?: readonly string[];
  /**
   * Paths of the fields that logs, error messages and viewers may show, such as `data.object.id`: name ids, types, states and times, and nothing
   * that a person wrote. A path passes through lists. Each is shown only as a number, true, false, null, or a text of up to 255 letters,
   * digits and `_ . : / + -`. At most 100. Default: none. The type, the reference, the lane, and an identity that is not a digest are shown
   * in any case.
   */
  readonly shows?: readonly string[];
  /**
   * The headers that prove a delivery, as alternatives of lower-case names, such as `[["x-signature", "x-timestamp"]]`. A request that has all
   * headers of none of them gets 401 (`missing_signature`), and its body is not read, unless a kind is unsigned. Default: every body is read
   * before `verify` decides.
   */
  readonly signedBy?: readonly (readonly string[])[];
  /**
   * Names of the kinds of events that may have secrets of their own, or be accepted unsigned: lower-case words. `place` says the kind of an
   * event. Default: none.
   */
  readonly kinds?: readonly string[];
  /** The types that `on()` takes. Default: any. */
  readonly types?: readonly string[];
  /** Bytes of a secret, 1 to 64. Fewer are refused, unless it says `dangerouslyShort`. Default 1; fewer than 16 get a warning in any case. */
  readonly leastKeyBytes?: number;
  /**
   * The order of the events of a lane. `"arrival"` (default): as they come. `"position"`: by a number of which only the order counts, such as a
   * time; an event that comes after a higher one was passed to a handler is late. `"sequence"`: by a number without gaps, so a missing one is
   * waited for; the options `lane` and `position` are refused.
   */
  readonly order?: LaneOrder;
  /**
   * By position, what `at` can be compared with. `"rank"` (default): with others of this definition's own lane, such as the version of one object.
   * With the option `lane` events are then in the order of arrival. `"time"`: with any other, because it says when the event happened.
   */
  readonly atIs?: "time" | "rank";
  /** By sequence: that of a lane's first event. 0 to 10,000, or `"any"`: the first to arrive counts as the first. Default 1. */
  readonly firstSequence?: number | "any";
  /** By sequence: how long an event waits for a missing one, milliseconds, 0 to 24 h. Default: until its provider's last retry. */
  gapWait?(event: Event): number;
  /** The bytes of a key from the text of a secret. Default: its UTF-8 bytes. Throws for what is not a key. */
  key?(text: string): Uint8Array;
  /**
   * Finds the key that signed the body. The age of the signed time is checked afterwards; `checkAge` does it before the cost of an HMAC. For a
   * large body it is called several times, each with some of the keys.
   */
  verify(head: RequestHead, body: Uint8Array, keys: readonly Key[], circumstances: VerifyCircumstances): Verdict;
  parse(body: Uint8Array, kept: Kept): Parsed<Event>;
  place(event: Event, part: EventBytes, kept: Kept): Place;
  /** The answer to what was accepted. Default: 200 with the outcome as JSON. */
  readonly accepted?: SourceAnswer;
  /**
   * Answers an event that asks for an answer and is not stored, such as Slack's `url_verification`. Its signature matches. Null for all others.
   *
   * @param key - the key that signed it
   */
  handshake?(event: Event, kept: Kept, key: Key): SourceAnswer | null;
  /**
   * Answers a GET, such as the one with Meta's `hub.challenge`. No signature covers it: compare the secret in its query with `isSameSecret()`.
   * Null for one that does not prove who asks: it gets 401. Default: a GET gets 405.
   */
  challenge?(head: RequestHead, keys: readonly Key[]): SourceAnswer | null;
}

/** What `verify` needs to judge a signed time. */
export interface VerifyCircumstances {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Why a signed time (epoch milliseconds) is too old or too far ahead; null if it is neither. */
  checkAge(signedAt: number): "timestamp_too_old" | "timestamp_in_future" | null;
}

/**
 * The options of every source.
 *
 * @typeParam Event - what handlers receive
 */
export interface SourceOptions<Event extends object = never> {
  /** The secret as the provider shows it, a set of secrets, or a function that reads them. */
  readonly secrets: Keyring | KeyringProvider;
  /** Bytes of a body at most. 1,024 to 33,554,432 (32 MiB). Default: what the provider sends. */
  readonly maxBodyBytes?: number;
  /** How old or how far ahead a signed time may be. Milliseconds, 1 to 86,400,000. Default 300,000 both ways. */
  readonly toleranceMs?: { readonly past?: number; readonly future?: number };
  /**
   * Which events share a lane, and are handled one at a time and in order: a function that names the lane of an event, or returns null for an
   * event by itself. Null: all events are by themselves. Default: as the source says. **An event that fails holds all later ones of its lane
   * until it succeeds or is a dead letter, for hours.** So name what must be in order, such as one object, and not a customer or a shop. An id
   * that is unique only within an account needs that account in the name.
   *
   * The order is that of the option `position`; without it that of the source's positions if they are times, as those of Stripe and Shopify, and
   * otherwise the order of arrival. Refused for a source by sequence.
   */
  readonly lane?: ((event: Event, kept: Kept) => string | null) | null;
  /**
   * An event's place in its lane, a whole number from 0 to 9,000,000,000,000: lower ones are handled first, and one that comes after a higher one
   * is late. Null: the event is by itself. Default: as the source says. It needs lanes, the source's own or those of the option `lane`. Refused
   * for a source by sequence.
   */
  readonly position?: (event: Event, kept: Kept) => number | null;
  /**
   * How long events are held back so that one of a lower position can come first, milliseconds: 0 to 60,000. Default 0. More makes fewer
   * events late. It needs lanes by position, and excludes `ack: "handled"`.
   */
  readonly holdBackMs?: number;
  /** Returns false for an event that is not wanted: it is answered with 200, and never handled. Default: all are wanted. */
  readonly filter?: EventFilter<Event>;
}

/**
 * The types of events that a provider sends, where it may send any.
 *
 * @typeParam Event - any event
 * @typeParam ByType - the event of each type
 * @typeParam Late - what `onLate()` receives; `never` for a source without positions
 */
export interface OpenEvents<
  Event extends object,
  ByType extends object = Readonly<Record<string, Event>>,
  Late extends object = never,
> extends SourceEvents {
  readonly byType: ByType;
  readonly any: Event;
  readonly unknown: Event;
  readonly late: Late;
  readonly ref: never;
}

/** @throws SetupError */
export function checkEntryName(option: string, name: string): void {
  if (NAME.test(name)) return;
  throw invalidOption(option, "must have a name of a lower-case letter and up to 31 letters, digits and hyphens", name);
}

/** @throws SetupError */
export function checkDefinition<Event extends object>(definition: SourceDefinition<Event>): void {
  const { preset, maxBodyBytes, answerMs, lastRetryMs, accepted, keep = [], kinds = [], types = [] } = definition;
  checkEntryName("preset", preset);
  if (preset === "service")
    throw invalidOption("preset", "is the messaging service's: give your source another", preset);
  for (const name of ["verify", "parse", "place"] as const) {
    if (typeof definition[name] !== "function") throw invalidOption(name, "must be a function", definition[name]);
  }
  for (const name of ["key", "gapWait", "handshake", "challenge"] as const) functionOption(name, definition[name]);
  checkOrder(definition);
  if (accepted !== undefined && !isAnswer(accepted)) {
    const rule = "must be { status, body, contentType }: a status of 200 to 299, and a text or a value for JSON";
    throw invalidOption("accepted", rule, accepted);
  }
  numberOption("maxBodyBytes", maxBodyBytes, KIB, { min: KIB, max: 32 * KIB * KIB, unit: "bytes" });
  numberOption("answerMs", answerMs, 10_000, { min: 1_000, max: 60_000, unit: "ms" });
  numberOption("leastKeyBytes", definition.leastKeyBytes, 1, { min: 1, max: 64, unit: "bytes" });
  if (lastRetryMs === undefined)
    throw invalidOption("lastRetryMs", "must be given: 0 if the provider never sends again", lastRetryMs);
  numberOption("lastRetryMs", lastRetryMs, 0, { min: 0, max: 30 * DAY_MS, unit: "ms" });
  checkSignedBy(definition.signedBy);
  checkList("keep", keep, isKeptName, 'lower-case names of headers, "?name", ":query" or ":path"');
  checkList("kinds", kinds, (kind) => NAME.test(kind as string), "lower-case words, such as payments");
  checkList("types", types, isIdText, "types of events");
  checkList(
    "shows",
    definition.shows ?? [],
    isPath,
    `up to ${MOST_SHOWN} paths of fields, such as "data.id"`,
    MOST_SHOWN,
  );
}

function checkList(
  option: string,
  value: unknown,
  isValid: (each: unknown) => boolean,
  what: string,
  most: number = Number.POSITIVE_INFINITY,
): void {
  if (Array.isArray(value) && value.length <= most && value.every(isValid)) return;
  throw invalidOption(option, `must be a list of ${what}`, value);
}

/** What belongs to another order would have no effect. @throws SetupError */
export function checkOrder<Event extends object>(definition: SourceDefinition<Event>): void {
  const { firstSequence, gapWait, atIs } = definition;
  const order = choiceOption("order", definition.order, "arrival", ["arrival", "position", "sequence"]);
  choiceOption("atIs", atIs, "rank", ["time", "rank"]);
  if (firstSequence !== "any")
    numberOption("firstSequence", firstSequence, 1, { min: 0, max: HIGHEST.sequence, unit: '(or "any")' });
  for (const [name, value, needed] of [
    ["firstSequence", firstSequence, "sequence"],
    ["gapWait", gapWait, "sequence"],
    ["atIs", atIs, "position"],
  ] as const) {
    if (value !== undefined && order !== needed)
      throw invalidOption(name, `has no effect without order: "${needed}". Leave it out`, value);
  }
}

/** An empty list would refuse every request, and an empty alternative none. */
function checkSignedBy(signedBy: SourceDefinition<never>["signedBy"]): void {
  const isNames = (names: unknown) => Array.isArray(names) && names.length > 0 && names.every(isHeaderName);
  if (signedBy === undefined || (Array.isArray(signedBy) && signedBy.length > 0 && signedBy.every(isNames))) return;
  const rule = 'must hold lists of lower-case names of headers, such as [["x-signature", "x-timestamp"]]';
  throw invalidOption("signedBy", rule, signedBy);
}

/** What may follow `content-type:`. */
const CONTENT_TYPE = /^[!-~][ -~]{0,127}$/;

export function isAnswer(value: unknown): value is SourceAnswer {
  if (!isRecord(value)) return false;
  const { status = 200, body = "", contentType = "text/plain" } = value;
  const isStatus = Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 299;
  const isBody = typeof body === "string" || (typeof body === "object" && body !== null);
  return isStatus && isBody && typeof contentType === "string" && CONTENT_TYPE.test(contentType);
}

function isPath(value: unknown): boolean {
  return isIdText(value) && value.split(".").every((name) => name !== "");
}
