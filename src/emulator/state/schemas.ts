/** The records of `records.ts` as schemas, one per table: what an imported state must fit, and what the control API answers with. */
import { z } from "zod";
import { isHttpUrl } from "../options.ts";
import {
  type Account,
  type Attempt,
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

const id = z.string().min(1);
/** Epoch ms, up to the last one that a date can have. */
const instant = z.int().min(0).max(8_640_000_000_000_000);
/** An attempt to anything else would fail in the emulator itself, not at a receiver. */
const target = z.string().refine(isHttpUrl, "must be an http or https URL");
const count = z.int().min(0);
/** Any word: the specification shows ACTIVE only. */
export const statusSchema = z
  .string()
  .regex(/^[A-Za-z][\w-]{0,63}$/, "must be a word, such as ACTIVE, INACTIVE or SUSPENDED");
const kind = z.enum(["inbound", "delivery"]);
const headers = z.record(z.string(), z.string());
const texts = z.array(z.string());

const accountSchema = z.strictObject({ accountId: id, status: statusSchema }) satisfies z.ZodType<Account>;

export const clientSchema = z.strictObject({
  apiClientId: id,
  name: z.string(),
  status: statusSchema,
  accountId: id,
  clientId: id,
  clientSecret: id,
  capabilities: texts,
}) satisfies z.ZodType<Client>;

const webhookSchema = z.strictObject({
  apiClientId: id,
  kind,
  endpointUrl: target.nullable(),
  enabled: z.boolean(),
  signingEnabled: z.boolean(),
  currentSecret: z.string().nullable(),
  previousSecret: z.string().nullable(),
  previousValidUntil: instant.nullable(),
  rotatedAt: instant.nullable(),
}) satisfies z.ZodType<WebhookConfig>;

export const phoneNumberSchema = z.strictObject({
  numberId: id,
  e164: z.string(),
  status: statusSchema,
  campaignRegId: z.string().nullable(),
  smsEnabled: z.boolean(),
  mmsEnabled: z.boolean(),
  webhookInboundOverride: target.nullable(),
  webhookDeliveryOverride: target.nullable(),
  apiClientId: id,
}) satisfies z.ZodType<PhoneNumber>;

const tokenSchema = z.strictObject({
  accessToken: id,
  apiClientId: id,
  expiresAt: instant,
}) satisfies z.ZodType<Token>;

const sentSchema = z.looseObject({
  results: z.array(z.looseObject({ messageId: z.string() })),
  errors: z.array(z.looseObject({})),
});

const idempotencySchema = z
  .strictObject({
    id,
    fingerprint: z.string(),
    status: z.literal([202, 500]),
    body: z.string(),
    createdAt: instant,
  })
  .refine(({ status, body }) => status === 500 || isSent(body), {
    path: ["body"],
    message: "must be the answer to a send",
  }) satisfies z.ZodType<IdempotencyRecord>;

function isSent(body: string): boolean {
  try {
    return sentSchema.safeParse(JSON.parse(body)).success;
  } catch {
    return false;
  }
}

const stepSchema = z.strictObject({
  at: instant.nullable(),
  eventType: z.enum(["message.queued", "message.sent", "message.delivery", "message.failed", "message.inbound"]),
  sequence: count.nullable(),
  attemptDelayMs: count,
  copies: count,
});

export const messageSchema = z.strictObject({
  messageId: id,
  direction: z.literal("outbound"),
  apiClientId: id,
  numberId: id,
  from: z.string(),
  to: z.string(),
  messageType: z.enum(["SMS", "MMS"]),
  text: z.string().nullable(),
  externalReference: z.string(),
  status: z.enum(["QUEUED", "sent", "delivered", "failed"]),
  sequence: count,
  createdAt: instant,
  providerMessageRef: z.string().optional(),
  steps: z.array(stepSchema),
}) satisfies z.ZodType<Omit<Message, "providerMessageRef">>;

export const inboundMessageSchema = z.strictObject({
  messageId: id,
  direction: z.literal("inbound"),
  apiClientId: id,
  numberId: id,
  conversationId: id,
  from: z.string(),
  to: z.string(),
  text: z.string(),
  media: z.array(z.unknown()),
  createdAt: instant,
}) satisfies z.ZodType<InboundMessage>;

export const eventSchema = z.strictObject({
  eventId: id,
  kind,
  eventType: z.string(),
  apiClientId: id,
  numberId: id,
  messageId: id,
  sequence: z.int().nullable(),
  occurredAt: instant,
  body: z.string(),
}) satisfies z.ZodType<EventRecord>;

const attemptSchema = z.strictObject({
  trigger: z.enum(["schedule", "redelivery", "recovery"]),
  at: instant,
  durationMs: z.number().min(0),
  url: z.string().nullable(),
  requestHeaders: headers,
  status: z.int().nullable(),
  error: z.string().nullable(),
  responseHeaders: headers,
  responseBody: z.string(),
  faults: texts,
}) satisfies z.ZodType<Attempt>;

export const deliverySchema = z.strictObject({
  deliveryId: id,
  eventId: id,
  messageId: id,
  eventType: z.string(),
  state: z.enum(["pending", "delivered", "failed", "no_target", "dropped"]),
  createdAt: instant,
  nextAttemptAt: instant.nullable(),
  scheduledAttempts: count,
  attempts: z.array(attemptSchema),
  droppedAttempts: count,
  target: z.strictObject({ url: target, secrets: texts.nullable() }).nullable(),
  frozen: z.strictObject({ signedAt: instant, aheadMs: z.int(), secrets: texts }).nullable(),
}) satisfies z.ZodType<Delivery>;

export const requestSchema = z.strictObject({
  number: count,
  at: instant,
  method: z.string(),
  path: z.string(),
  apiClientId: z.string().nullable(),
  headers,
  body: z.unknown(),
  status: z.int(),
  responseBody: z.unknown(),
  warnings: texts,
  faults: texts,
}) satisfies z.ZodType<RequestRecord>;

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

// Under which id each table has a record: its own, so that whoever finds one by its id finds the right one.

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
