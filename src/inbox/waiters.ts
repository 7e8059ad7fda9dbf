/** Those who wait for an event's claim to end in this process: requests with `ack: "handled"`, tests, `waitFor`. */
import type { EventId } from "./record.ts";
import type { Ending } from "./settlement.ts";

type Listener = (ending: Ending) => void;

export class Waiters {
  readonly #byEvent = new Map<EventId, Set<Listener>>();

  /** Calls `listener` at each end of a claim of `event`, until the returned function is called. */
  add(event: EventId, listener: Listener): () => void {
    const listeners = this.#byEvent.get(event) ?? new Set();
    listeners.add(listener);
    this.#byEvent.set(event, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#byEvent.delete(event);
    };
  }

  /** How many wait for `event`. */
  count(event: EventId): number {
    return this.#byEvent.get(event)?.size ?? 0;
  }

  ended(event: EventId, ending: Ending): void {
    for (const listener of [...(this.#byEvent.get(event) ?? [])]) listener(ending);
  }
}
