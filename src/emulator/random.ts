/** Randomness that repeats: a number per seed and purpose, whatever else was asked in between. */
import { createHash } from "node:crypto";

/** Hexadecimal text of `bytes` bytes (at most 32) that `seed` and `purpose` alone decide. */
export function seededHex(seed: string, purpose: string, bytes: number): string {
  return digest(seed, purpose).toString("hex", 0, bytes);
}

/** A number in [0, 1) that `seed` and `purpose` alone decide. */
export function seededFraction(seed: string, purpose: string): number {
  return digest(seed, purpose).readUIntBE(0, 6) / 2 ** 48;
}

function digest(seed: string, purpose: string): Buffer {
  return createHash("sha256")
    .update(JSON.stringify([seed, purpose]))
    .digest();
}
