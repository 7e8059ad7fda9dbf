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

/** What the ids of each thing begin with: `msg_000001`. */
export type IdPrefix = "req" | "msg" | "evt" | "dlv" | "conv" | "num" | "provider" | "log" | "tok" | "fault" | "secret";

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
  /** The last number given out per prefix. */
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
  /** The next id: `msg_000001`. */
  nextId(prefix: IdPrefix): string;
  /** The next number of a prefix, from 1. */
  nextNumber(prefix: IdPrefix): number;
}

export function createState(onChange: ChangeListener): State {
  const table = <T>(name: keyof Tables) => new Table<T>(name, onChange);
  const counters = table<number>("counters");
  const nextNumber = (prefix: IdPrefix) => {
    const number = (counters.get(prefix) ?? 0) + 1;
    counters.put(prefix, number);
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
    nextId: (prefix) => `${prefix}_${String(nextNumber(prefix)).padStart(6, "0")}`,
  };
}
