/** `defineSource()`: makes your own source, and all presets. */
import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { SetupError } from "../errors.ts";
import type { Released, StoredBody } from "../inbox/handlers.ts";
import { isIdText, type LaneKey } from "../inbox/lane-key.ts";
import type { NewEvent, NewQuarantine, QuarantineRecord } from "../inbox/record.ts";
import { sha256 } from "../internal/json.ts";
import {
  choiceOption,
  functionOption,
  invalidOption,
  isRecord,
  numberOption,
  refuseUnknownOptions,
} from "../internal/options.ts";
import { type EventFilter, filtered, refusalOf } from "./filter.ts";
import { type Kept, NOTHING_KEPT, readHeader } from "./headers.ts";
import type { KeyringSourceDeps } from "./keyring-provider.ts";
import {
  type Key,
  type SourceKey,
  type SourceKeyring,
  type SourceKeyringProvider,
  type SourceKeys,
  sourceKeyrings,
} from "./keys.ts";
import type {
  Circumstances,
  Claim,
  ConnectedSource,
  Reading,
  Refusal,
  RequestParts,
  SourceAnswer,
  SourceEvents,
  WebhookSource,
} from "./source.ts";

export type { EventFilter, Kept };

/** What stands before the body of a request. */
export interface RequestHead extends Kept {
  /** The query of the URL as it came, without the question mark. Empty if there is none. */
  readonly query: string;
}

/** The key that signed a delivery, and the time that is signed, epoch milliseconds; null if none is. Or why it was not verified. */
export type Verdict =
  | { readonly ok: true; readonly key: Key; readonly signedAt: number | null }
  /** A word for logs and counters, such as `signature_mismatch`. */
  | { readonly ok: false; readonly code: string };

/** An event, or a word that says why the body is not one, such as `invalid_json`. */
export type Parsed<Event> =
  | { readonly ok: true; readonly event: Event }
  | { readonly ok: false; readonly code: string };

/** What the inbox shows of an event. */
export interface Description {
  /** 1 to 512 characters. */
  readonly type: string;
  /** An id to search by. It takes no part in the identity. */
  readonly reference?: string | undefined;
  /** When it happened, epoch milliseconds. Default: when it was signed or accepted. */
  readonly occurredAt?: number | undefined;
}

/**
 * One provider's way to sign, write and name its events. Every function is synchronous and pure; `identify` alone may return a random text, where
 * each delivery is a new event. `parse`, `identify` and `describe` see only the headers in `keep`, from the first delivery on, because after a
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
   * Lower-case names of headers that are stored next to the body, each cut after 1,024 characters. `:query` names the query of the URL, which is
   * cut after 8,192. Default: none.
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
   * headers of none of them gets 401 (`missing_signature`), and its body is not read. Default: every body is read before `verify` decides.
   */
  readonly signedBy?: readonly (readonly string[])[];
  /** The bytes of a key from the text of a secret. Default: its UTF-8 bytes. Throws for what is not a key. */
  key?(text: string): Uint8Array;
  /**
   * Finds the key that signed the body. The age of the signed time is checked afterwards; `checkAge` does it before the cost of an HMAC. For a
   * large body it is called several times, each with some of the keys.
   */
  verify(head: RequestHead, body: Uint8Array, keys: readonly Key[], circumstances: VerifyCircumstances): Verdict;
  parse(body: Uint8Array, kept: Kept): Parsed<Event>;
  /**
   * What makes two deliveries the same event: 1 to 512 characters. From signed bytes only: who could change it could suppress an event, or
   * have it handled twice.
   *
   * @param digest - the hex SHA-256 of the body
   */
  identify(event: Event, kept: Kept, digest: () => string): string;
  describe(event: Event, kept: Kept): Description;
  /**
   * Which lane an event belongs to, 1 to 512 characters; null if it is by itself. From signed bytes only. The events of a lane are passed to
   * handlers one at a time: by `position` if there is one, otherwise in the order of arrival. Default: each event is by itself.
   *
   * An id that is unique only within an account or a shop needs that owner in the name: `JSON.stringify([owner, id])`. Otherwise the events of
   * one owner are late, or wait, because of another's.
   */
  lane?(event: Event, kept: Kept): string | null;
  /**
   * The event's place among those of its lane, a whole number from 0 to 9,000,000,000,000: lower ones are handled first. One that comes after
   * a higher one was passed to a handler goes to `onLate` only. Null if it has none: then it is by itself.
   */
  position?(event: Event, kept: Kept): number | null;
  /**
   * What a position can be compared with. `"rank"` (default): with others of this definition's own `lane`, such as the version of one object.
   * With the option `lane` events are then in the order of arrival. `"time"`: with any other, because it says when the event happened.
   */
  readonly positionIs?: "time" | "rank";
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
  readonly secrets: SourceKeyring | SourceKeyringProvider;
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
   * The order is that of the source's positions if they are times, as those of Stripe and Shopify, and otherwise the order of arrival.
   */
  readonly lane?: ((event: Event, kept: Kept) => string | null) | null;
  /**
   * How long events are held back so that one of a lower position can come first, milliseconds: 0 to 60,000. Default 0. More makes fewer
   * events late. It needs lanes by position, and excludes `ack: "handled"`.
   */
  readonly holdBackMs?: number;
  /** Returns false for an event that is not wanted: it is answered with 200, and never handled. Default: all are wanted. */
  readonly filter?: EventFilter<Event>;
}

