/** What the inspector's mounts share: JSON bodies, and the end of a stream. */
import type { BodyReading, BodyResult } from "../src/index.ts";
import type { JsonReading } from "../src/inspector/index.ts";

// The inspector's bodies: exact bytes, as the readers beside this file give them, taken for JSON.

const INVALID: JsonReading = { ok: false, reason: "invalid" };
const EMPTY: JsonReading = { ok: false, reason: "empty" };
const TOO_LARGE: JsonReading = { ok: false, reason: "too_large" };

/** The rules for a body that may have `maxBytes`. No deadline: only who may act is listened to, and the server has its own. */
export function readingUpTo(maxBytes: number): BodyReading {
  return { maxBytes, declaredBytes: null, received() {}, onCut() {} };
}

/** What the bytes say. Bytes that are no UTF-8 are no JSON. */
export function jsonOf(result: BodyResult): JsonReading {
  if (!result.ok) return result.reason === "too_large" ? TOO_LARGE : INVALID;
  if (result.bytes.length === 0) return EMPTY;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(result.bytes);
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return INVALID;
  }
}

/** What a parser of the application made of the body. It is measured as it would be written again: the bytes are gone. */
export function jsonLeft(value: unknown, maxBytes: number): JsonReading {
  // What parsers leave for none.
  if (value === undefined || value === null) return EMPTY;
  if (typeof value !== "object") return INVALID;
  try {
    return Buffer.byteLength(JSON.stringify(value)) > maxBytes ? TOO_LARGE : { ok: true, value };
  } catch {
    return INVALID;
  }
}

// Ends a stream of the inspector that nobody reads any more.

/** Without waiting: a generator ends behind the step that it is at. */
export function endStream(iterator: AsyncIterator<string>): void {
  Promise.resolve(iterator.return?.()).catch(() => {});
}
