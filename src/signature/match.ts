/** The steps of a verification: headers and age first, then the HMAC against each key, then the scope of the key that matched. */
import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { parseCandidates, type SignatureEncoding } from "./candidates.ts";
import { type HeaderSource, readHeader, SIGNATURE_HEADER, TIMESTAMP_HEADER } from "./headers.ts";
import type { CompiledKey, CompiledKeyring, Direction, Grant, ScopeName, Slot, Voucher } from "./keyring.ts";
import { checkAge, parseTimestamp, type TimestampFormat, type Tolerance } from "./timestamp.ts";

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

/** Everything that can be checked before the body is read: both headers well-formed, then the age. `now` is epoch ms. */
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
 * The first key of the keyring, current first, that made one of the candidates; null when none did. Keys whose time has
 * ended at `now` (epoch ms) are not tried. Stopping at the first match tells only a holder of a secret which slot it is in.
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

/** Only such a delivery can be one of an unsigned kind: a half of a signature is a broken one. */
export function carriesNeitherHeader(headers: HeaderSource): boolean {
  return readHeader(headers, TIMESTAMP_HEADER) === undefined && readHeader(headers, SIGNATURE_HEADER) === undefined;
}

/**
 * The voucher of a delivery that carries neither header, when the keyring accepts some kind unsigned; else null. It vouches
 * only for events that state a direction of such a kind, so an unsigned body of a signed kind is still refused.
 */
export function matchUnsigned(headers: HeaderSource, keyring: CompiledKeyring): Match | null {
  if (keyring.unsigned.size === 0 || !carriesNeitherHeader(headers)) return null;
  return matchOf({ grants: [...keyring.unsigned].map(unsignedGrant), signer: "unsigned" });
}

/** What a key's scope is compared with: the fields of the parsed event, as far as it carries them. */
export interface VouchedFields {
  readonly apiClientId?: unknown;
  readonly direction?: unknown;
}

/**
 * Does the matched key vouch for this event? A scope constrains only fields the event carries; an event that it does not
 * cover is to be answered like a wrong signature.
 */
export function vouchesFor(key: Voucher, event: VouchedFields): boolean {
  return key.grants.some((grant) => isBasisOf(grant, event));
}

/**
 * The match, with the slot, scope and index of the grant that covers this event; null when none does. One secret may be the
 * current one of a kind and the previous one of the other: only the event tells which of them was used (RCV-9).
 */
export function vouchingMatch(match: Match, event: VouchedFields): Match | null {
  const grant = match.key.grants.find((each) => isBasisOf(each, event));
  return grant === undefined ? null : { slot: grant.slot, scope: grant.scope, index: grant.index, key: match.key };
}

/** Without a signature there is only the direction to go by, so the event must state it. */
function isBasisOf(grant: Grant, event: VouchedFields): boolean {
  return grant.slot === "unsigned" ? event.direction === grant.direction : covers(grant, event);
}

/**
 * Does what a secret is limited to allow this event? A limit says nothing about a field that the event does not carry, nor about a
 * direction that is neither of the two: an event of a type to come may have its own (RCV-11).
 */
export function covers(limit: Pick<Grant, "direction" | "apiClientId">, event: VouchedFields): boolean {
  const { apiClientId, direction } = event;
  if (limit.apiClientId !== undefined && apiClientId !== undefined && apiClientId !== limit.apiClientId) return false;
  return limit.direction === undefined || direction === limit.direction || isUnstated(direction);
}

function isUnstated(direction: unknown): boolean {
  if (direction === undefined || direction === null) return true;
  return typeof direction === "string" && direction !== "inbound" && direction !== "outbound";
}

/** A grant that has ended must not vouch just because the same secret has another one. */
function liveVoucher(key: CompiledKey, now: number): Voucher {
  return key.mixedValidity ? { grants: key.grants.filter((grant) => grant.validUntil > now), signer: key.signer } : key;
}

function matchOf(key: Voucher): Match | null {
  const first = key.grants[0];
  return first === undefined ? null : { slot: first.slot, scope: first.scope, index: first.index, key };
}

function unsignedGrant(direction: Direction): Grant {
  const scope = direction === "inbound" ? "inbound" : "delivery";
  return { slot: "unsigned", scope, index: 0, direction, apiClientId: undefined, validUntil: Number.POSITIVE_INFINITY };
}

function failure(code: VerifyFailureCode): VerifyFailure {
  return { ok: false, code };
}