/**
 * The events of a source whose types are open: any text may come. A misspelt type in `on()` cannot be refused.
 *
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

const SOURCE_OPTIONS = [
  "secrets",
  "maxBodyBytes",
  "toleranceMs",
  "lane",
  "holdBackMs",
  "filter",
] as const satisfies readonly (keyof SourceOptions)[];
const LONGEST_HOLD_BACK_MS = 60_000;
const HIGHEST_POSITION = 9_000_000_000_000;
const KIB = 1024;
const DAY_MS = 86_400_000;
const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const MOST_SHOWN = 100;
/** A kept header is stored with each event. */
const LONGEST_HEADER = 1_024;
/** Names the query of the URL in the list `keep`. No header has a colon in its name. */
export const QUERY = ":query";
/** Characters. */
export const LONGEST_QUERY = 8_192;

/**
 * Makes a source from its definition: a function that takes the secrets.
 *
 * @typeParam Event - what handlers receive
 * @typeParam ByType - the event of each type, for `on()`. Default: any type, with `Event`
 * @throws SetupError for a wrong definition; the function throws it for a wrong option
 *
 * @example
 * const acme = defineSource<AcmeEvent>({ preset: "acme", lastRetryMs: 3_600_000, verify, parse, identify, describe });
 * const receiver = createReceiver({ source: acme({ secrets }), store });
 */
export function defineSource<Event extends object, ByType extends object = Readonly<Record<string, Event>>>(
  definition: SourceDefinition<Event>,
): (options: SourceOptions<Event>) => WebhookSource<OpenEvents<Event, ByType, Event>> {
  checkDefinition(definition);
  return (options) => sourceOf<Event, OpenEvents<Event, ByType, Event>>(definition, options);
}

/**
 * @param others - names of the preset's own options, for the message about an unknown one
 * @throws SetupError for a wrong option
 */
