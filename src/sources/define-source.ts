/** `defineSource()`: makes your own source, and all presets. */
import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import { SetupError } from "../errors.ts";
import type { Released, StoredBody } from "../inbox/handlers.ts";
import { scopeOfEntry, tenantOfScope } from "../inbox/lane-key.ts";
import type { NewEvent, NewQuarantine, QuarantineRecord } from "../inbox/record.ts";
import { sha256 } from "../internal/json.ts";
import { functionOption, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { type HeaderSource, readHeader } from "./headers.ts";
import type { KeyringSourceDeps } from "./keyring-provider.ts";
import {
  type Key,
  type SourceKey,
  type SourceKeyring,
  type SourceKeyringProvider,
  type SourceKeys,
  sourceKeyrings,
} from "./keys.ts";
import type { Circumstances, Claim, ConnectedSource, Reading, Refusal, SourceEvents, WebhookSource } from "./source.ts";

/** The headers of a request. */
export interface RequestHead {
  /** The value of a header, by its lower-case name. Several values are joined with ", ". */
  header(name: string): string | undefined;
}

/** The headers that a source keeps beside a body: those of its list, and no others. */
export interface Kept extends RequestHead {}

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
 * One provider's way to sign, write and name its events. Every function is synchronous and pure. `parse`, `identify` and `describe` see only
 * the headers in `keep`, from the first delivery on, because after a restart there is nothing else.
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
  /** Lower-case names of headers that are stored beside the body. Default: none. */
  readonly keep?: readonly string[];
  /** The bytes of a key from the text of a secret. Default: its UTF-8 bytes. Throws for what is not a key. */
  key?(text: string): Uint8Array;
  /** Finds the key that signed the body. The age of the signed time is checked afterwards; `checkAge` does it before the cost of an HMAC. */
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
}

export interface VerifyCircumstances {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Why a signed time (epoch milliseconds) is too old or too far ahead; null if it is neither. */
  checkAge(signedAt: number): "timestamp_too_old" | "timestamp_in_future" | null;
}

/** The options of every source. */
export interface SourceOptions {
  /** The secret as the provider shows it, a set of secrets, or a function that reads them. */
  readonly secrets: SourceKeyring | SourceKeyringProvider;
  /** Bytes of a body at most. 1,024 to 33,554,432 (32 MiB). Default: what the provider sends. */
  readonly maxBodyBytes?: number;
  /** How old or how far ahead a signed time may be. Milliseconds, 1 to 86,400,000. Default 300,000 both ways. */
  readonly toleranceMs?: { readonly past?: number; readonly future?: number };
}

/** The events of a source whose types are open: any text may come. A misspelt type in `on()` cannot be refused. */
export interface OpenEvents<Event extends object, ByType extends object = Readonly<Record<string, Event>>>
  extends SourceEvents {
  readonly byType: ByType;
  readonly any: Event;
  readonly unknown: Event;
  readonly late: never;
  readonly ref: never;
}

const SOURCE_OPTIONS = ["secrets", "maxBodyBytes", "toleranceMs"] as const satisfies readonly (keyof SourceOptions)[];
const KIB = 1024;
const DAY_MS = 86_400_000;
const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const LONGEST_TEXT = 512;
/** A kept header is stored with each event. */
const LONGEST_HEADER = 1_024;

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
): (options: SourceOptions) => WebhookSource<OpenEvents<Event, ByType>> {
  checkDefinition(definition);
  return (options) => sourceOf<Event, OpenEvents<Event, ByType>>(definition, options);
}

/**
 * @param others - names of the preset's own options, for the message about an unknown one
 * @throws SetupError for a wrong option
 */
export function sourceOf<Event extends object, Events extends SourceEvents>(
  definition: SourceDefinition<Event>,
  options: SourceOptions,
  others: readonly string[] = [],
): WebhookSource<Events> {
  const { preset } = definition;
  refuseUnknownOptions(preset, options, [...SOURCE_OPTIONS, ...others]);
  const { secrets } = options;
  const maxBodyBytes = numberOption("maxBodyBytes", options.maxBodyBytes, definition.maxBodyBytes ?? KIB * KIB, {
    min: KIB,
    max: 32 * KIB * KIB,
    unit: "bytes",
  });
  const tolerance = toleranceOf(definition, options.toleranceMs);
  return {
    preset,
    firstSequence: null,
    replayMs: Math.max(tolerance.past + tolerance.future, definition.lastRetryMs),
    connect: (entry, deps) => connect({ definition, secrets, maxBodyBytes, tolerance, entry }, deps),
  };
}

