/** Remembers identities that are committed, so that a repeat is answered without a write. Never what is not yet committed. */
import type { EventId, LaneId } from "../inbox/record.ts";

/** About 4 MB; a service retries within 81 minutes, and whatever was forgotten the inbox knows. */
const MOST_REMEMBERED = 10_000;

export interface Remembered {
  readonly event: EventId;
  readonly lane: LaneId;
  readonly digest: Uint8Array;
}

export class CommittedIdentities {
  readonly #known = new Map<string, Remembered>();

  /** The event that `key` names, when this body is the one that was committed; a differing one is for the store to judge. */
  find(key: string, digest: Uint8Array): Remembered | null {
    const known = this.#known.get(key);
    return known !== undefined && Buffer.compare(known.digest, digest) === 0 ? known : null;
  }

  remember(key: string, committed: Remembered): void {
    if (this.#known.size >= MOST_REMEMBERED) {
      const oldest = this.#known.keys().next();
      if (!oldest.done) this.#known.delete(oldest.value);
    }
    this.#known.set(key, committed);
  }

  /** An operator acted: what a repeat should be answered may have changed. */
  clear(): void {
    this.#known.clear();
  }
}
