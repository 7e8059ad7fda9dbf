/** Tells whoever watches what happens: the event stream of the control API, and tests. */
import type { Delivery, EventRecord, RequestRecord } from "./state/records.ts";

/** One thing that happened, in the order it happened. */
export type JournalEntry =
  | { readonly type: "request"; readonly request: RequestRecord }
  | { readonly type: "event"; readonly event: EventRecord }
  | { readonly type: "delivery"; readonly delivery: Delivery }
  | { readonly type: "reset" };

export interface Journal {
  /** What a listener brings about is told when all have heard of what it acted on: everybody hears everything in the same order. */
  tell(entry: JournalEntry): void;
  /** Calls `listener` for each entry from now on; the returned function ends that. */
  watch(listener: (entry: JournalEntry) => void): () => void;
}

export function createJournal(): Journal {
  const listeners = new Set<(entry: JournalEntry) => void>();
  const untold: JournalEntry[] = [];
  let isTelling = false;
  const tellAll = (entry: JournalEntry) => {
    for (const listener of listeners) {
      try {
        listener(entry);
      } catch (error) {
        // A watcher's mistake is its own, as with an EventTarget: it must not break what is being told.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  };
  return {
    tell(entry) {
      untold.push(entry);
      if (isTelling) return;
      isTelling = true;
      for (let next = untold.shift(); next !== undefined; next = untold.shift()) tellAll(next);
      isTelling = false;
    },
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
