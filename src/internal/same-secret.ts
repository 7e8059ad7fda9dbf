/** Compares secrets that are sent as text, such as a token. */
import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Compares two secrets in constant time, by digests of equal length: it does not even reveal how long the expected one is. An empty text is
 * never the same as another: it is what an environment variable that was not set, and a request without a secret, both become.
 */
export function isSameSecret(given: string, expected: string): boolean {
  const isSame = timingSafeEqual(digest(given), digest(expected));
  return isSame && given !== "";
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