export function sourceOf<Event extends object, Events extends SourceEvents>(
  given: SourceDefinition<Event>,
  options: SourceOptions<Event>,
  others: readonly string[] = [],
): WebhookSource<Events> {
  const { preset } = given;
  refuseUnknownOptions(preset, options, [...SOURCE_OPTIONS, ...others]);
  const { secrets } = options;
  const filter = functionOption("filter", options.filter);
  const definition = { ...given, ...laneOption(given, options) };
  const maxBodyBytes = numberOption("maxBodyBytes", options.maxBodyBytes, definition.maxBodyBytes ?? KIB * KIB, {
    min: KIB,
    max: 32 * KIB * KIB,
    unit: "bytes",
  });
  const tolerance = toleranceOf(definition, options.toleranceMs);
  const holdBackMs = holdBackOption(definition, options);
  return {
    preset,
    firstSequence: null,
    replayMs: Math.max(tolerance.past + tolerance.future, definition.lastRetryMs),
    connect: (entry, deps) =>
      connect({ definition, secrets, maxBodyBytes, tolerance, holdBackMs, filter, entry }, deps),
  };
}

/** A definition with the lanes that the application wants. */
type Laned<Event extends object> = Omit<SourceDefinition<Event>, "lane" | "position"> & Lanes<Event>;

interface Lanes<Event extends object> {
  readonly lane: NonNullable<SourceDefinition<Event>["lane"]> | null;
  readonly position: SourceDefinition<Event>["position"] | undefined;
}

function laneOption<Event extends object>(
  { lane: own, position, positionIs }: SourceDefinition<Event>,
  { lane }: SourceOptions<Event>,
): Lanes<Event> {
  if (lane === undefined) return { lane: own ?? null, position };
  if (lane === null) return { lane, position: undefined };
  functionOption("lane", lane);
  // A rank of one object says nothing about another one's.
  return { lane, position: positionIs === "time" ? position : undefined };
}

/** Whether an event can come after one of a higher position. */
function isByPosition<Event extends object>({ lane, position }: Laned<Event>): boolean {
  return lane !== null && position !== undefined;
}

function holdBackOption<Event extends object>(definition: Laned<Event>, { holdBackMs }: SourceOptions<Event>): number {
  const ms = numberOption("holdBackMs", holdBackMs, 0, { min: 0, max: LONGEST_HOLD_BACK_MS, unit: "ms" });
  if (ms === 0 || isByPosition(definition)) return ms;
  const rule = `has no effect: events of ${definition.preset} are not in order by position here. Leave it out`;
  throw invalidOption("holdBackMs", rule, holdBackMs);
}

type Tolerance = Readonly<Record<"past" | "future", number>>;

interface Parts<Event extends object> {
  readonly definition: Laned<Event>;
  readonly secrets: SourceOptions["secrets"];
  readonly holdBackMs: number;
  readonly filter: EventFilter<Event> | undefined;
  readonly maxBodyBytes: number;
  readonly tolerance: Tolerance;
  /** The name of the entry. */
  readonly entry: string;
}

/** The headers alone decide nothing. */
interface Claimed extends Claim {
  readonly timestamp: null;
  readonly head: RequestHead;
}

interface Match {
  readonly key: SourceKey;
  readonly signedAt: number | null;
}

