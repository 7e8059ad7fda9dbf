/**
 * Keeps the state within its bounds (`keep`): what has ended goes, the oldest by creation first; what is still under way never does.
 * Tokens and idempotency records also end by their age, where they are made.
 */
import { Heap } from "../scheduler.ts";
import type { Delivery, EventRecord, InboundMessage, Message } from "./records.ts";
import type { State, StateChange, Table } from "./state.ts";

/** A message with all that belongs to it, or the events of a message that there is no record of. */
interface Group extends Ending {
  readonly messageId: string;
  hasRecord: boolean;
  /** Whether the message itself has more to come. */
  isOpen: boolean;
  /** Deliveries that have not ended. */
  pending: number;
  readonly events: Map<string, KeptEvent>;
  /** Of its events; null while there are too few to exceed their bound. */
  endedEvents: EndedQueue<KeptEvent> | null;
}

interface KeptEvent extends Ending {
  readonly eventId: string;
  /** Deliveries that have not ended. */
  pending: number;
  readonly deliveries: string[];
}

/** Of one message, for a program that triggers events under one name without end. */
const MOST_ENDED_EVENTS = 1_000;

/** With fewer, a send that is repeated while its 24 h last would be sent twice (SND-17, SND-30). */
const LEAST_IDEMPOTENCY_KEYS = 10_000;

/** It hears of every change, so that no bound is found by looking through tables: a change costs O(log n). */
export class Keeper {
  readonly #keep: number;
  readonly #groups = new Map<string, Group>();
  readonly #ended = new EndedQueue<Group>();
  /** Groups with more ended events than their bound. */
  readonly #overfull = new Set<Group>();
  #place = 0;
  #isPlanned = false;

  constructor(keep: number) {
    this.#keep = keep;
  }

  /** The bounds hold again by the end of the event loop's turn: a call has several steps, and must find what it has just put. */
  onChange(change: StateChange, state: State): void {
    this.#hear(change);
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      this.enforce(state);
    });
  }

  #hear({ table, id, record, previous }: StateChange): void {
    switch (table) {
      case "messages":
      case "inboundMessages":
        return record === undefined ? this.#dropRecord(id) : this.#putRecord(record as Message | InboundMessage);
      case "events":
        return record === undefined ? this.#dropEvent(previous as EventRecord) : this.#putEvent(record as EventRecord);
      case "deliveries":
        if (record !== undefined) this.#putDelivery(record as Delivery, previous as Delivery | undefined);
    }
  }

  /** Removes what is over the bounds. */
  enforce(state: State): void {
    for (const group of this.#overfull) this.#evictEvents(state, group);
    this.#overfull.clear();
    for (let group = this.#ended.oldest(); group !== undefined && this.#ended.size > this.#keep; ) {
      this.#evict(state, group);
      group = this.#ended.oldest();
    }
    const { requests, idempotency } = state;
    removeOldest(requests, this.#keep);
    removeOldest(idempotency, Math.max(this.#keep, LEAST_IDEMPOTENCY_KEYS));
  }

  #putRecord(record: Message | InboundMessage): void {
    const group = this.#groupOf(record.messageId, record.createdAt);
    group.hasRecord = true;
    // Whatever its status says: with no steps left, nothing follows. A step without a time waits to be asked for.
    group.isOpen = record.direction === "outbound" && record.steps.length > 0;
    this.#settle(group);
  }

  #putEvent({ eventId, messageId, occurredAt }: EventRecord): void {
    const group = this.#groupOf(messageId, occurredAt);
    if (!group.events.has(eventId)) {
      const event = { ...this.#ending(occurredAt), eventId, pending: 0, deliveries: [] };
      group.events.set(eventId, event);
      this.#settleEvent(group, event);
    }
    this.#settle(group);
  }

  #putDelivery(delivery: Delivery, previous: Delivery | undefined): void {
    const group = this.#groups.get(delivery.messageId);
    const event = group?.events.get(delivery.eventId);
    if (group === undefined || event === undefined) return;
    if (previous === undefined) event.deliveries.push(delivery.deliveryId);
    const change = pendingOf(delivery) - pendingOf(previous);
    group.pending += change;
    event.pending += change;
    this.#settleEvent(group, event);
    this.#settle(group);
  }

  #groupOf(messageId: string, createdAt: number): Group {
    const group = this.#groups.get(messageId) ?? {
      ...this.#ending(createdAt),
      messageId,
      hasRecord: false,
      isOpen: false,
      pending: 0,
      events: new Map(),
      endedEvents: null,
    };
    this.#groups.set(messageId, group);
    return group;
  }

  #ending(createdAt: number): Ending {
    return { createdAt, place: this.#place++, hasEnded: false, isQueued: false };
  }

  #settle(group: Group): void {
    this.#ended.set(group, !group.isOpen && group.pending === 0);
  }

  #settleEvent(group: Group, event: KeptEvent): void {
    if (group.endedEvents !== null) group.endedEvents.set(event, event.pending === 0);
    else if (group.events.size > MOST_ENDED_EVENTS) {
      group.endedEvents = new EndedQueue();
      for (const each of group.events.values()) group.endedEvents.set(each, each.pending === 0);
    }
    if (group.endedEvents !== null && group.endedEvents.size > MOST_ENDED_EVENTS) this.#overfull.add(group);
  }

  #evict(state: State, group: Group): void {
    for (const event of [...group.events.values()]) removeEvent(state, event);
    state.messages.remove(group.messageId);
    state.inboundMessages.remove(group.messageId);
  }

  #evictEvents(state: State, { endedEvents }: Group): void {
    if (endedEvents === null) return;
    let oldest = endedEvents.oldest();
    while (oldest !== undefined && endedEvents.size > MOST_ENDED_EVENTS) {
      removeEvent(state, oldest);
      oldest = endedEvents.oldest();
    }
  }

  #dropRecord(messageId: string): void {
    const group = this.#groups.get(messageId);
    if (group === undefined) return;
    group.hasRecord = false;
    this.#forgetWhenEmpty(group);
  }

  #dropEvent({ messageId, eventId }: EventRecord): void {
    const group = this.#groups.get(messageId);
    const event = group?.events.get(eventId);
    if (group === undefined || event === undefined) return;
    group.events.delete(eventId);
    group.endedEvents?.set(event, false);
    this.#forgetWhenEmpty(group);
  }

  #forgetWhenEmpty(group: Group): void {
    if (group.hasRecord || group.events.size > 0) return;
    this.#groups.delete(group.messageId);
    this.#overfull.delete(group);
    this.#ended.set(group, false);
  }
}

