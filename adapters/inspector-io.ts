/** Shared by the inspector's mounts: JSON bodies, and ending a stream. */
import type { BodyReading, BodyResult } from "../src/index.ts";
import type { JsonReading } from "../src/tools/inspector/index.ts";

const INVALID: JsonReading = { ok: false, reason: "invalid" };
const EMPTY: JsonReading = { ok: false, reason: "empty" };
const TOO_LARGE: JsonReading = { ok: false, reason: "too_large" };

/** The reading rules for a body of at most `maxBytes`. Without a deadline: only authorized requests are read, and the server has its own. */
export function readingUpTo(maxBytes: number): BodyReading {
  return { maxBytes, declaredBytes: null, received: () => undefined, onCut() {} };
}

/** Parses the bytes as JSON. Bytes that are not UTF-8 are invalid. */
export function jsonBody(result: BodyResult): JsonReading {
  if (!result.ok) return result.reason === "too_large" ? TOO_LARGE : INVALID;
  if (result.bytes.length === 0) return EMPTY;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(result.bytes);
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return INVALID;
  }
}

/** The body that a parser of the application left. Its size is that of its JSON, because the bytes are gone. */
export function jsonLeft(value: unknown, maxBytes: number): JsonReading {
  // Parsers leave these for an empty body.
  if (value === undefined || value === null) return EMPTY;
  if (typeof value !== "object") return INVALID;
  try {
    return Buffer.byteLength(JSON.stringify(value)) > maxBytes ? TOO_LARGE : { ok: true, value };
  } catch {
    return INVALID;
  }
}

/** Ends a stream that nobody reads any more. Does not wait: a generator ends only after its current step. */
export function endStream(iterator: AsyncIterator<string>): void {
  Promise.resolve(iterator.return?.()).catch(() => {});
}
