/** How lanes by sequence treat missing numbers: each entry has rules of its own. */
import type { EntryPreset, SequenceRules } from "./store.ts";

/** Those of an entry that nobody has recorded. */
export const DEFAULT_SEQUENCE_RULES: SequenceRules = { firstSequence: 1, lastRetryMs: 85 * 60_000 };

/** The rules of each entry, as an open inbox has read them. */
export class SequenceBook {
  readonly #byEntry = new Map<string, SequenceRules>();

  /** Takes what was read of recorded entries. */
  learn(entries: readonly EntryPreset[]): void {
    // A lane can outlast the source that put events in order by sequence.
    for (const { name, sequence } of entries) this.#byEntry.set(name, sequence ?? DEFAULT_SEQUENCE_RULES);
  }

  /** False: another process may have recorded the entry since it was read last. */
  knows(entry: string): boolean {
    return this.#byEntry.has(entry);
  }

  of(entry: string): SequenceRules {
    return this.#byEntry.get(entry) ?? DEFAULT_SEQUENCE_RULES;
  }
}
