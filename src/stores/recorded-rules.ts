/** The receiver's rules as rows of an inbox's `meta`. */
import type { InboxRules } from "../inbox/store.ts";

/** Values by key. */
export type RulesMeta = Readonly<Record<"name" | "first_sequence" | "tolerance_ms", string>>;

export function rulesToMeta({ name, firstSequence, toleranceMs }: InboxRules): RulesMeta {
  return { name, first_sequence: String(firstSequence), tolerance_ms: String(toleranceMs) };
}

/** Null when no receiver has opened the inbox yet. */
export function rulesFromMeta(meta: Readonly<Record<keyof RulesMeta, unknown>>): InboxRules | null {
  if (meta.name === undefined) return null;
  const first = String(meta.first_sequence);
  return {
    name: String(meta.name),
    firstSequence: first === "any" ? "any" : Number(first),
    toleranceMs: Number(meta.tolerance_ms),
  };
}
