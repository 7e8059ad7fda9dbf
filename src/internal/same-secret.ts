/** Compares secrets. */
import { createHash, timingSafeEqual } from "node:crypto";

/** Over digests, which have one length, in constant time: it tells nothing, not even how long the expected one is. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