/** Its deliveries first: none is left without its event. */
function removeEvent(state: State, { eventId, deliveries }: KeptEvent): void {
  for (const deliveryId of deliveries) state.deliveries.remove(deliveryId);
  state.events.remove(eventId);
}

function pendingOf(delivery: Delivery | undefined): 0 | 1 {
  return delivery?.state === "pending" ? 1 : 0;
}

function removeOldest<T>(table: Table<T>, keep: number): void {
  for (let oldest = table.oldest(); oldest !== undefined && table.size > keep; oldest = table.oldest())
    table.remove(oldest[0]);
}

// What has ended, the oldest by its creation first, whichever ended first.

/** Something that is created once, and ends: perhaps several times, for it can be taken up again. */
export interface Ending {
  /** Epoch ms. */
  readonly createdAt: number;
  /** Decides between those of one time: the lower is the older. */
  readonly place: number;
  hasEnded: boolean;
  /** Kept by the queue. */
  isQueued: boolean;
}

/**
 * A record that is used again stays in the heap until it comes to the front: its place would be the same when it ends anew, so
 * each is in it once.
 */
export class EndedQueue<T extends Ending> {
  readonly #heap = new Heap<T>((a, b) => (a.createdAt === b.createdAt ? a.place < b.place : a.createdAt < b.createdAt));
  #size = 0;

  /** How many have ended. */
  get size(): number {
    return this.#size;
  }

  /** Tells whether one has ended now; one that is removed counts as not ended. */
  set(item: T, hasEnded: boolean): void {
    if (item.hasEnded === hasEnded) return;
    item.hasEnded = hasEnded;
    this.#size += hasEnded ? 1 : -1;
    if (!hasEnded) return this.#clean();
    if (item.isQueued) return;
    item.isQueued = true;
    this.#heap.push(item);
  }

  oldest(): T | undefined {
    return this.#heap.peek();
  }

  /** What is in front has ended; so nothing that was removed is held on to for long. */
  #clean(): void {
    for (let first = this.#heap.peek(); first?.hasEnded === false; first = this.#heap.peek()) {
      first.isQueued = false;
      this.#heap.pop();
    }
  }
}
