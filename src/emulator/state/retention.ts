/**
 * Keeps the state within its bounds: what has ended goes, the oldest first; what is still under way never does. Tokens and
 * idempotency records also end by their age, where they are made.
 */
import type { Delivery, EventRecord, Message } from "./records.ts";
import type { State } from "./state.ts";
import { type Change, Table } from "./table.ts";

/** A message with all that belongs to it, or the events of a message that there is no record of. */
interface Group {
  /** Whether the message itself has more to come. */
  open: boolean;
  /** Deliveries that have not ended. */
  pending: number;
  readonly events: string[];
  readonly deliveries: string[];
}

/** It hears of every change, so that no bound is found by looking through tables: each change costs the same at any size. */
export class Retention {
  readonly #keep: number;
  readonly #groups = new Map<string, Group>();
  /** Ids of messages that have ended, in that order. */
  readonly #ended = new Table<true>("ended", () => {});

  constructor(keep: number) {
    this.#keep = keep;
  }

  onChange({ table, id, record, previous }: Change): void {
    switch (table) {
      case "messages":
        return this.#change(id, record, (group) => {
          group.open = !hasEnded(record as Message);
        });
      case "inboundMessages":
        return this.#change(id, record, () => {});
      case "events":
        return this.#change((record ?? previous) as EventRecord, record, (group) => {
          if (previous === undefined) group.events.push(id);
        });
      case "deliveries":
        return this.#change((record ?? previous) as Delivery, record, (group) => {
          if (previous === undefined) group.deliveries.push(id);
          group.pending += pendingOf(record) - pendingOf(previous);
        });
    }
  }

  /** Removes what is over the bounds. */
  enforce(state: State): void {
    while (this.#ended.size > this.#keep) this.#evict(state, this.#ended.oldest()?.[0] ?? "");
    const { requests, idempotency } = state;
    removeOldest(requests, this.#keep);
    removeOldest(idempotency, this.#keep);
  }

  #change(owner: string | { readonly messageId: string }, record: unknown, apply: (group: Group) => void): void {
    const messageId = typeof owner === "string" ? owner : owner.messageId;
    if (record === undefined) {
      // Besides `#evict`, only a reset or an import removes any of this, and then all of it.
      this.#groups.delete(messageId);
      this.#ended.remove(messageId);
      return;
    }
    const group = this.#groups.get(messageId) ?? { open: false, pending: 0, events: [], deliveries: [] };
    this.#groups.set(messageId, group);
    apply(group);
    if (group.open || group.pending > 0) this.#ended.remove(messageId);
    else this.#ended.put(messageId, true);
  }

  #evict(state: State, messageId: string): void {
    const group = this.#groups.get(messageId);
    this.#ended.remove(messageId);
    this.#groups.delete(messageId);
    for (const id of group?.deliveries ?? []) state.deliveries.remove(id);
    for (const id of group?.events ?? []) state.events.remove(id);
    state.messages.remove(messageId);
    state.inboundMessages.remove(messageId);
  }
}

function hasEnded({ status, steps }: Message): boolean {
  return steps.length === 0 && (status === "delivered" || status === "failed");
}

function pendingOf(delivery: unknown): 0 | 1 {
  return (delivery as Delivery | undefined)?.state === "pending" ? 1 : 0;
}

function removeOldest<T>(table: Table<T>, keep: number): void {
  while (table.size > keep) table.remove(table.oldest()?.[0] ?? "");
}
