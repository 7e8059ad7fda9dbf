/** Under which id each table has a record: its own, so that whoever finds one by its id finds the right one. */
import {
  type Account,
  type Client,
  type Delivery,
  type EventRecord,
  type IdempotencyRecord,
  type InboundMessage,
  type Message,
  type PhoneNumber,
  type RequestRecord,
  type Token,
  type WebhookConfig,
  webhookId,
} from "./records.ts";
import type { Tables } from "./state.ts";

type IdOf<Record> = (record: Record) => string;

/** Null for tables of plain numbers, whose ids are names. */
const RECORD_IDS = {
  accounts: ({ accountId }: Account) => accountId,
  clients: ({ apiClientId }: Client) => apiClientId,
  webhooks: ({ apiClientId, kind }: WebhookConfig) => webhookId(apiClientId, kind),
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
