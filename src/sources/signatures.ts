/** What presets share: reading JSON bodies, signatures and timestamps as their providers write them. */
import { Buffer } from "node:buffer";
import { type ParsedUrlQuery, parse as parseQuery } from "node:querystring";
import { readJson } from "../internal/json.ts";
import { isRecord } from "../internal/options.ts";
import type { Parsed, Verdict } from "./definition.ts";
import type { Key } from "./keys.ts";

/** A header with more signatures is refused, because each costs an HMAC. */
export const MOST_SIGNATURES = 16;
const LONGEST_HEADER = 4_096;
const SECONDS = /^[1-9]\d{8,11}$/;

export const MISMATCH = { ok: false, code: "signature_mismatch" } as const;
export const MISSING = { ok: false, code: "missing_signature" } as const;
export const MALFORMED = { ok: false, code: "malformed_signature" } as const;
export const MALFORMED_TIME = { ok: false, code: "malformed_timestamp" } as const;

/** The key that made one of the signatures over `parts`, if one of `keys` did. */
export function signedBy(
  keys: readonly Key[],
  signatures: Uint8Array | readonly Uint8Array[],
  hash: "sha256" | "sha1",
  parts: readonly (string | Uint8Array)[],
  signedAt: number | null,
  proven?: string,
): Verdict {
  const key = keys.find((each) => each.signed(signatures, hash, ...parts));
  if (key === undefined) return MISMATCH;
  return proven === undefined ? { ok: true, key, signedAt } : { ok: true, key, signedAt, proven };
}

/** Parses a body that is one JSON object: strict UTF-8, no duplicate key. */
export function parseObject<Event extends object>(body: Uint8Array): Parsed<Event> {
  const read = readJson(body);
  if (!read.ok) return read;
  if (!isRecord(read.value)) return { ok: false, code: "not_an_object" };
  // What its fields are is the provider's word: the application's type says it.
  return { ok: true, event: read.value as Event };
}

/** The fields of a form; a repeated one is a list. Null if one of them could become the prototype of a copy. */
export function formFields(body: Uint8Array): ParsedUrlQuery | null {
  const fields = parseQuery(Buffer.from(body).toString(), "&", "=", { maxKeys: 0 });
  return Object.hasOwn(fields, "__proto__") ? null : fields;
}

/** The bytes of a signature in one spelling only; null for any other text. */
export function signatureBytes(text: string, encoding: "hex" | "base64", length: number): Uint8Array | null {
  if (text.length > LONGEST_HEADER) return null;
  const bytes = Buffer.from(text, encoding);
  return bytes.length === length && bytes.toString(encoding) === text ? bytes : null;
}

/** Whole seconds as epoch milliseconds; null for any other text, such as one with a sign, a zero in front or a fraction. */
export function secondsAsMs(text: string): number | null {
  return SECONDS.test(text) ? Number(text) * 1000 : null;
}

/** Epoch milliseconds of a time in ISO 8601; null for anything else. */
export function isoTime(value: unknown): number | null {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isFinite(time) ? time : null;
}

/** A field that is a text; undefined otherwise. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
