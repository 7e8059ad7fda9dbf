/** The TypeScript types of the service's events, with notes from its specification. */

/** A string with suggestions: values that the specification does not show stay possible. */
type OpenString<Known extends string> = Known | (string & Record<never, never>);

/** The fields of every event of a known type. */
interface CommonFields {
  /** When it happened, in epoch milliseconds, by the service's clock. */
  readonly occurredAt: number;
  /** The API client that the event belongs to. */
  readonly apiClientId: string;
}

/** The fields of every outbound event of a known type (EVT-3). */
interface OutboundFields extends CommonFields {
  readonly direction: "outbound";
  /** The message; the same value as `data.messageId`. */
  readonly messageId: string;
  /** The event's place among its message's events, 0 to 10,000: queued 1, sent 2, delivery 3. There can be gaps (EVT-8, EVT-9). */
  readonly sequence: number;
}

/** Why a message failed (EVT-6). */
export interface MessageError {
  /** Machine-readable; `PROVIDER_SEND_FAILED` has been seen. */
  readonly code: OpenString<"PROVIDER_SEND_FAILED">;
  /** Human-readable text. */
  readonly message: string;
  /** Free-form; can be empty. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** `data` of the four outbound events (EVT-4). */
interface OutboundData<Status extends string> {
  readonly messageId: string;
  /** From the send request; shared by all recipients of that request, so correlate by `messageId`. */
  readonly externalReference: string;
  /** The sending number in E.164 (the send request named it by its number id). */
  readonly sendFrom: string;
  /** The recipient, in E.164. */
  readonly to: string;
  /** Spelled as the service does: `QUEUED` in capitals, the others not (EVT-5). */
  readonly status: OpenString<Status>;
  /** Null unless the message failed. */
  readonly error: MessageError | null;
}

/** `data` of `message.delivery`. */
interface DeliveryData extends OutboundData<"delivered"> {
  /** The provider's reference (EVT-7). Optional, because an outcome that the specification does not show may lack it (EVT-13). */
  readonly providerMessageRef?: string | null | undefined;
}

/** `data` of `message.failed`. */
interface FailedData extends OutboundData<"failed"> {
  readonly error: MessageError;
}

/** `data` of `message.inbound` (EVT-10). */
interface InboundData {
  /** The inbound message; it has no top-level `messageId`. */
  readonly messageId: string;
  readonly conversationId: string;
  /** The receiving number's id. */
  readonly numberId: string;
  /** The customer's number. */
  readonly from: string;
  /** The receiving number. */
  readonly to: string;
  /** The text of the message. */
  readonly body: string;
  /** The specification shows no fields of an element (EVT-11): check before use. */
  readonly media: readonly unknown[];
  /** Epoch milliseconds. */
  readonly timestamp: number;
}

/** A message was queued after a send request; usually sequence 1. It may arrive before the send request's answer. */
export interface MessageQueuedEvent extends OutboundFields {
  readonly eventType: "message.queued";
  readonly data: OutboundData<"QUEUED">;
}

/** A message has been sent; usually sequence 2. */
export interface MessageSentEvent extends OutboundFields {
  readonly eventType: "message.sent";
  readonly data: OutboundData<"sent">;
}

/** A message was delivered; usually sequence 3. Look at `data.status`: others than `delivered` are possible (EVT-13). */
export interface MessageDeliveryEvent extends OutboundFields {
  readonly eventType: "message.delivery";
  readonly data: DeliveryData;
}

/** A send failed; it ends the message's events (EVT-9). */
export interface MessageFailedEvent extends OutboundFields {
  readonly eventType: "message.failed";
  readonly data: FailedData;
}

/** A customer's message arrived. It has neither a sequence nor a top-level message id (RCV-10). */
export interface MessageInboundEvent extends CommonFields {
  readonly eventType: "message.inbound";
  readonly direction: "inbound";
  readonly data: InboundData;
}

/** The event of each known type. */
export interface EventByType {
  "message.queued": MessageQueuedEvent;
  "message.sent": MessageSentEvent;
  "message.delivery": MessageDeliveryEvent;
  "message.failed": MessageFailedEvent;
  "message.inbound": MessageInboundEvent;
}

/** The event types that the specification lists (EVT-1). */
export type KnownEventType = keyof EventByType;

/** An event of a type that the specification lists. */
export type KnownEvent = EventByType[KnownEventType];

/**
 * An unknown event type: at run time a plain string of 1 to 512 characters.
 *
 * It is declared as an enum (no code) because TypeScript has no "string except these": with `string` here, comparing
 * `event.eventType` could not narrow a {@link WebhookEvent}, and a misspelled type such as `message.delivered` would compile. To
 * compare it with a type of your own, widen it first: `const type: string = event.eventType`.
 */
declare enum UnknownEventType {
  one = "any string that is not a known event type",
  other = "any other string that is not a known event type",
}

export type { UnknownEventType };

/**
 * An event of a type that this version does not know (RCV-11). Only `eventType` has been checked. Every other field is as
 * the service sent it, so check before use.
 */
export interface UnknownEvent {
  /** 1 to 512 characters. */
  readonly eventType: UnknownEventType;
  /** `outbound` or `inbound` in all known events. */
  readonly direction?: unknown;
  readonly apiClientId?: unknown;
  readonly messageId?: unknown;
  /** An outbound event with string ids and an integer here (0 to 10,000) gets its place in the message's lane. */
  readonly sequence?: unknown;
  /** Epoch milliseconds in all known events. */
  readonly occurredAt?: unknown;
  readonly data?: unknown;
  readonly [field: string]: unknown;
}

/**
 * Any event. Comparing its `eventType` with a known type narrows it; so does {@link isKnownEvent}. Fields that the
 * specification does not show are kept as they came, without a type.
 */
export type WebhookEvent = KnownEvent | UnknownEvent;

/** An outbound event of a known type. */
export type OutboundEvent = Exclude<KnownEvent, MessageInboundEvent>;

/** An outbound event of a type that this version does not know, with the fields that give it a place among its message's events. */
export interface UnknownOutboundEvent extends UnknownEvent {
  readonly direction: "outbound";
  readonly apiClientId: string;
  readonly messageId: string;
  /** 0 to 10,000. */
  readonly sequence: number;
}

/** An event that arrived after its place among its message's events had passed. Always outbound: only those have such a place. */
export type LateEvent = OutboundEvent | UnknownOutboundEvent;