function connect<Event extends object>(
  { definition, secrets, maxBodyBytes, tolerance, holdBackMs, filter, entry }: Parts<Event>,
  deps: KeyringSourceDeps,
): ConnectedSource<SourceKeys, Claimed, Match> {
  if (secrets === undefined)
    throw new SetupError("invalid_secret", `Option "secrets" of ${definition.preset} is missing.`);
  // One secret for all: then a tenant is only a name, which anyone could change to have an event handled twice.
  const hasTenants = typeof secrets === "function";
  const refuses = refusalOf(filter, entry, deps);
  const decode = definition.key?.bind(definition) ?? ((text: string) => Buffer.from(text));
  const checkAge = (signedAt: number, exactly: number) => {
    // Times in whole seconds are compared in whole seconds, as providers' own libraries do.
    const now = signedAt % 1000 === 0 ? Math.floor(exactly / 1000) * 1000 : exactly;
    if (now - signedAt > tolerance.past) return "timestamp_too_old";
    return signedAt - now > tolerance.future ? "timestamp_in_future" : null;
  };
  return {
    preset: definition.preset,
    shows: definition.shows ?? [],
    isService: false,
    types: { known: null, order: isByPosition(definition) ? "position" : null, holdBackMs },
    maxBodyBytes,
    answerMs: definition.answerMs ?? 10_000,
    keyrings: sourceKeyrings(secrets, decode, deps),
    accepted: definition.accepted ?? null,
    check(request): Claimed | Refusal {
      const head = new Head(request);
      return isProven(definition, head) ? { ok: true, timestamp: null, head } : UNPROVEN;
    },
    refuse: () => null,
    match({ head }, body, { keys }, now): Match | Refusal | null {
      const live = liveAt(keys, now);
      const verdict = verdictOf(definition, head, body, live, {
        now,
        checkAge: (signedAt) => checkAge(signedAt, now),
      });
      if (!verdict.ok) return verdict.code === "signature_mismatch" ? null : { ok: false, code: codeOf(verdict.code) };
      const { signedAt } = verdict;
      const key = live.find((each) => each === verdict.key);
      if (key === undefined) throw broken("verify", definition.preset, "returned a key that it was not given");
      if (signedAt !== null && !isEpochMs(signedAt))
        throw broken("verify", definition.preset, "returned a signedAt that is not epoch milliseconds or null");
      const expired = signedAt === null ? null : checkAge(signedAt, now);
      return expired === null ? { key, signedAt } : { ok: false, code: expired };
    },
    ...(definition.challenge !== undefined && {
      challenge: (request: RequestParts, { keys }: SourceKeys) =>
        challengeAnswer(definition, new Head(request), liveAt(keys, deps.clock.now())),
    }),
    read({ head }, { key, signedAt }, body, circumstances): Reading {
      const owner = { source: entry, tenant: (hasTenants ? circumstances.tenant : null) ?? null };
      // Only what is stored, so that a first delivery reads like one after a restart.
      const kept = keptFrom(keptText(definition, head));
      const { now, trace } = circumstances;
      const read = readBody(definition, owner, body, kept, { signedAt, now, trace, holdBackMs, key });
      if (read.kind === "event") {
        const { event, stored } = read;
        const toStore = () => (refuses?.(event, kept) ? filtered(stored) : stored);
        return { kind: "event", slot: key.slot, event, toStore };
      }
      if (read.kind === "handshake") return { kind: "handshake", slot: key.slot, answer: read.answer };
      const quarantine: NewQuarantine = {
        reason: read.code,
        slot: key.slot,
        signer: `${entry}:${key.signer}`,
        ...owner,
        scope: "any",
        signedAt: signedAt ?? now,
        digest: hash("sha256", Buffer.concat([Buffer.from(JSON.stringify(owner)), body]), "buffer"),
        raw: body,
        trace,
        head: kept.text ?? undefined,
        untimed: signedAt === null ? true : undefined,
      };
      return { kind: "no_event", quarantine };
    },
    reread: ({ raw, head }: StoredBody) => (raw === null ? null : eventIn(definition, raw, head)),
    release(row: QuarantineRecord): Released {
      const { raw, head, trace, source, tenant } = row;
      if (raw === null) return { ok: false, reason: "body_pruned" };
      const signedAt = row.untimed ? null : row.signedAt;
      const circumstances = { signedAt, now: row.signedAt, trace, holdBackMs, key: null };
      const read = readBody(definition, { source, tenant }, raw, keptFrom(head), circumstances);
      if (read.kind === "event") return { ok: true, event: read.stored };
      const code = read.kind === "no_event" ? read.code : FAILED.code;
      const message = `The body is still not an event for the source "${entry}" (${code}).`;
      return { ok: false, reason: "invalid_event", message };
    },
  };
}

const UNPROVEN: Refusal = { ok: false, code: "missing_signature" };

