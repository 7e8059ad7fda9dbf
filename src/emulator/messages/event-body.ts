/** The body of an event, with its fields in the specification's order. */
import type { TriggerInput } from "../service.ts";
import type { InboundMessage, Message } from "../state/records.ts";

export interface EventError {
  readonly code: string;
  readonly message: string;
}

/** What an outbound event says besides the message itself. */
export interface OutboundFacts {
  readonly eventType: string;
  readonly sequence: number;
  /** `data.status`: upper case for QUEUED, lower case for the others (EVT-5). */
  readonly status: string;
  readonly occurredAt: number;
  /** Null unless it failed (EVT-6). */
  readonly error: EventError | null;
}

export type EventBody = Readonly<Record<string, unknown>> & { readonly data: Readonly<Record<string, unknown>> };

/** An event of an outbound message (EVT-2 to EVT-7). */
export function outboundBody(message: Message, facts: OutboundFacts): EventBody {
  const { eventType, sequence, status, occurredAt, error } = facts;
  const { messageId, providerMessageRef } = message;
  return {
    eventType,
    direction: "outbound",
    occurredAt,
    apiClientId: message.apiClientId,
    messageId,
    sequence,
    data: {
      messageId,
      externalReference: message.externalReference,
      // The number itself, where the request had its id (EVT-4).
      sendFrom: message.from,
      to: message.to,
      status,
      error: error === null ? null : { code: error.code, message: error.message, details: {} },
      ...(eventType === "message.delivery" ? { providerMessageRef } : {}),
    },
  };
}

/** A customer's message: neither sequence nor a messageId of its own (EVT-3, EVT-10). */
export function inboundBody(message: InboundMessage): EventBody {
  return {
    eventType: "message.inbound",
    direction: "inbound",
    occurredAt: message.createdAt,
    apiClientId: message.apiClientId,
    data: {
      messageId: message.messageId,
      conversationId: message.conversationId,
      numberId: message.numberId,
      from: message.from,
      to: message.to,
      body: message.text,
      media: message.media,
      timestamp: message.createdAt,
    },
  };
}

/** Any event that somebody asks for, its data as given. */
export function triggeredBody(event: TriggerInput, occurredAt: number): EventBody {
  const { kind, eventType, apiClientId, messageId, sequence, data } = event;
  return {
    eventType,
    direction: kind === "inbound" ? "inbound" : "outbound",
    occurredAt,
    apiClientId,
    ...(kind === "inbound" ? {} : { messageId }),
    ...(sequence === null ? {} : { sequence }),
    data,
  };
}
