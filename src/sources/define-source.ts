/** `defineSource()`: makes every source, the messaging service and your own. */
import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import { SetupError } from "../errors.ts";
import { boundedWait, LONGEST_WAIT_MS } from "../inbox/gap.ts";
import type { Released, StoredBody, StoredReader } from "../inbox/handlers.ts";
import { isIdText, type LaneOrder } from "../inbox/lane-key.ts";
import type { NewEvent, NewQuarantine, QuarantineRecord } from "../inbox/record.ts";
import type { SequenceRules } from "../inbox/store.ts";
import { sha256 } from "../internal/json.ts";
import { functionOption, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { isBuilding } from "../internal/process.ts";
import {
  checkDefinition,
  DAY_MS,
  HIGHEST,
  isAnswer,
  KIB,
  type OpenEvents,
  type Place,
  type SourceDefinition,
  type SourceOptions,
  type Verdict,
  type VerifyCircumstances,
} from "./definition.ts";
import { type EventFilter, filtered, refusalOf } from "./filter.ts";
import { keptFrom, keptText, type RequestHead } from "./headers.ts";
import { type KeyringSource, keyringsFrom } from "./keyring-provider.ts";
import { type Claims, covering, type Grant, type Key, type SourceKey } from "./keys.ts";
import type { SecretRules } from "./secret.ts";
import type {
  Circumstances,
  ConnectDeps,
  ConnectedSource,
  Match,
  Reading,
  Refusal,
  SourceAnswer,
  SourceEvents,
  Wanted,
  WebhookSource,
} from "./source.ts";

const COMMON_OPTIONS = [
  "secrets",
  "maxBodyBytes",
  "toleranceMs",
  "filter",
] as const satisfies readonly (keyof SourceOptions)[];
const LANE_OPTIONS = ["lane", "position", "holdBackMs"] as const satisfies readonly (keyof SourceOptions)[];
const LONGEST_HOLD_BACK_MS = 60_000;
/** A provider's last retry may come a little later than it says. */
const RETRY_MARGIN_MS = 4 * 60_000;

/**
 * Makes a source from its definition: a function that takes the secrets.
 *
 * @typeParam Event - what handlers receive
 * @typeParam ByType - the event of each type, for `on()`. Default: any type, with `Event`
 * @throws SetupError for a wrong definition; the function throws it for a wrong option
 *
 * @example
 * const acme = defineSource<AcmeEvent>({ preset: "acme", lastRetryMs: 3_600_000, verify, parse, place });
 * const receiver = createReceiver({ source: acme({ secrets }), store });
 */
export function defineSource<Event extends object, ByType extends object = Readonly<Record<string, Event>>>(
  definition: SourceDefinition<Event>,
): (options: SourceOptions<Event>) => WebhookSource<OpenEvents<Event, ByType, Event>> {
  checkDefinition(definition);
  return (options) => sourceOf<Event, OpenEvents<Event, ByType, Event>>(definition, options);
}

/** What a preset adds to a definition. */
export interface PresetParts {
  /** Names of its own options, for the message about an unknown one. */
  readonly options?: readonly string[];
  /** Where its keys come from. Default: a keyring, or a function. */
  keyrings?(rules: SecretRules, deps: ConnectDeps): KeyringSource;
  /** As `ConnectedSource.lookUp`. */
  lookUp?(ref: unknown, entry: string): readonly Wanted[];
  /** What `verify` would refuse by the headers alone: then neither secrets nor body are read. Null if they may be right. */
  refuse?(head: RequestHead, circumstances: VerifyCircumstances): Refusal | null;
}

/** @throws SetupError for a wrong option */
export function sourceOf<Event extends object, Events extends SourceEvents>(
  given: SourceDefinition<Event>,
  options: SourceOptions<Event>,
  parts: PresetParts = {},
): WebhookSource<Events> {
  const { preset } = given;
  const lanes = given.order === "sequence" ? [] : LANE_OPTIONS;
  refuseUnknownOptions(preset, options, [...new Set([...COMMON_OPTIONS, ...lanes, ...(parts.options ?? [])])]);
  const { secrets } = options;
  if (secrets === undefined && !isBuilding()) throw noSecrets();
  const filter = functionOption("filter", options.filter);
  const definition = laned(given, options);
  const maxBodyBytes = numberOption("maxBodyBytes", options.maxBodyBytes, definition.maxBodyBytes ?? KIB * KIB, {
    min: KIB,
    max: 32 * KIB * KIB,
    unit: "bytes",
  });
  const tolerance = toleranceOf(definition, options.toleranceMs);
  const holdBackMs = holdBackOption(definition, options);
  return {
    preset,
    replayMs: Math.max(tolerance.past + tolerance.future, definition.lastRetryMs),
    connect(entry, deps) {
      const keyrings = parts.keyrings ?? ((rules, given) => keyringsFrom(secrets, rules, given));
      return connect({ definition, keyrings, maxBodyBytes, tolerance, holdBackMs, filter, entry, parts }, deps);
    },
  };
}

function noSecrets(): SetupError {
  const message = 'Option "secrets" is missing: pass the webhook signing secret.';
  return new SetupError("invalid_secret", message, { fields: { option: "secrets" } });
}

/** A definition with the lanes that the application wants. */
type Laned<Event extends object> = Omit<SourceDefinition<Event>, "order"> & {
  /** Null: all events are by themselves. */
  readonly order: LaneOrder | null;
};

function laned<Event extends object>(
  definition: SourceDefinition<Event>,
  { lane, position }: SourceOptions<Event>,
): Laned<Event> {
  const { order = "arrival", atIs } = definition;
  functionOption("position", position);
  if (lane === null || (lane === undefined && position === undefined)) {
    if (position !== undefined)
      throw invalidOption("position", "has no effect with lane: null. Leave one of them out", position);
    return { ...definition, order: lane === null ? null : order };
  }
  functionOption("lane", lane);
  if (lane === undefined && definition.order === undefined)
    throw invalidOption("position", `needs the option "lane": ${definition.preset} has no lanes of its own`, position);
  const place: Laned<Event>["place"] = (event, part, kept) => {
    const own = definition.place(event, part, kept);
    return {
      ...own,
      lane: lane === undefined ? own.lane : lane(event, kept),
      at: position === undefined ? own.at : position(event, kept),
    };
  };
  // A rank of one object says nothing about another one's.
  const isComparable = position !== undefined || (order === "position" && atIs === "time");
  return { ...definition, place, order: isComparable ? "position" : "arrival" };
}

function holdBackOption<Event extends object>(definition: Laned<Event>, { holdBackMs }: SourceOptions<Event>): number {
  const ms = numberOption("holdBackMs", holdBackMs, 0, { min: 0, max: LONGEST_HOLD_BACK_MS, unit: "ms" });
  if (ms === 0 || definition.order === "position") return ms;
  const rule = `has no effect: events of ${definition.preset} are not in order by position here. Leave it out`;
  throw invalidOption("holdBackMs", rule, holdBackMs);
}

/** How old and how far ahead a signed time may be, milliseconds. */
export type Tolerance = Readonly<Record<"past" | "future", number>>;

interface Parts<Event extends object> {
  readonly definition: Laned<Event>;
  readonly keyrings: NonNullable<PresetParts["keyrings"]>;
  readonly holdBackMs: number;
  readonly filter: EventFilter<Event> | undefined;
  readonly maxBodyBytes: number;
  readonly tolerance: Tolerance;
  /** The name of the entry. */
  readonly entry: string;
  readonly parts: PresetParts;
}

function connect<Event extends object>(
  { definition, keyrings, maxBodyBytes, tolerance, holdBackMs, filter, entry, parts }: Parts<Event>,
  deps: ConnectDeps,
): ConnectedSource {
  const { kinds = [], order } = definition;
  const refuses = refusalOf(filter, entry, deps);
  const rules: SecretRules = {
    kinds,
    leastBytes: definition.leastKeyBytes ?? 1,
    mayBeUnsigned: deps.onlySigned !== true,
    decode: definition.key?.bind(definition) ?? ((text: string) => Buffer.from(text)),
  };
  const { lookUp } = parts;
  return {
    ...storedReader(definition, entry, holdBackMs),
    types: { known: definition.types ?? null, order: order === "arrival" ? null : order, holdBackMs },
    maxBodyBytes,
    answerMs: definition.answerMs ?? 10_000,
    keyrings: keyrings(rules, deps),
    hasKinds: kinds.length > 0,
    accepted: definition.accepted ?? null,
    ...(lookUp !== undefined && { lookUp: (ref: unknown) => lookUp(ref, entry) }),
    refuse(head, keys): Refusal | null {
      const now = deps.clock.now();
      const refused =
        keys === null ? parts.refuse?.(head, { now, checkAge: (at) => checkAge(at, now, tolerance) }) : null;
      if (refused) return refused;
      if (isProven(definition, head)) return null;
      const mayBeUnsigned = keys === null ? kinds.length > 0 : keys.keys.some(({ isUnsigned }) => isUnsigned);
      return mayBeUnsigned ? null : UNPROVEN;
    },
    match(head, body, keys, now): Match | Refusal | null {
      const live = liveAt(keys, now);
      const check = (signedAt: number) => checkAge(signedAt, now, tolerance);
      const verdict = verdictOf(definition, head, body, live, { now, checkAge: check });
      if (!verdict.ok) return verdict.code === "signature_mismatch" ? null : { ok: false, code: codeOf(verdict.code) };
      const { signedAt, proven } = verdict;
      const key = live.find((each) => each === verdict.key);
      if (key === undefined) throw broken("verify", definition.preset, "returned a key that it was not given");
      if (signedAt !== null && !isEpochMs(signedAt))
        throw broken("verify", definition.preset, "returned a signedAt that is not epoch milliseconds or null");
      const expired = signedAt === null ? null : check(signedAt);
      if (expired !== null) return { ok: false, code: expired };
      return { ok: true, key, signedAt, ...(proven !== undefined && { proven }) };
    },
    ...(definition.challenge !== undefined && {
      challenge: (head: RequestHead, keys: readonly SourceKey[]) =>
        challengeAnswer(definition, head, liveAt(keys, deps.clock.now())),
    }),
    read(head, { key, signedAt, proven }, body, { now, trace }: Circumstances): Reading | null {
      // Only what is stored, so that a first delivery reads like one after a restart.
      const kept = keptText(definition.keep ?? [], head, proven);
      const grantFor = (claims: Claims) => covering(key.grants, claims, now);
      const read = readBody(definition, entry, body, kept, { signedAt, now, trace, holdBackMs, key, grantFor });
      if (read.kind === "uncovered") return null;
      if (read.kind === "handshake") return { kind: "handshake", slot: key.slot, answer: read.answer };
      if (read.kind === "event") {
        const { event, stored, grant, isOfKey } = read;
        const toStore = () => (refuses?.(event, keptFrom(kept)) ? filtered(stored) : stored);
        return { kind: "event", slot: grant.slot, event, isOfKey, toStore };
      }
      const grant = grantFor({});
      if (grant === null) return null;
      const signed = { key, grant, now, signedAt, trace, kept };
      return { kind: "no_event", quarantine: quarantineOf(entry, body, read.code, signed) };
    },
  };
}

/** A correctly signed body, with what to keep of its delivery. */
interface Signed extends Circumstances {
  readonly key: SourceKey;
  readonly grant: Grant;
  readonly signedAt: number | null;
  readonly kept: string | null;
}

function quarantineOf(
  source: string,
  raw: Uint8Array,
  reason: string,
  { key, grant, now, signedAt, trace, kept }: Signed,
): NewQuarantine {
  const { tenant } = grant;
  const kinds = kindsOf(key.grants.filter((each) => each.validUntil > now && each.tenant === tenant));
  // A body that another secret signed before must not take the place of one that this secret may vouch for.
  const whose = Buffer.from(JSON.stringify([source, tenant, kinds]));
  return {
    reason,
    slot: grant.slot,
    signer: `${source}:${key.signer}`,
    source,
    tenant,
    kinds,
    signedAt: signedAt ?? now,
    digest: sha256(Buffer.concat([whose, raw])),
    raw,
    trace,
    head: kept ?? undefined,
    untimed: signedAt === null ? true : undefined,
  };
}

/** The kinds of events that grants cover together. Empty: all. */
function kindsOf(grants: readonly Grant[]): readonly string[] {
  const kinds = grants.map(({ kind }) => kind);
  return kinds.includes(null) ? [] : [...new Set(kinds.filter((kind) => kind !== null))].sort();
}

/** The grants under which a quarantined body was kept. */
function grantsOf({ slot, tenant, kinds }: QuarantineRecord): readonly Grant[] {
  const place = { slot: slot as Grant["slot"], index: 0, tenant, validUntil: Number.POSITIVE_INFINITY };
  return kinds.length === 0 ? [{ ...place, kind: null }] : kinds.map((kind) => ({ ...place, kind }));
}

/** Reads what a source stored, without secrets. */
export function storedReader<Event extends object>(
  definition: Laned<Event>,
  entry: string,
  holdBackMs: number,
): StoredReader {
  return {
    preset: definition.preset,
    shows: definition.shows ?? [],
    sequence: definition.order === "sequence" ? sequenceRules(definition) : null,
    reread: ({ raw, head }: StoredBody) => (raw === null ? null : eventIn(definition, raw, head)),
    release(row: QuarantineRecord): Released {
      const { raw, head, trace, source } = row;
      if (raw === null) return { ok: false, reason: "body_pruned" };
      const grants = grantsOf(row);
      const read = readBody(definition, source, raw, head, {
        signedAt: row.untimed ? null : row.signedAt,
        now: row.signedAt,
        trace,
        holdBackMs,
        key: null,
        grantFor: (claims) => covering(grants, claims, row.signedAt),
      });
      if (read.kind === "event") return { ok: true, event: read.stored };
      if (read.kind === "uncovered") return invalidEvent(UNCOVERED);
      const code = read.kind === "no_event" ? read.code : FAILED.code;
      return invalidEvent(`The body is still not an event for the source "${entry}" (${code}).`);
    },
  };
}

const UNCOVERED =
  "The secret that signed this body does not cover the event in it: it is for another tenant or kind of events.";

function invalidEvent(message: string): Released {
  return { ok: false, reason: "invalid_event", message };
}

function sequenceRules<Event extends object>({ firstSequence = 1, lastRetryMs }: Laned<Event>): SequenceRules {
  return { firstSequence, lastRetryMs: lastRetryMs + RETRY_MARGIN_MS };
}

const UNPROVEN: Refusal = { ok: false, code: "missing_signature" };

/** Whether the head carries what a signature needs. An empty header proves nothing. */
function isProven({ signedBy }: Pick<SourceDefinition<object>, "signedBy">, head: RequestHead): boolean {
  return signedBy === undefined || signedBy.some((names) => names.every((name) => (head.header(name) ?? "") !== ""));
}

function liveAt(keys: readonly SourceKey[], now: number): readonly SourceKey[] {
  return keys.every(({ validUntil }) => validUntil > now) ? keys : keys.filter(({ validUntil }) => validUntil > now);
}

/** Why a signed time is too old or too far ahead; null if it is neither. All in milliseconds. */
export function checkAge(
  signedAt: number,
  exactly: number,
  tolerance: Tolerance,
): "timestamp_too_old" | "timestamp_in_future" | null {
  // Times in whole seconds are compared in whole seconds, as providers' own libraries do.
  const now = signedAt % 1000 === 0 ? Math.floor(exactly / 1000) * 1000 : exactly;
  if (now - signedAt > tolerance.past) return "timestamp_too_old";
  return signedAt - now > tolerance.future ? "timestamp_in_future" : null;
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
  | {
      readonly kind: "event";
      readonly event: Event;
      readonly stored: NewEvent;
      readonly grant: Grant;
      readonly isOfKey: boolean;
    }
  | { readonly kind: "no_event"; readonly code: string }
  /** The key does not cover it. */
  | { readonly kind: "uncovered" }
  | { readonly kind: "handshake"; readonly answer: SourceAnswer };

interface ReadCircumstances extends Circumstances {
  /** Null if none is. */
  readonly signedAt: number | null;
  readonly holdBackMs: number;
  /** The key that signed it. Null for a body that is replayed from the quarantine: nobody waits for an answer. */
  readonly key: Key | null;
  grantFor(claims: Claims): Grant | null;
}

/** Parses and places a body whose signature matches. Never throws. */
function readBody<Event extends object>(
  definition: Laned<Event>,
  source: string,
  body: Uint8Array,
  head: string | null,
  { signedAt, now, trace, holdBackMs, key, grantFor }: ReadCircumstances,
): Read<Event> {
  try {
    const kept = keptFrom(head);
    const parsed = definition.parse(body, kept);
    if (!parsed.ok) return { kind: "no_event", code: codeOf(parsed.code) };
    const { event } = parsed;
    const answer = key === null ? null : (definition.handshake?.(event, kept, key) ?? null);
    if (answer !== null) return isAnswer(answer) ? { kind: "handshake", answer } : FAILED;
    const digest = sha256(body);
    const place = definition.place(event, { bytes: body, digest: () => digest.toString("hex") }, kept);
    const grant = grantFor(place);
    if (grant === null) return { kind: "uncovered" };
    const tenant = place.tenant ?? grant.tenant;
    const located =
      typeof event === "object" && event !== null ? locate(place, source, tenant, definition.order) : null;
    if (located === null || !isIdText(place.type)) return FAILED;
    const { occurredAt, reference, about } = place;
    const { lane, ownId, sequence } = located;
    const { order } = lane;
    const at = signedAt ?? now;
    // A lane of several events without a sequence has neither a reference nor a person of its own.
    const isOne = order === null || order === "sequence";
    const stored: NewEvent = {
      lane,
      ownId,
      sequence,
      eventType: place.type,
      occurredAt: Number.isSafeInteger(occurredAt) ? (occurredAt as number) : at,
      signedAt: at,
      gapWaitMs: order === "position" ? holdBackMs : order === "sequence" ? gapWaitOf(definition, event) : 0,
      digest,
      raw: body,
      trace,
      peer: isOne && typeof about === "string" ? about : null,
      externalReference: isOne && isIdText(reference) ? reference : null,
      head: head ?? undefined,
      untimed: signedAt === null ? true : undefined,
      isSame: (other, otherHead) => isDeepStrictEqual(eventIn(definition, other, otherHead), event),
    };
    return { kind: "event", event, stored, grant, isOfKey: place.tenant === undefined };
  } catch {
    return FAILED;
  }
}

function gapWaitOf<Event extends object>(definition: Laned<Event>, event: Event): number {
  const { gapWait, lastRetryMs } = definition;
  if (gapWait === undefined) return Math.min(lastRetryMs + RETRY_MARGIN_MS, LONGEST_WAIT_MS);
  return boundedWait("gapWait", gapWait.call(definition, event));
}

/** Where the inbox keeps an event. */
export type EventPlace = Pick<NewEvent, "lane" | "ownId" | "sequence">;

/** Null if a definition does not say it as it must. */
export function locate(
  { id, lane = null, at = null }: Pick<Place, "id" | "lane" | "at">,
  source: string,
  tenant: string | null,
  ofSource: LaneOrder | null,
): EventPlace | null {
  const hasPlace = lane !== null && ofSource !== null && (ofSource === "arrival" || at !== null);
  const order = hasPlace ? ofSource : null;
  if (tenant !== null && !isIdText(tenant)) return null;
  if (order !== null && !isIdText(lane)) return null;
  if (order !== "sequence" && !isIdText(id)) return null;
  const isNumbered = order === "sequence" || order === "position";
  const sequence = isNumbered ? (at as number) : 0;
  if (isNumbered && !(Number.isSafeInteger(sequence) && sequence >= 0 && sequence <= HIGHEST[order])) return null;
  return {
    lane: { source, tenant, name: order === null ? null : lane, order },
    ownId: order === "sequence" ? undefined : id,
    // Adding 0 turns -0 into 0, for stores that distinguish them.
    sequence: sequence + 0,
  };
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

function isEpochMs(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
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
