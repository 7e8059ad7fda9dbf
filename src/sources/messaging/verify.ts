/** Verifies a delivery without I/O: headers and age first, then the HMAC under each key, then the scope of the matching key. */
import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import { choiceOption, invalidOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import { type HeaderSource, readHeader } from "../headers.ts";
import type { CompiledKey, CompiledKeyring, KeyGrant, ScopeName, Slot, Voucher } from "./keyring.ts";
import type { Direction } from "./secret.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "./sign.ts";

/** Why a delivery was not verified. For logs and counters; the answer to the sender is the same for all. */
export type VerifyFailureCode =
  | "missing_timestamp"
  | "missing_signature"
  | "malformed_timestamp"
  | "malformed_signature"
  | "timestamp_too_old"
  | "timestamp_in_future"
  | "signature_mismatch"
  | "no_secret";

/** How the two headers are read and how old they may be. */
export interface HeaderPolicy {
  readonly tolerance: Tolerance;
  /** Default `"auto"`. */
  readonly timestampFormat?: TimestampFormat;
  /** Default `"auto"`. */
  readonly encoding?: SignatureEncoding;
}

/** What the headers of one delivery say. */
export interface CheckedHeaders {
  readonly ok: true;
  /** Exactly as received: this text is what is signed (RCV-1). */
  readonly timestampText: string;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly candidates: readonly Uint8Array[];
}

export interface VerifyFailure {
  readonly ok: false;
  readonly code: VerifyFailureCode;
}

/** What vouched for a delivery. */
export interface Match {
  readonly slot: Slot;
  readonly scope: ScopeName;
  /** Position in the slot's list. */
  readonly index: number;
  readonly key: Voucher;
}

/** Checks what needs no body: both headers are well-formed, and the age is within the tolerance. `now` is epoch ms. */
export function checkHeaders(headers: HeaderSource, policy: HeaderPolicy, now: number): CheckedHeaders | VerifyFailure {
  const timestampText = readHeader(headers, TIMESTAMP_HEADER);
  if (timestampText === undefined) return failure("missing_timestamp");
  const signatureText = readHeader(headers, SIGNATURE_HEADER);
  if (signatureText === undefined) return failure("missing_signature");
  const timestamp = parseTimestamp(timestampText, policy.timestampFormat ?? "auto");
  if (timestamp === null) return failure("malformed_timestamp");
  const candidates = parseCandidates(signatureText, policy.encoding ?? "auto");
  if (candidates === null) return failure("malformed_signature");
  const expired = checkAge(timestamp, now, policy.tolerance);
  return expired === null ? { ok: true, timestampText, timestamp, candidates } : failure(expired);
}

/**
 * Finds the first key of the keyring, current first, that produced one of the candidates; null when none did. Keys that ended before
 * `now` (epoch ms) are not tried. Stopping at the first match reveals a secret's slot only to someone who holds that secret.
 *
 * @param body the bytes as received, or a string that stands for its UTF-8 bytes
 */
export function matchSignature(
  checked: Pick<CheckedHeaders, "timestampText" | "candidates">,
  body: Uint8Array | string,
  keyring: CompiledKeyring,
  now: number,
): Match | null {
  const signedText = `${checked.timestampText}.`;
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  for (const key of keyring.keys) {
    if (key.validUntil <= now) continue;
    const expected = key.hmac.digest(signedText, bytes);
    for (const candidate of checked.candidates) {
      if (timingSafeEqual(expected, candidate)) return matchOf(liveVoucher(key, now));
    }
  }
  return null;
}

/** Only a delivery without both headers can be of an unsigned kind: one of the two means a broken signature. */
export function carriesNeitherHeader(headers: HeaderSource): boolean {
  return readHeader(headers, TIMESTAMP_HEADER) === undefined && readHeader(headers, SIGNATURE_HEADER) === undefined;
}

/**
 * Matches a delivery that carries neither header, if the keyring accepts a kind unsigned; otherwise null. The match vouches only for
 * events that state the direction of such a kind, so an unsigned body of a signed kind is still refused.
 */
export function matchUnsigned(headers: HeaderSource, keyring: CompiledKeyring): Match | null {
  if (keyring.unsigned.size === 0 || !carriesNeitherHeader(headers)) return null;
  return matchOf({ grants: [...keyring.unsigned].map(unsignedGrant), signer: "unsigned" });
}

/** The fields of a parsed event that a key's scope is compared with, if the event has them. */
export interface VouchedFields {
  readonly apiClientId?: unknown;
  readonly direction?: unknown;
}

/**
 * Returns the match with the slot, scope and index of the grant that covers this event. Null when none does: answer it like a wrong
 * signature. One secret may be the current one of a kind and the previous one of the other; only the event shows which was used (RCV-9).
 */
export function vouchingMatch(match: Match, event: VouchedFields): Match | null {
  const grant = match.key.grants.find((each) => isBasisOf(each, event));
  return grant === undefined ? null : { slot: grant.slot, scope: grant.scope, index: grant.index, key: match.key };
}

/** Without a signature only the direction can be compared, so the event must state it. */
function isBasisOf(grant: KeyGrant, event: VouchedFields): boolean {
  return grant.slot === "unsigned" ? event.direction === grant.direction : covers(grant, event);
}

/**
 * Whether a secret's limits allow this event. A limit does not apply to a field that the event lacks, nor to a direction that is
 * neither of the two: a future event type may have its own (RCV-11).
 */
function covers(limit: Constraint, event: VouchedFields): boolean {
  const { apiClientId, direction } = event;
  if (limit.apiClientId !== undefined && apiClientId !== undefined && apiClientId !== limit.apiClientId) return false;
  return limit.direction === undefined || direction === limit.direction || isUnstated(direction);
}

function isUnstated(direction: unknown): boolean {
  if (direction === undefined || direction === null) return true;
  return typeof direction === "string" && direction !== "inbound" && direction !== "outbound";
}

/** An ended grant must not vouch because the same secret has another grant that has not. */
function liveVoucher(key: CompiledKey, now: number): Voucher {
  return key.mixedValidity ? { grants: key.grants.filter((grant) => grant.validUntil > now), signer: key.signer } : key;
}

function matchOf(key: Voucher): Match | null {
  const first = key.grants[0];
  return first === undefined ? null : { slot: first.slot, scope: first.scope, index: first.index, key };
}

function unsignedGrant(direction: Direction): KeyGrant {
  const scope = direction === "inbound" ? "inbound" : "delivery";
  return { slot: "unsigned", scope, index: 0, direction, apiClientId: undefined, validUntil: Number.POSITIVE_INFINITY };
}

function failure(code: VerifyFailureCode): VerifyFailure {
  return { ok: false, code };
}

/** How a signature is written. `"auto"` decides by length: 64 hex digits, 44 base64 or 43 base64url characters. */
export type SignatureEncoding = "auto" | "hex" | "base64" | "base64url";

/** A delivery with more signatures is refused, because each costs a comparison. */
const MAX_CANDIDATES = 5;

const SIGNATURE_BYTES = 32;
/** Five signatures of the longest form (`sha256=` and 64 digits), with room for separators. */
const LONGEST_HEADER = 512;
const HEX = /^[0-9A-Fa-f]{64}$/;
/** One signature with its optional prefix. `v1,` is a prefix, so it is matched before a comma can act as a separator. */
const ENTRY = /(?:sha256=|v1[=,])?([A-Za-z0-9+/_-]{43,64}=?)/y;
const SEPARATOR = / *, *| +/y;

/** Checks an `encoding` option. @throws SetupError */
export function signatureEncodingOption(value: unknown): SignatureEncoding {
  return choiceOption<SignatureEncoding>("encoding", value, "auto", ["auto", "hex", "base64", "base64url"]);
}

/**
 * Parses the signatures of a header, separated by comma or space, into 32 bytes each; null when one is malformed or there are more than
 * five. The whole list is refused for one malformed entry, because the service never writes one.
 */
export function parseCandidates(text: string, encoding: SignatureEncoding): readonly Uint8Array[] | null {
  if (text.length === 64 && HEX.test(text)) {
    return encoding === "auto" || encoding === "hex" ? [Buffer.from(text, "hex")] : null;
  }
  return text.length > LONGEST_HEADER ? null : parseList(text, encoding);
}

function parseList(text: string, encoding: SignatureEncoding): readonly Uint8Array[] | null {
  const candidates: Uint8Array[] = [];
  let position = 0;
  while (candidates.length < MAX_CANDIDATES) {
    ENTRY.lastIndex = position;
    const candidate = decode(ENTRY.exec(text)?.[1], encoding);
    if (candidate === null) return null;
    candidates.push(candidate);
    if (ENTRY.lastIndex === text.length) return candidates;
    SEPARATOR.lastIndex = ENTRY.lastIndex;
    if (!SEPARATOR.test(text)) return null;
    position = SEPARATOR.lastIndex;
  }
  return null;
}

/** The length decides the encoding. Re-encoding must give the same text, so that no signature has a second spelling. */
function decode(text: string | undefined, pinned: SignatureEncoding): Uint8Array | null {
  if (text === undefined) return null;
  const encoding = encodingByLength(text.length);
  if (encoding === null || (pinned !== "auto" && pinned !== encoding)) return null;
  if (encoding === "hex") return HEX.test(text) ? Buffer.from(text, "hex") : null;
  const bytes = Buffer.from(text, encoding);
  return bytes.length === SIGNATURE_BYTES && bytes.toString(encoding) === text ? bytes : null;
}

function encodingByLength(length: number): "hex" | "base64" | "base64url" | null {
  if (length === 64) return "hex";
  if (length === 44) return "base64";
  return length === 43 ? "base64url" : null;
}

/**
 * How the timestamp text is read. `"auto"` reads 10 digits as seconds and 13 as milliseconds; `"s"` and `"ms"` accept only
 * one of them; a function turns any other text into epoch milliseconds (NaN or an exception means malformed). A text with a
 * "." never reaches the function: the signature covers `<timestamp>.<body>`, and bytes could be moved across that dot.
 */
export type TimestampFormat = "auto" | "s" | "ms" | ((text: string) => number);

/** How far a timestamp may be from now, both ends included. Milliseconds. */
export interface Tolerance {
  readonly pastMs: number;
  readonly futureMs: number;
}

/** 5 minutes both ways: the right value when nothing remembers the identities of earlier deliveries. */
export const DEFAULT_TOLERANCE: Tolerance = { pastMs: 300_000, futureMs: 300_000 };

const LONGEST_TOLERANCE_MS = 30 * 86_400_000;
/** Printable ASCII without a dot, so that the text has exactly one byte form. */
const CUSTOM_TEXT = /^[\x20-\x2d\x2f-\x7e]{1,64}$/;

/**
 * Checks a tolerance option: one number for both ways, or `{ pastMs, futureMs }`; 1 ms to 30 days each. `0`, negative
 * numbers, `NaN` and `Infinity` are errors, never "off".
 *
 * @throws SetupError naming the option
 */
export function toleranceOption(name: string, value: unknown, fallback: Tolerance): Tolerance {
  if (value === undefined) return fallback;
  const bounds = { min: 1, max: LONGEST_TOLERANCE_MS, unit: "ms" };
  if (typeof value !== "object" || value === null) {
    const both = numberOption(name, value, fallback.pastMs, bounds);
    return { pastMs: both, futureMs: both };
  }
  refuseUnknownOptions(name, value, ["pastMs", "futureMs"]);
  const { pastMs, futureMs }: { pastMs?: unknown; futureMs?: unknown } = value;
  return {
    pastMs: numberOption(`${name}.pastMs`, pastMs, fallback.pastMs, bounds),
    futureMs: numberOption(`${name}.futureMs`, futureMs, fallback.futureMs, bounds),
  };
}

/** Checks a `timestampFormat` option. @throws SetupError */
export function timestampFormatOption(value: unknown): void {
  if (value === undefined || value === "auto" || value === "s" || value === "ms" || typeof value === "function") return;
  throw invalidOption("timestampFormat", 'must be "auto", "s", "ms" or a function', value);
}

/** Parses the text as epoch milliseconds; null when malformed. Only ASCII digits are allowed: no space, sign or exponent. */
export function parseTimestamp(text: string, format: TimestampFormat): number | null {
  if (typeof format === "function") return parseCustom(text, format);
  const unitMs = text.length === 13 ? 1 : 1000;
  if (text.length !== 13 && text.length !== 10) return null;
  if ((format === "s" && unitMs === 1) || (format === "ms" && unitMs === 1000)) return null;
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) return null;
    value = value * 10 + digit;
  }
  return value * unitMs;
}

