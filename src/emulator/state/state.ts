/** All tables of the emulator, and the ids it gives out. */
import type {
  Account,
  Client,
  Delivery,
  EventRecord,
  IdempotencyRecord,
  InboundMessage,
  Message,
  PhoneNumber,
  RequestRecord,
  Token,
  WebhookConfig,
} from "./records.ts";
import { type ChangeListener, Table } from "./table.ts";

/** What the ids of each thing begin with: `msg_4f2a91_000001`. */
export type IdPrefix = "req" | "msg" | "evt" | "dlv" | "provider";
/** What is counted. */
export type Counter = IdPrefix | "log" | "tok" | "secret";

export interface Tables {
  readonly accounts: Table<Account>;
  readonly clients: Table<Client>;
  readonly webhooks: Table<WebhookConfig>;
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