/** Whether the head carries what a signature needs. An empty header proves nothing. */
function isProven({ signedBy }: Pick<SourceDefinition<object>, "signedBy">, head: RequestHead): boolean {
  return signedBy === undefined || signedBy.some((names) => names.every((name) => (head.header(name) ?? "") !== ""));
}

function liveAt(keys: readonly SourceKey[], now: number): readonly SourceKey[] {
  return keys.filter(({ validUntil }) => validUntil > now);
}

/** The event in a stored body. Null if the definition cannot read it now: it stays as a dead letter, and is replayed once the code is fixed. */
function eventIn<Event extends object>(definition: Laned<Event>, raw: Uint8Array, head: string | null): Event | null {
  try {
    const parsed = definition.parse(raw, keptFrom(head));
    return parsed.ok ? parsed.event : null;
  } catch {
    return null;
  }
}

type Read<Event extends object> =
  | { readonly kind: "event"; readonly event: Event; readonly stored: NewEvent }
  | { readonly kind: "no_event"; readonly code: string }
  | { readonly kind: "handshake"; readonly answer: SourceAnswer };

/** Parses and places a body whose signature matches. Never throws. */
function readBody<Event extends object>(
  definition: Laned<Event>,
  owner: Owner,
  body: Uint8Array,
  kept: Kept & { readonly text: string | null },
  { signedAt, now, trace, holdBackMs, key }: ReadCircumstances,
): Read<Event> {
  try {
    const parsed = definition.parse(body, kept);
    if (!parsed.ok) return { kind: "no_event", code: codeOf(parsed.code) };
    const { event } = parsed;
    const answer = key === null ? null : (definition.handshake?.(event, kept, key) ?? null);
    if (answer !== null) return isAnswer(answer) ? { kind: "handshake", answer } : FAILED;
    const digest = sha256(body);
    const ownId = definition.identify(event, kept, () => digest.toString("hex"));
    const { type, reference, occurredAt } = definition.describe(event, kept);
    const texts = [ownId, type, ...(owner.tenant === null ? [] : [owner.tenant])];
    if (typeof event !== "object" || event === null || !texts.every(isIdText)) return FAILED;
    const place = placeOf(definition, event, kept);
    if (place === null) return FAILED;
    const { name, order, sequence } = place;
    const at = signedAt ?? now;
    const stored: NewEvent = {
      lane: { ...owner, name, order },
      ownId,
      sequence,
      eventType: type,
      occurredAt: Number.isSafeInteger(occurredAt) ? (occurredAt as number) : at,
      signedAt: at,
      gapWaitMs: order === "position" ? holdBackMs : 0,
      digest,
      raw: body,
      trace,
      peer: null,
      // A lane of several events has no reference of its own.
      externalReference: order === null && isIdText(reference) ? reference : null,
      head: kept.text ?? undefined,
      untimed: signedAt === null ? true : undefined,
      isSame: (other, head) => isDeepStrictEqual(eventIn(definition, other, head), event),
    };
    return { kind: "event", event, stored };
  } catch {
    return FAILED;
  }
}

interface ReadCircumstances extends Pick<Circumstances, "now" | "trace"> {
  /** Null if none is. */
  readonly signedAt: number | null;
  readonly holdBackMs: number;
  /** The key that signed it. Null for a body that is replayed from the quarantine: nobody waits for an answer. */
  readonly key: Key | null;
}

/** Whose a delivery is. */
type Owner = Pick<LaneKey, "source" | "tenant">;

type Place = Pick<LaneKey, "name" | "order"> & { readonly sequence: number };

const ALONE: Place = { name: null, order: null, sequence: 0 };

