/** Remembers identities that are committed, so that a repeat is answered without a write. Never what is not yet committed. */
import type { EventId, LaneId } from "../inbox/record.ts";
import type { Acceptance } from "../inbox/store.ts";

/** Of each generation; both take about 4 MB. A service retries within 81 minutes, and whatever was forgotten the inbox knows. */
const MOST_REMEMBERED = 5_000;

export interface Remembered {
  readonly event: EventId;
  readonly lane: LaneId;
  readonly digest: Uint8Array;
}

/** What a store would answer for the same body again. */
export function repeatOf(
  { event, lane, digest }: Remembered,
  signedAt: number,
): Extract<Acceptance, { event: EventId }> {
  return { outcome: "duplicate", event, lane, state: "done", digest, signedAt, conflict: false };
}

/**
 * Two generations, of which the older is forgotten as a whole: to delete the oldest entry of one map costs more than all
 * the rest, because its iterator passes the places of the entries deleted before.
 */
export class CommittedIdentities {
  #recent = new Map<string, Remembered>();
  #older = new Map<string, Remembered>();

  /** The event that `key` names, when this body is the one that was committed; a differing one is for the store to judge. */
  find(key: string, digest: Uint8Array): Remembered | null {
    const known = this.#recent.get(key) ?? this.#older.get(key);
    return known !== undefined && Buffer.compare(known.digest, digest) === 0 ? known : null;
  }

  remember(key: string, committed: Remembered): void {
    if (this.#recent.size >= MOST_REMEMBERED) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, committed);
  }

  /** An operator acted: what a repeat should be answered may have changed. */
  clear(): void {
    this.#recent.clear();
    this.#older.clear();
  }
}