type Tolerance = Readonly<Record<"past" | "future", number>>;

interface Parts<Event extends object> {
  readonly definition: SourceDefinition<Event>;
  readonly secrets: SourceOptions["secrets"];
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
  { definition, secrets, maxBodyBytes, tolerance, entry }: Parts<Event>,
  deps: KeyringSourceDeps,
): ConnectedSource<SourceKeys, Claimed, Match> {
  if (secrets === undefined)
    throw new SetupError("invalid_secret", `Option "secrets" of ${definition.preset} is missing.`);
  // One secret for all: then a tenant is only a name, which anyone could change to have an event handled twice.
  const hasTenants = typeof secrets === "function";
  const decode = definition.key?.bind(definition) ?? ((text: string) => Buffer.from(text));
  const checkAge = (signedAt: number, exactly: number) => {
    // Times in whole seconds are compared in whole seconds, as providers' own libraries do.
    const now = signedAt % 1000 === 0 ? Math.floor(exactly / 1000) * 1000 : exactly;
    if (now - signedAt > tolerance.past) return "timestamp_too_old";
    return signedAt - now > tolerance.future ? "timestamp_in_future" : null;
  };
  return {
    preset: definition.preset,
    isService: false,
    types: { known: null, canBeLate: () => false },
    maxBodyBytes,
    answerMs: definition.answerMs ?? 10_000,
    keyrings: sourceKeyrings(secrets, decode, deps),
    check: (headers) => ({ ok: true, timestamp: null, head: { header: (name) => readHeader(headers, name) } }),
    refuse: () => null,
    match({ head }, body, { all }, now): Match | Refusal | null {
      const live = all.filter(({ validUntil }) => validUntil > now);
      const verdict = verdictOf(definition, head, body, live, {
        now,
        checkAge: (signedAt) => checkAge(signedAt, now),
      });
      if (!verdict.ok) return verdict.code === "signature_mismatch" ? null : { ok: false, code: codeOf(verdict.code) };
      const { signedAt } = verdict;
      const key = live.find((each) => each === verdict.key);
      if (key === undefined) throw brokenVerify(definition, "returned a key that it was not given");
      if (signedAt !== null && !isEpochMs(signedAt))
        throw brokenVerify(definition, "returned a signedAt that is not epoch milliseconds or null");
      const expired = signedAt === null ? null : checkAge(signedAt, now);
      return expired === null ? { key, signedAt } : { ok: false, code: expired };
    },
    read(_claimed, { key, signedAt }, body, circumstances): Reading {
      const client = clientOf(entry, hasTenants ? circumstances.tenant : undefined);
      const read = readBody(definition, client, body, keptOf(definition, circumstances.headers), {
        ...circumstances,
        signedAt,
      });
      if (read.ok) return { ok: true, slot: key.slot, event: read.event, toStore: () => read.stored };
      const head = headText(definition, circumstances.headers);
      const quarantine: NewQuarantine = {
        reason: read.code,
        slot: key.slot,
        signer: `${entry}:${key.signer}`,
        scope: scopeOfEntry(client),
        signedAt: signedAt ?? circumstances.now,
        digest: hash("sha256", Buffer.concat([Buffer.from(JSON.stringify(client)), body]), "buffer"),
        raw: body,
        trace: circumstances.trace,
        ...(head !== null && { head }),
        ...(signedAt === null && { untimed: true as const }),
      };
      return { ok: false, quarantine };
    },
    reread({ raw, head }: StoredBody) {
      if (raw === null) return null;
      try {
        const parsed = definition.parse(raw, keptFrom(head));
        return parsed.ok ? parsed.event : null;
      } catch {
        // As an event that this version cannot read: it stays as a dead letter, and is replayed once the code is fixed.
        return null;
      }
    },
    release(row: QuarantineRecord): Released {
      const { raw, head, trace, scope } = row;
      if (raw === null) return { ok: false, reason: "body_pruned" };
      const client = clientOf(entry, tenantOfScope(scope));
      const signedAt = row.untimed ? null : row.signedAt;
      const read = readBody(definition, client, raw, keptFrom(head), { signedAt, now: row.signedAt, trace });
      if (read.ok) return { ok: true, event: read.stored };
      const message = `The body is still not an event for the source "${entry}" (${read.code}).`;
      return { ok: false, reason: "invalid_event", message };
    },
  };
}

type Read =
  | { readonly ok: true; readonly event: object; readonly stored: NewEvent }
  | { readonly ok: false; readonly code: string };