/** Where an event belongs. Null if the definition does not say it as it must. */
function placeOf<Event extends object>(definition: Laned<Event>, event: Event, kept: Kept): Place | null {
  const name = definition.lane?.(event, kept) ?? null;
  if (name === null) return ALONE;
  if (!isIdText(name)) return null;
  if (definition.position === undefined) return { name, order: "arrival", sequence: 0 };
  const position = definition.position(event, kept);
  if (position === null) return ALONE;
  const isValid = Number.isSafeInteger(position) && position >= 0 && position <= HIGHEST_POSITION;
  // Without the sign of -0.
  return isValid ? { name, order: "position", sequence: Math.abs(position) } : null;
}

const FAILED = { kind: "no_event", code: "source_failed" } as const;
const CODE = /^[a-z][a-z0-9_]{0,63}$/;

/** A code of a definition, as it may stand in logs and in the names of counters. */
function codeOf(code: unknown): string {
  return typeof code === "string" && CODE.test(code) ? code : FAILED.code;
}

function verdictOf<Event extends object>(
  definition: Pick<SourceDefinition<Event>, "preset" | "verify">,
  ...given: Parameters<SourceDefinition<Event>["verify"]>
): Verdict {
  try {
    return definition.verify(...given);
  } catch (error) {
    throw broken("verify", definition.preset, "threw", error);
  }
}

/** Answered with 500. The cause may quote the request, and is not logged. */
function broken(name: "verify" | "challenge", preset: string, what: string, cause?: unknown): SetupError {
  return new SetupError("source_failed", `${name}() of the source ${preset} ${what}.`, { cause });
}

/** @throws SetupError if the definition's own function fails */
function challengeAnswer(
  definition: Pick<SourceDefinition<object>, "preset" | "challenge">,
  head: RequestHead,
  keys: readonly Key[],
): SourceAnswer | null {
  let answer: SourceAnswer | null;
  try {
    answer = definition.challenge?.(head, keys) ?? null;
  } catch (error) {
    throw broken("challenge", definition.preset, "threw", error);
  }
  if (answer === null || isAnswer(answer)) return answer;
  throw broken("challenge", definition.preset, "returned what is not an answer");
}

/** What may follow `content-type:`. */
const CONTENT_TYPE = /^[!-~][ -~]{0,127}$/;

function isAnswer(value: unknown): value is SourceAnswer {
  if (!isRecord(value)) return false;
  const { status = 200, body = "", contentType = "text/plain" } = value;
  const isStatus = Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 299;
  const isBody = typeof body === "string" || (typeof body === "object" && body !== null);
  return isStatus && isBody && typeof contentType === "string" && CONTENT_TYPE.test(contentType);
}

/** A class, because one is made for each delivery. */
class Head implements RequestHead {
  readonly #request: RequestParts;

  constructor(request: RequestParts) {
    this.#request = request;
  }

