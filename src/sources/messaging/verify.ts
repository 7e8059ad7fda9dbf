/** Reads the two headers of a delivery of the messaging service: its timestamp, and its signatures. */
import { Buffer } from "node:buffer";
import { choiceOption, invalidOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import type { RequestHead } from "../headers.ts";
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

/** How the two headers are read. */
export interface HeaderPolicy {
  /** Default `"auto"`. */
  readonly timestampFormat?: TimestampFormat | undefined;
  /** Default `"auto"`. */
  readonly encoding?: SignatureEncoding | undefined;
}

/** What the headers of one delivery say. */
export interface SignedHeaders {
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

/** Reads both headers. */
export function readSigned(head: Pick<RequestHead, "header">, policy: HeaderPolicy): SignedHeaders | VerifyFailure {
  const timestampText = head.header(TIMESTAMP_HEADER);
  if (timestampText === undefined) return failure("missing_timestamp");
  const signatureText = head.header(SIGNATURE_HEADER);
  if (signatureText === undefined) return failure("missing_signature");
  const timestamp = parseTimestamp(timestampText, policy.timestampFormat ?? "auto");
  if (timestamp === null) return failure("malformed_timestamp");
  const candidates = parseCandidates(signatureText, policy.encoding ?? "auto");
  return candidates === null ? failure("malformed_signature") : { ok: true, timestampText, timestamp, candidates };
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

/** @throws SetupError */
export function signatureEncodingOption(name: string, value: unknown): SignatureEncoding {
  return choiceOption<SignatureEncoding>(name, value, "auto", ["auto", "hex", "base64", "base64url"]);
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
