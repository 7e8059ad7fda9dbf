/** Reads bytes as strict JSON, and compares two bodies by their JSON value. */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { isRecord } from "./options.ts";

/** The deepest accepted nesting of objects and arrays. */
export const MAX_DEPTH = 64;

/**
 * - `invalid_utf8`, `byte_order_mark`: the bytes are not plain UTF-8 text.
 * - `too_deep`: objects and arrays nest more than 64 levels.
 * - `invalid_json`: not JSON.
 * - `forbidden_key`: a key `__proto__`, which could change an object's prototype when it is copied.
 * - `duplicate_key`: an object has the same key twice, so that two readers could see different events.
 */
export type JsonFailureCode =
  | "invalid_utf8"
  | "byte_order_mark"
  | "too_deep"
  | "invalid_json"
  | "forbidden_key"
  | "duplicate_key";

/**
 * JSON all the same: the sender is not to blame. A provider's user can write such a key, or nest so deep, in what the provider passes on.
 */
export const USER_SHAPED: readonly JsonFailureCode[] = ["too_deep", "forbidden_key", "duplicate_key"];

export type JsonResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: JsonFailureCode };

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = 0xfeff;
/** The only bit in which `[` differs from `{`, and `]` from `}`. Setting it turns no other character into a brace. */
const BRACE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const TOO_DEEP = -1;
const FORBIDDEN = -1;

/** Reads bytes as strict JSON: valid UTF-8, bounded depth, and no key that two readers could see differently. Never throws. */
export function readJson(bytes: Uint8Array): JsonResult {
  const text = decode(bytes);
  if (text === undefined) return { ok: false, code: "invalid_utf8" };
  if (text.charCodeAt(0) === BYTE_ORDER_MARK) return { ok: false, code: "byte_order_mark" };
  const pairs = countPairs(text);
  if (pairs === TOO_DEEP) return { ok: false, code: "too_deep" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the body, so it is dropped.
    return { ok: false, code: "invalid_json" };
  }
  const keys = countKeys(value);
  if (keys === FORBIDDEN) return { ok: false, code: "forbidden_key" };
  // Keys are counted after escapes were resolved: "sequence" and "\u0073equence" are one key in two pairs.
  if (keys !== pairs) return { ok: false, code: "duplicate_key" };
  return { ok: true, value };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    if (!isUtf8(bytes)) return undefined;
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return buffer.toString("utf8");
  } catch {
    // A detached buffer, or one longer than any string.
    return undefined;
  }
}

/** The number of key/value pairs in a text of valid JSON, or `TOO_DEEP`. For invalid JSON the number has no meaning. */
function countPairs(text: string): number {
  const { length } = text;
  let pairs = 0;
  let depth = 0;
  for (let index = 0; index < length; index++) {
    const char = text.charCodeAt(index);
    if (char === QUOTE) index = closingQuote(text, index + 1);
    else if (char === COLON) pairs++;
    else if ((char | BRACE_BIT) === OPEN) {
      if (++depth > MAX_DEPTH) return TOO_DEEP;
    } else if ((char | BRACE_BIT) === CLOSE) depth--;
  }
  return pairs;
}

/** The index of the quote that ends the string whose content starts at `start`. Jumping with `indexOf` makes the pass cheap. */
function closingQuote(text: string, start: number): number {
  let quote = text.indexOf('"', start);
  while (quote !== -1) {
    let content = quote;
    // Ends at the opening quote at the latest.
    while (text.charCodeAt(content - 1) === BACKSLASH) content--;
    // An even number of backslashes escape each other; with an odd number, the last one escapes the quote.
    if ((quote - content) % 2 === 0) return quote;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}

/** The number of keys in a JSON value of bounded depth, or `FORBIDDEN`. */
function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const isArray = Array.isArray(value);
  if (!isArray && Object.hasOwn(value, "__proto__")) return FORBIDDEN;
  const children: readonly unknown[] = isArray ? value : Object.values(value);
  let keys = isArray ? 0 : children.length;
  for (const child of children) {
    if (typeof child !== "object" || child === null) continue;
    const inner = countKeys(child);
    if (inner === FORBIDDEN) return FORBIDDEN;
    keys += inner;
  }
  return keys;
}

/**
 * Whether two bodies have the same JSON value, ignoring key order, white space and escapes: a retry that was serialised again is not a
 * conflict. Numbers are compared as parsed, so `0` and `-0` are equal. False when either body is not strict JSON.
 */
export function sameContent(a: Uint8Array, b: Uint8Array): boolean {
  const left = readJson(a);
  const right = readJson(b);
  return left.ok && right.ok && sameValue(left.value, right.value);
}

function sameValue(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && sameElements(a, b);
  if (isRecord(a)) return isRecord(b) && sameFields(a, b);
  return a === b;
}

function sameElements(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((element, index) => sameValue(element, b[index]));
}

function sameFields(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameValue(a[name], b[name]))
  );
}

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Buffer {
  return hash("sha256", bytes, "buffer");
}