function parseCustom(text: string, parse: (text: string) => number): number | null {
  if (!CUSTOM_TEXT.test(text)) return null;
  try {
    const timestamp: unknown = parse(text);
    return typeof timestamp === "number" && Number.isFinite(timestamp) ? Math.round(timestamp) : null;
  } catch {
    // A request's content must not throw. The function failed on this header, so the header counts as malformed.
    return null;
  }
}

/** Null when the age is within the tolerance. */
export function checkAge(
  timestamp: number,
  now: number,
  tolerance: Tolerance,
): "timestamp_too_old" | "timestamp_in_future" | null {
  if (now - timestamp > tolerance.pastMs) return "timestamp_too_old";
  return timestamp - now > tolerance.futureMs ? "timestamp_in_future" : null;
}

type Constraint = Pick<KeyGrant, "direction" | "apiClientId">;

const DIRECTIONS = { any: undefined, inbound: "inbound", delivery: "outbound" } as const;
const PART = /^(any|inbound|delivery)(?::([0-9a-f]{32}))?$/;

/**
 * The scope of a secret as a text to store and show: `any`, `inbound` or `delivery`, with `:` and a digest if the secret is limited to one
 * API client. Alternatives are joined by commas.
 */
export function scopeOf({ grants }: Voucher): string {
  return [...new Set(grants.map(partOf))].join(",");
}

/** Whether a stored scope text covers this event. A malformed text covers nothing. */
export function scopeCovers(scope: string, event: VouchedFields): boolean {
  const { apiClientId } = event;
  const claimed = typeof apiClientId === "string" ? { ...event, apiClientId: digestOf(apiClientId) } : event;
  return scope.split(",").some((part) => {
    const constraint = constraintOf(part);
    return constraint !== null && covers(constraint, claimed);
  });
}

function partOf({ direction, apiClientId }: Constraint): string {
  const kind = direction === undefined ? "any" : direction === "inbound" ? "inbound" : "delivery";
  return apiClientId === undefined ? kind : `${kind}:${digestOf(apiClientId)}`;
}

function constraintOf(part: string): Constraint | null {
  const [, kind, apiClientId] = PART.exec(part) ?? [];
  return kind === undefined ? null : { direction: DIRECTIONS[kind as keyof typeof DIRECTIONS], apiClientId };
}

/** The id itself belongs to the application, and an operator's view or log need not show it. */
function digestOf(apiClientId: string): string {
  return createHash("sha256").update(apiClientId).digest("hex").slice(0, 32);
}
