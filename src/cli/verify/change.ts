/** A value as it is, or changed as something on the way may have changed it: what the search tries. */
import type { CauseCode } from "./causes.ts";

export interface Change<T> {
  readonly value: T;
  /** What would have happened; null for the value as it is. */
  readonly cause: CauseCode | null;
  /** How the signer does it, for `--guess`: `the secret's text, base64-decoded`. */
  readonly told: string;
}

/** The value as it is, first, and its changes that differ from it and from each other. */
export function distinct<T>(changes: readonly Change<T>[], keyOf: (value: T) => string): readonly Change<T>[] {
  const seen = new Set<string>();
  return changes.filter(({ value }) => {
    const key = keyOf(value);
    return !seen.has(key) && seen.add(key);
  });
}
