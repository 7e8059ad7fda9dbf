/** What the emulator knows, as plain records, each with the schema that an imported or stored one must fit. */
import { z } from "zod";
import { isHttpUrl } from "../options.ts";

// What the emulator knows, as plain records: everything here goes into an export of the state and comes back from it.

/** `ACTIVE` is usable; the specification shows no other value, so every other word is not. */
export type Status = "ACTIVE" | "INACTIVE" | (string & Record<never, never>);

/** An account of the service. */
export interface Account {
  readonly accountId: string;
  readonly status: Status;
}

/** An API client: a machine account of an account. */
export interface Client {
  readonly apiClientId: string;
  readonly name: string;
  readonly status: Status;
  readonly accountId: string;
  /** The OAuth client identifier. */
  readonly clientId: string;
  readonly clientSecret: string;
  readonly capabilities: readonly string[];
}

/** The two kinds of webhooks; each has a default configuration and a number-level override. */
export type Kind = "inbound" | "delivery";

/** A client's default configuration of one kind; its id in the table is `webhookId(apiClientId, kind)`. */
export interface WebhookRecord {
  readonly apiClientId: string;
  readonly kind: Kind;
  readonly endpointUrl: string | null;
  readonly enabled: boolean;
  readonly signingEnabled: boolean;
  readonly currentSecret: string | null;
  readonly previousSecret: string | null;
  /** Epoch ms; the previous secret counts as gone from then on (WHK-26). */
  readonly previousValidUntil: number | null;
  readonly rotatedAt: number | null;
}

/** A phone number that an API client sends from. */
export interface PhoneNumber {
  readonly numberId: string;
  readonly e164: string;
  readonly status: Status;
  readonly campaignRegId: string | null;
  readonly smsEnabled: boolean;
  readonly mmsEnabled: boolean;
  readonly webhookInboundOverride: string | null;
  readonly webhookDeliveryOverride: string | null;
  readonly apiClientId: string;
}

export interface Token {
  readonly accessToken: string;
  readonly apiClientId: string;
  /** Epoch ms; at that very moment it is expired (AUT-11). */
  readonly expiresAt: number;
}

/** A send request's answer, kept for its key (SND-17, SND-30): a 202 (SND-29), or the 500 that a magic recipient gives once per key. */
export interface IdempotencyRecord {
  /** `idempotencyId(apiClientId, key)`. */
  readonly id: string;
  /** What is compared with a repeated send's payload. */
  readonly fingerprint: string;
  readonly status: number;
  /** The answer's exact text. */
  readonly body: string;
  readonly createdAt: number;
}

/** One thing that will happen to an outbound message. */
export interface Step {
  /** Epoch ms on the emulator's clock; null: when somebody asks for it, as in the manual lifecycle. */
  readonly at: number | null;
  readonly eventType: "message.queued" | "message.sent" | "message.delivery" | "message.failed" | "message.inbound";
  /** Null for an inbound answer. */
  readonly sequence: number | null;
  /** Milliseconds from the step to the event's first attempt: how an event comes late or out of order. */
  readonly attemptDelayMs: number;
  /** Deliveries of the same event: 2 for a recipient whose events come twice. */
  readonly copies: number;
}

/** An outbound message: one per accepted recipient (SND-19). */
export interface Message {
  readonly messageId: string;
  readonly direction: "outbound";
  readonly apiClientId: string;
  readonly numberId: string;
  /** The sending number in E.164. */
  readonly from: string;
  readonly to: string;
  readonly messageType: "SMS" | "MMS";
  readonly text: string | null;
  readonly externalReference: string;
  readonly status: "QUEUED" | "sent" | "delivered" | "failed";
  /** The sequence of its newest event. */
  readonly sequence: number;
  readonly createdAt: number;
  /** The provider's name for it, once a `message.delivery` told it. */
  readonly providerMessageRef?: string;
  /** Still to come, by `at`. */
  readonly steps: readonly Step[];
}

/** A customer's message to a number of ours. */
export interface InboundMessage {
  readonly messageId: string;
  readonly direction: "inbound";
  readonly apiClientId: string;
  readonly numberId: string;
  readonly conversationId: string;
  readonly from: string;
  readonly to: string;
  readonly text: string;
  readonly media: readonly unknown[];
  readonly createdAt: number;
}

/** An event, as its body says it. */
export interface EventRecord {
  /** The emulator's own name for it; never on the wire (EVT-12). */
  readonly eventId: string;
  readonly kind: Kind;
  readonly eventType: string;
  readonly apiClientId: string;
  readonly numberId: string;
  readonly messageId: string;
  readonly sequence: number | null;
  readonly occurredAt: number;
  /** The exact text of the body. */
  readonly body: string;
}

/** Where an event goes and how it is signed, looked up for one attempt or, with `resolveTarget: "event"`, for all. */
export interface Target {
  readonly url: string;
  /** Null: unsigned. More than one secret: a signature of each, or of each in turn (DLV-16). */
  readonly secrets: readonly string[] | null;
}