  header(name: string): string | undefined {
    return name === QUERY ? this.query || undefined : readHeader(this.#request.headers, name);
  }

  get query(): string {
    return queryIn(this.#request.url ?? "");
  }
}

/** The query of a path or a URL, without the question mark. Empty if there is none. */
export function queryIn(url: string): string {
  const [target = ""] = url.split("#", 1);
  const mark = target.indexOf("?");
  return mark === -1 ? "" : target.slice(mark + 1);
}

function isEpochMs(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function keptText({ keep = [] }: Pick<SourceDefinition<object>, "keep">, head: RequestHead): string | null {
  const kept: [string, string][] = [];
  for (const name of keep) {
    const longest = name === QUERY ? LONGEST_QUERY : LONGEST_HEADER;
    const value = head.header(name)?.slice(0, longest).toWellFormed();
    if (value !== undefined) kept.push([name, value]);
  }
  return kept.length === 0 ? null : JSON.stringify(Object.fromEntries(kept));
}

const NOTHING = { ...NOTHING_KEPT, text: null };

function keptFrom(text: string | null): Kept & { readonly text: string | null } {
  if (text === null) return NOTHING;
  const kept = JSON.parse(text) as Readonly<Record<string, string>>;
  return { text, header: (name) => (Object.hasOwn(kept, name) ? kept[name] : undefined) };
}

function isPath(value: unknown): boolean {
  return isIdText(value) && value.split(".").every((name) => name !== "");
}

function toleranceOf(
  { toleranceMs: usual = { past: 300_000, future: 300_000 } }: Pick<SourceDefinition<object>, "toleranceMs">,
  given: SourceOptions["toleranceMs"],
): Tolerance {
  if (given !== undefined) refuseUnknownOptions("toleranceMs", given, ["past", "future"]);
  const bounds = { min: 1, max: DAY_MS, unit: "ms" };
  return {
    past: numberOption("toleranceMs.past", given?.past, usual.past, bounds),
    future: numberOption("toleranceMs.future", given?.future, usual.future, bounds),
  };
}

/** @throws SetupError */
export function checkEntryName(option: string, name: string): void {
  if (NAME.test(name)) return;
  throw invalidOption(option, "must have a name of a lower-case letter and up to 31 letters, digits and hyphens", name);
}

/** @throws SetupError */
export function checkDefinition<Event extends object>(definition: SourceDefinition<Event>): void {
  const { preset, maxBodyBytes, answerMs, lastRetryMs, keep = [], shows = [], signedBy, accepted } = definition;
  checkEntryName("preset", preset);
  if (preset === "service")
    throw invalidOption("preset", "is the messaging service's: give your source another", preset);
  for (const name of ["verify", "parse", "identify", "describe"] as const) {
    if (typeof definition[name] !== "function") throw invalidOption(name, "must be a function", definition[name]);
  }
  for (const name of ["key", "lane", "position", "handshake", "challenge"] as const)
    functionOption(name, definition[name]);
  const positionIs = choiceOption("positionIs", definition.positionIs, "rank", ["time", "rank"]);
  if (definition.position !== undefined && definition.lane === undefined && positionIs === "rank") {
    const rule =
      'needs "lane", within which positions are compared, or positionIs: "time" if it says when an event happened';
    throw invalidOption("position", rule, definition.position);
  }
  if (accepted !== undefined && !isAnswer(accepted)) {
    const rule = "must be { status, body, contentType }: a status of 200 to 299, and a text or a value for JSON";
    throw invalidOption("accepted", rule, accepted);
  }
  numberOption("maxBodyBytes", maxBodyBytes, KIB, { min: KIB, max: 32 * KIB * KIB, unit: "bytes" });
  numberOption("answerMs", answerMs, 10_000, { min: 1_000, max: 60_000, unit: "ms" });
  if (lastRetryMs === undefined)
    throw invalidOption("lastRetryMs", "must be given: 0 if the provider never sends again", lastRetryMs);
  numberOption("lastRetryMs", lastRetryMs, 0, { min: 0, max: 30 * DAY_MS, unit: "ms" });
  if (signedBy !== undefined) checkSignedBy(signedBy);
  for (const name of keep) {
    if (name !== QUERY && !HEADER_NAME.test(name))
      throw invalidOption("keep", 'must hold lower-case names of headers, or ":query"', name);
  }
  const isPaths = Array.isArray(shows) && shows.length <= MOST_SHOWN && shows.every(isPath);
  if (!isPaths)
    throw invalidOption("shows", `must be a list of up to ${MOST_SHOWN} paths of fields, such as "data.id"`, shows);
}

/** An empty list would refuse every request, and an empty alternative none. */
function checkSignedBy(signedBy: unknown): void {
  const isNames = (names: unknown) =>
    Array.isArray(names) &&
    names.length > 0 &&
    names.every((name) => typeof name === "string" && HEADER_NAME.test(name));
  if (Array.isArray(signedBy) && signedBy.length > 0 && signedBy.every(isNames)) return;
  const rule = 'must hold lists of lower-case names of headers, such as [["x-signature", "x-timestamp"]]';
  throw invalidOption("signedBy", rule, signedBy);
}
