/** All tables of the emulator, and the ids it gives out. */
import type { z } from "zod";
import {
  type Account,
  accountSchema,
  type Client,
  clientSchema,
  count,
  type Delivery,
  deliverySchema,
  type EventRecord,
  eventSchema,
  type IdempotencyRecord,
  type InboundMessage,
  idempotencySchema,
  inboundMessageSchema,
  instant,
  type Message,
  messageSchema,
  type PhoneNumber,
  phoneNumberSchema,
  type RequestRecord,
  requestSchema,
  type Token,
  tokenSchema,
  type WebhookRecord,
  webhookId,
  webhookSchema,
} from "./records.ts";

/** What the ids of each thing begin with: `msg_4f2a91_000001`. */
type IdPrefix = "req" | "msg" | "evt" | "dlv" | "provider";
/** What is counted. */
type Counter = IdPrefix | "log" | "tok" | "secret";

export interface Tables {
  readonly accounts: Table<Account>;
  readonly clients: Table<Client>;
  readonly webhooks: Table<WebhookRecord>;
  readonly numbers: Table<PhoneNumber>;
  readonly tokens: Table<Token>;
  readonly idempotency: Table<IdempotencyRecord>;
  readonly messages: Table<Message>;
  readonly inboundMessages: Table<InboundMessage>;
  readonly events: Table<EventRecord>;
  readonly deliveries: Table<Delivery>;
  readonly requests: Table<RequestRecord>;
  /** The last number given out per `Counter`. */
  readonly counters: Table<number>;
  /** `now`: the emulator's clock, epoch ms, when the state was last kept. */
  readonly meta: Table<number>;
}

/** The names of the tables, in the order of an export. */
export const TABLE_NAMES = [
  "accounts",
  "clients",
  "webhooks",
  "numbers",
  "tokens",
  "idempotency",
  "messages",
  "inboundMessages",
  "events",
  "deliveries",
  "requests",
  "counters",
  "meta",
] as const satisfies readonly (keyof Tables)[];

/** What each table holds. */
export const RECORD_SCHEMAS = {
  accounts: accountSchema,
  clients: clientSchema,
  webhooks: webhookSchema,
  numbers: phoneNumberSchema,
  tokens: tokenSchema,
  idempotency: idempotencySchema,
  messages: messageSchema,
  inboundMessages: inboundMessageSchema,
  events: eventSchema,
  deliveries: deliverySchema,
  requests: requestSchema,
  // Far from where numbers lose their last digits.
  counters: count.max(1_000_000_000_000),
  meta: instant,
} as const satisfies Record<keyof Tables, z.ZodType>;

// The key of each record is its own id, so a search by id finds the right one.

type IdOf<Record> = (record: Record) => string;

/** Null for tables of plain numbers, whose ids are names. */
const RECORD_IDS = {
  accounts: ({ accountId }: Account) => accountId,
  clients: ({ apiClientId }: Client) => apiClientId,
  webhooks: ({ apiClientId, kind }: WebhookRecord) => webhookId(apiClientId, kind),
  numbers: ({ numberId }: PhoneNumber) => numberId,
  tokens: ({ accessToken }: Token) => accessToken,
  idempotency: ({ id }: IdempotencyRecord) => id,
  messages: ({ messageId }: Message) => messageId,
  inboundMessages: ({ messageId }: InboundMessage) => messageId,
  events: ({ eventId }: EventRecord) => eventId,
  deliveries: ({ deliveryId }: Delivery) => deliveryId,
  requests: ({ number }: RequestRecord) => String(number),
  counters: null,
  meta: null,
} as const satisfies Record<keyof Tables, IdOf<never> | null>;

/** Whether a record that fits its table's schema is under its own id. As an id, `__proto__` is none: objects lose it. */
export function isUnderItsId(table: keyof Tables, id: string, record: unknown): boolean {
  const idOf = RECORD_IDS[table] as IdOf<unknown> | null;
  return id !== "__proto__" && (idOf === null || idOf(record) === id);
}

export interface State extends Tables {
  /** The next id, with the state's tag: `msg_4f2a91_000001`. */
  nextId(prefix: IdPrefix): string;
  /** The next number of a counter, from 1. */
  nextNumber(counter: Counter): number;
}