/** What a frozen signature keeps from the first attempt (DLV-17). */
export interface FrozenSignature {
  /** Epoch ms on the clock that signatures carry, which is the receiver's or the emulator's. */
  readonly signedAt: number;
  /** How far the emulator's clock was ahead of that one then, ms. */
  readonly aheadMs: number;
  /** None when it was unsigned. */
  readonly secrets: readonly string[];
}

/**
 * The handing over of one event to its target, with all its attempts. The specification's word is delivery as well; the
 * receiver's side calls each attempt one.
 */
export interface Delivery {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly messageId: string;
  readonly eventType: string;
  readonly state: "pending" | "delivered" | "failed" | "no_target" | "dropped";
  readonly createdAt: number;
  /** When the next scheduled attempt is due; null when none is. */
  readonly nextAttemptAt: number | null;
  /** Scheduled attempts made so far, 0 to 5. Redeliveries do not count (they schedule nothing). */
  readonly scheduledAttempts: number;
  /** Oldest first; at most 100: the scheduled ones and the newest. */
  readonly attempts: readonly Attempt[];
  /** How many more there were. */
  readonly droppedAttempts: number;
  readonly target: Target | null;
  readonly frozen: FrozenSignature | null;
}

/** An attempt at a delivery, with what was sent and answered. */
export interface Attempt {
  readonly trigger: "schedule" | "redelivery" | "recovery";
  /** Epoch ms on the emulator's clock. */
  readonly at: number;
  /** On the emulator's clock: 0 while it stands still. */
  readonly durationMs: number;
  /** Null when there was no target. */
  readonly url: string | null;
  readonly requestHeaders: Readonly<Record<string, string>>;
  /** The answer's status; null when none came. */
  readonly status: number | null;
  /** Why no answer came: `timeout`, `reset`, `refused`, `blocked`, `NO_TARGET`, …; null when one came. */
  readonly error: string | null;
  readonly responseHeaders: Readonly<Record<string, string>>;
  /** At most 16 KiB of the answer; of an older attempt than the newest at most 1 KiB, with " [cut]" at its end when it was longer. */
  readonly responseBody: string;
  /** Faults that were played on it. */
  readonly faults: readonly string[];
}

/** One API call, with secrets taken out. */
export interface RequestRecord {
  readonly number: number;
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly apiClientId: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON or form fields, secrets replaced, or the beginning of their text; `[n bytes]` when neither parsed. */
  readonly body: unknown;
  /** 0 when the connection was reset instead of an answer. */
  readonly status: number;
  readonly responseBody: unknown;
  readonly warnings: readonly string[];
  readonly faults: readonly string[];
}

export const webhookId = (apiClientId: string, kind: Kind): string => `${apiClientId}/${kind}`;
export const idempotencyId = (apiClientId: string, key: string): string => JSON.stringify([apiClientId, key]);

// Which secrets of a webhook configuration are valid.

/** The previous secret while it is valid: up to, and not at, `previousValidUntil` (WHK-26). */
export function previousSecretAt(config: WebhookRecord, now: number): string | null {
  const { previousSecret, previousValidUntil } = config;
  return previousValidUntil !== null && now < previousValidUntil ? previousSecret : null;
}

// The records of `records.ts` as schemas, one per table: what an imported state must fit, and what the control API answers with.

const id = z.string().min(1);
/** Epoch ms, up to the last one that a date can have. */
export const instant = z.int().min(0).max(8_640_000_000_000_000);
/** An attempt to anything else would fail in the emulator itself, not at a receiver. */
const target = z.string().refine(isHttpUrl, "must be an http or https URL");
export const count = z.int().min(0);
/** Any word: the specification shows ACTIVE only. */
export const statusSchema = z
  .string()
  .regex(/^[A-Za-z][\w-]{0,63}$/, "must be a word, such as ACTIVE, INACTIVE or SUSPENDED");
const kind = z.enum(["inbound", "delivery"]);
const headers = z.record(z.string(), z.string());
const texts = z.array(z.string());

export const accountSchema = z.strictObject({ accountId: id, status: statusSchema }) satisfies z.ZodType<Account>;

export const clientSchema = z.strictObject({
  apiClientId: id,
  name: z.string(),
  status: statusSchema,
  accountId: id,
  clientId: id,
  clientSecret: id,
  capabilities: texts,
}) satisfies z.ZodType<Client>;

export const webhookSchema = z.strictObject({
  apiClientId: id,
  kind,
  endpointUrl: target.nullable(),
  enabled: z.boolean(),
  signingEnabled: z.boolean(),
  currentSecret: z.string().nullable(),
  previousSecret: z.string().nullable(),
  previousValidUntil: instant.nullable(),
  rotatedAt: instant.nullable(),
}) satisfies z.ZodType<WebhookRecord>;

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

export const tokenSchema = z.strictObject({
  accessToken: id,
  apiClientId: id,
  expiresAt: instant,
}) satisfies z.ZodType<Token>;

const sentSchema = z.looseObject({
  results: z.array(z.looseObject({ messageId: z.string() })),
  errors: z.array(z.looseObject({})),
});

export const idempotencySchema = z
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