/** Parses and places a body whose signature matches. Never throws. */
function readBody<Event extends object>(
  definition: SourceDefinition<Event>,
  client: string,
  body: Uint8Array,
  kept: Kept & { readonly text: string | null },
  { signedAt, now, trace }: Pick<Circumstances, "now" | "trace"> & { readonly signedAt: number | null },
): Read {
  try {
    const parsed = definition.parse(body, kept);
    if (!parsed.ok) return { ok: false, code: codeOf(parsed.code) };
    const { event } = parsed;
    const digest = sha256(body);
    const identity = definition.identify(event, kept, () => digest.toString("hex"));
    const { type, reference, occurredAt } = definition.describe(event, kept);
    if (typeof event !== "object" || event === null || ![identity, type, client].every(isText)) return FAILED;
    const at = signedAt ?? now;
    const stored: NewEvent = {
      lane: { apiClientId: client, tag: "single", messageId: identity },
      sequence: 0,
      eventType: type,
      occurredAt: Number.isSafeInteger(occurredAt) ? (occurredAt as number) : at,
      signedAt: at,
      gapWaitMs: 0,
      digest,
      raw: body,
      trace,
      peer: null,
      externalReference: isText(reference) ? reference : null,
      ...(kept.text !== null && { head: kept.text }),
      ...(signedAt === null && { untimed: true as const }),
    };
    return { ok: true, event, stored };
  } catch {
    return FAILED;
  }
}

/** The text that stands for an API client: a tenant's events are apart from those of all others. */
function clientOf(entry: string, tenant: string | undefined): string {
  return tenant === undefined ? entry : `${entry}:${tenant}`;
}

const FAILED = { ok: false, code: "source_failed" } as const;
const CODE = /^[a-z][a-z0-9_]{0,63}$/;

/** A code of a definition, as it may stand in logs and in the names of counters. */
function codeOf(code: unknown): string {
  return typeof code === "string" && CODE.test(code) ? code : FAILED.code;
}

function verdictOf<Event extends object>(
  definition: SourceDefinition<Event>,
  ...given: Parameters<SourceDefinition<Event>["verify"]>
): Verdict {
  try {
    return definition.verify(...given);
  } catch (error) {
    throw brokenVerify(definition, "threw", error);
  }
}

/** Answered with 500. The cause may quote the request, and is not logged. */
function brokenVerify({ preset }: Pick<SourceDefinition<object>, "preset">, what: string, cause?: unknown): SetupError {
  return new SetupError("source_failed", `verify() of the source ${preset} ${what}.`, { cause });
}

function isEpochMs(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Only what is stored, so that a first delivery reads like one after a restart. */
function keptOf<Event extends object>(definition: SourceDefinition<Event>, headers: HeaderSource) {
  return keptFrom(headText(definition, headers));
}

function headText<Event extends object>({ keep = [] }: SourceDefinition<Event>, headers: HeaderSource): string | null {
  const kept: [string, string][] = [];
  for (const name of keep) {
    const value = readHeader(headers, name);
    if (value !== undefined) kept.push([name, value.slice(0, LONGEST_HEADER).toWellFormed()]);
  }
  return kept.length === 0 ? null : JSON.stringify(Object.fromEntries(kept));
}

function keptFrom(text: string | null): Kept & { readonly text: string | null } {
  const kept = text === null ? {} : (JSON.parse(text) as Readonly<Record<string, string>>);
  return { text, header: (name) => (Object.hasOwn(kept, name) ? kept[name] : undefined) };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= LONGEST_TEXT && value.isWellFormed();
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
  const { preset, maxBodyBytes, answerMs, lastRetryMs, keep = [] } = definition;
  checkEntryName("preset", preset);
  if (preset === "service")
    throw invalidOption("preset", "is the messaging service's: give your source another", preset);
  for (const name of ["verify", "parse", "identify", "describe"] as const) {
    if (typeof definition[name] !== "function") throw invalidOption(name, "must be a function", definition[name]);
  }
  functionOption("key", definition.key);
  numberOption("maxBodyBytes", maxBodyBytes, KIB, { min: KIB, max: 32 * KIB * KIB, unit: "bytes" });
  numberOption("answerMs", answerMs, 10_000, { min: 1_000, max: 60_000, unit: "ms" });
  if (lastRetryMs === undefined)
    throw invalidOption("lastRetryMs", "must be given: 0 if the provider never sends again", lastRetryMs);
  numberOption("lastRetryMs", lastRetryMs, 0, { min: 0, max: 30 * DAY_MS, unit: "ms" });
  for (const name of keep) {
    if (!HEADER_NAME.test(name)) throw invalidOption("keep", "must hold lower-case names of headers", name);
  }
}