/** The number in an id that a state of any tag gave out; 0 for one of another form. */
export function numberOf(prefix: IdPrefix, id: string): number {
  const [, found, number] = /^([a-z]+)_[0-9a-f]{6}_(\d+)$/.exec(id) ?? [];
  return found === prefix ? Number(number) : 0;
}

/** An empty state. `tag` tells its ids from those of other states, which a receiver may remember. */
export function createState(onChange: ChangeListener, tag: string): State {
  const table = <T>(name: keyof Tables) => new Table<T>(name, onChange);
  const counters = table<number>("counters");
  const nextNumber = (counter: Counter) => {
    const number = (counters.get(counter) ?? 0) + 1;
    counters.put(counter, number);
    return number;
  };
  return {
    accounts: table("accounts"),
    clients: table("clients"),
    webhooks: table("webhooks"),
    numbers: table("numbers"),
    tokens: table("tokens"),
    idempotency: table("idempotency"),
    messages: table("messages"),
    inboundMessages: table("inboundMessages"),
    events: table("events"),
    deliveries: table("deliveries"),
    requests: table("requests"),
    counters,
    meta: table("meta"),
    nextNumber,
    nextId: (prefix) => `${prefix}_${tag}_${String(nextNumber(prefix)).padStart(6, "0")}`,
  };
}

// A table of records by id, in insertion order, that tells a listener of each change. Records are replaced, never changed.

/** One change of a table: a new record has no `previous`, a removed one no `record`. */
export interface StateChange {
  readonly table: string;
  readonly id: string;
  readonly record: unknown;
  readonly previous: unknown;
}

/** Called after each change. */
type ChangeListener = (change: StateChange) => void;

/** A record's place among the others. */
interface Place<T> {
  readonly id: string;
  record: T;
  older: Place<T> | undefined;
  newer: Place<T> | undefined;
}

/**
 * The places are a list besides the map's own order: a map finds its first entry only by passing all that was removed before
 * it, and an iterator that waits there keeps everything that the map ever held.
 */
export class Table<T> {
  readonly name: string;
  readonly #places = new Map<string, Place<T>>();
  readonly #onChange: ChangeListener;
  #oldest: Place<T> | undefined;
  #newest: Place<T> | undefined;

  constructor(name: string, onChange: ChangeListener) {
    this.name = name;
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#places.size;
  }

  has(id: string): boolean {
    return this.#places.has(id);
  }

  get(id: string): T | undefined {
    return this.#places.get(id)?.record;
  }

  put(id: string, record: T): void {
    const place = this.#places.get(id);
    const previous = place?.record;
    if (place === undefined) this.#append({ id, record, older: this.#newest, newer: undefined });
    else place.record = record;
    this.#onChange({ table: this.name, id, record, previous });
  }

  /** Replaces some fields of a record; a record that is gone stays gone. */
  update(id: string, fields: Partial<T>): void {
    const record = this.get(id);
    if (record !== undefined) this.put(id, { ...record, ...fields });
  }

  remove(id: string): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    if (place.older === undefined) this.#oldest = place.newer;
    else place.older.newer = place.newer;
    if (place.newer === undefined) this.#newest = place.older;
    else place.newer.older = place.older;
    // Else what was removed would hold on to what came after it.
    place.newer = undefined;
    this.#onChange({ table: this.name, id, record: undefined, previous: place.record });
  }

  clear(): void {
    for (const id of [...this.#places.keys()]) this.remove(id);
  }

  *entries(): Generator<[string, T], undefined> {
    for (const [id, { record }] of this.#places) yield [id, record];
  }

  *values(): Generator<T, undefined> {
    for (const { record } of this.#places.values()) yield record;
  }

  /** The record that has been there longest. */
  oldest(): [string, T] | undefined {
    return this.#oldest === undefined ? undefined : [this.#oldest.id, this.#oldest.record];
  }

  #append(place: Place<T>): void {
    if (this.#newest === undefined) this.#oldest = place;
    else this.#newest.newer = place;
    this.#newest = place;
    this.#places.set(place.id, place);
  }
}
