/** Keeps the state: within its bounds (`keep`), and in a file when there is one (`state`). */
import { SetupError } from "../../errors.ts";
import type { EmulatorTime } from "../clock.ts";
import type { Settings } from "../options.ts";
import { Heap } from "../scheduler.ts";
import type { Delivery, EventRecord, InboundMessage, Message } from "./records.ts";
import {
  isUnderItsId,
  RECORD_SCHEMAS,
  type State,
  type StateChange,
  TABLE_NAMES,
  type Table,
  type Tables,
} from "./state.ts";
import { Changes, openStateFile, type StateFile, type StoredRecord } from "./state-file.ts";

export class Keeper {
  readonly #logger: Settings["logger"];
  readonly #retention: Retention;
  readonly #file: StateFile | null;
  readonly #changes = new Changes();
  #kept: { readonly state: State; readonly time: EmulatorTime } | null = null;
  #isLoading = false;
  #isPlanned = false;
  #isClosed = false;

  constructor({ keep, logger }: Settings, file: StateFile | null) {
    this.#logger = logger;
    this.#retention = new Retention(keep);
    this.#file = file;
  }

  /**
   * Hears of every change of the state. Once started, it commits by the end of the event loop's turn, unless an answer's commit
   * came before: a call has several steps, and one transaction is enough for them.
   */
  readonly onChange = (change: StateChange): void => {
    this.#retention.onChange(change);
    if (this.#file !== null && !this.#isLoading) this.#changes.add(change);
    if (this.#isPlanned || this.#kept === null) return;
    this.#isPlanned = true;
    setImmediate(() => this.#commitPlanned());
  };

  /** Fills an empty state from the file; false when there is none, or nothing in it. */
  load(state: State): boolean {
    if (this.#file === null) return false;
    this.#isLoading = true;
    // A commit may have written a delivery before its event: what hears of it here must know the event.
    const records = [...this.#file.read()].sort((a, b) => rankOf(a) - rankOf(b));
    for (const { name, id, json } of records) {
      (tableNamed(state, name) as Table<unknown>).put(id, parsed(name, id, json));
    }
    this.#isLoading = false;
    return records.length > 0;
  }

  /** From now on, all that changes is kept. */
  start(state: State, time: EmulatorTime): void {
    this.#kept = { state, time };
    this.commit();
  }

  /** Drops what is over the bounds and writes what changed, all or nothing. What could not be written is tried again next time. */
  commit(): void {
    if (this.#kept === null) return;
    const { state, time } = this.#kept;
    this.#retention.enforce(state);
    if (this.#file === null) return;
    const now = time.now();
    if (state.meta.get("now") !== now) state.meta.put("now", now);
    if (this.#changes.isEmpty) return;
    this.#file.write(this.#changes);
    this.#changes.clear();
  }

  /** Nothing that happens from now on is kept. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Keeps nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#kept = null;
    this.#file?.close();
  }

  #commitPlanned(): void {
    try {
      if (this.#file === null || !this.#changes.isEmpty) this.commit();
    } catch (error) {
      this.#logger.error({ reason: (error as Error).message }, "The state could not be kept in its file.");
    } finally {
      this.#isPlanned = false;
    }
  }
}

/** @throws SetupError when the file cannot be opened or is none of the emulator's */
export async function openKeeper(settings: Settings): Promise<Keeper> {
  return new Keeper(settings, settings.state === undefined ? null : await openStateFile(settings.state));
}

/** A table's place in an export, in whose order an import is taken as well. */
function rankOf({ name }: StoredRecord): number {
  return (TABLE_NAMES as readonly string[]).indexOf(name);
}

function tableNamed(state: State, name: string): Tables[keyof Tables] {
  if (!Object.hasOwn(RECORD_SCHEMAS, name)) throw damaged(name);
  return state[name as keyof Tables];
}

/** What the emulator wrote fits; what somebody edited must as well, or calls would fail later without a reason. */
function parsed(name: string, id: string, json: string): unknown {
  const record = fitting(name, json);
  if (!isUnderItsId(name as keyof Tables, id, record)) throw damaged(name);
  return record;
}

function fitting(name: string, json: string): unknown {
  try {
    const record: unknown = JSON.parse(json);
    RECORD_SCHEMAS[name as keyof Tables].parse(record);
    // As it was written, not as the schema orders its fields: an export before and after is the same text.
    return record;
  } catch (cause) {
    throw damaged(name, cause);
  }
}

function damaged(name: string, cause?: unknown): SetupError {
  const message = `The file of the option "state" is damaged: a record of ${name} does not fit. Remove the file.`;
  return new SetupError("invalid_option", message, { cause, fields: { option: "state" } });
}

// Keeps the state within its bounds: what has ended goes, the oldest by creation first; what is still under way never does. Tokens and
// idempotency records also end by their age, where they are made.

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
class Retention {
  readonly #keep: number;
  readonly #groups = new Map<string, Group>();
  readonly #ended = new EndedQueue<Group>();
  /** Groups with more ended events than their bound. */
  readonly #overfull = new Set<Group>();
  #place = 0;

  constructor(keep: number) {
    this.#keep = keep;
  }

  onChange({ table, id, record, previous }: StateChange): void {
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
