/** Which schema an inbox has, which one this version has, and what lies between: one rule for all databases. */
import { SetupError } from "../errors.ts";
import type { InboxRules, OpenContext } from "../inbox/store.ts";

export interface Migration {
  readonly sql: string;
  /** The oldest schema whose code can still read and write the inbox after it: additions leave it as it is. */
  readonly minReader: number;
}

/** What an inbox says of itself; both are 0 when there is none yet. */
export interface FoundSchema {
  readonly schema: number;
  readonly minReader: number;
}

/**
 * The migrations that an inbox lacks, in their order.
 *
 * @throws SetupError `inbox_too_new`, or `migration_needed` with `"check"`
 */
export function missingMigrations(
  { schema, minReader }: FoundSchema,
  known: readonly Migration[],
  mode: OpenContext["migrate"],
): readonly Migration[] {
  const newest = known.length;
  const fields = { schema, newest };
  if (schema > newest && minReader > newest) {
    const message = `The inbox has schema ${schema}; this version knows ${newest}: upgrade oncehook.`;
    throw new SetupError("inbox_too_new", message, { fields });
  }
  const missing = known.slice(schema);
  if (missing.length > 0 && mode === "check") {
    const message = `The inbox has schema ${schema} and needs ${newest}: open it once with migrate: "auto".`;
    throw new SetupError("migration_needed", message, { fields });
  }
  return missing;
}

// The receiver's rules as rows of an inbox's `meta`.

/** Values by key. */
type RulesMeta = Readonly<Record<"name" | "first_sequence" | "tolerance_ms", string>>;

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
