/** Compares secrets that are sent as text, such as a token. */
import { createHash, timingSafeEqual } from "node:crypto";

/** Compares two secrets in constant time, by digests of equal length: it does not even reveal how long the expected one is. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
