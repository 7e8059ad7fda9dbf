/** An event: its body, the faults of the event as a whole, its record, and its delivery. */
import { type EventAction, type Faults, UNKNOWN_EVENT_TYPE } from "../faults.ts";
import type { Deliveries, EmulatorParts, TriggerInput } from "../service.ts";
import type { Delivery, EventRecord, InboundMessage, Message } from "../state/records.ts";
import { END_LATEST_MS } from "./plan.ts";

// The body of an event, with its fields in the specification's order.

export interface EventError {
  readonly code: string;
  readonly message: string;
}

/** What an outbound event says besides the message itself. */
interface OutboundFacts {
  readonly eventType: string;
  readonly sequence: number;
  /** `data.status`: upper case for QUEUED, lower case for the others (EVT-5). */
  readonly status: string;
  readonly occurredAt: number;
  /** Null unless it failed (EVT-6). */
  readonly error: EventError | null;
}

type EventBody = Readonly<Record<string, unknown>> & { readonly data: Readonly<Record<string, unknown>> };

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

// What fault rules do to an event as a whole, before its first attempt.

/** An event on its way out. */
interface OutgoingEvent {
  readonly eventType: string;
  readonly body: EventBody;
  readonly attemptDelayMs: number;
  readonly copies: number;
}

/**
 * How long `reorder` holds an event back. Whatever follows in its message has had its first attempt by then: the instant
 * lifecycle is over at once and the realistic one after 10 s. In the manual one it depends on who advances the message.
 */
const HELD_BACK_MS = END_LATEST_MS + 5_000;

/** The event as it goes out after these faults; `drop` goes before `duplicate`. */
function withFaults(event: OutgoingEvent, actions: readonly EventAction[]): OutgoingEvent {
  const faulty = actions.reduce(withFault, event);
  return actions.some(({ type }) => type === "drop") ? { ...faulty, copies: 0 } : faulty;
}

function withFault(event: OutgoingEvent, action: EventAction): OutgoingEvent {
  switch (action.type) {
    case "duplicate":
      return { ...event, copies: event.copies + 1 };
    case "delay":
      return { ...event, attemptDelayMs: event.attemptDelayMs + action.ms };
    case "reorder":
      return { ...event, attemptDelayMs: event.attemptDelayMs + HELD_BACK_MS };
    case "unknownEventType":
      return { ...event, eventType: UNKNOWN_EVENT_TYPE, body: { ...event.body, eventType: UNKNOWN_EVENT_TYPE } };
    case "extraFields":
      return { ...event, body: withExtraFields(event.body) };
    case "drop":
    case "eventBeforeResponse":
      return event;
    default:
      return action satisfies never;
  }
}

/** Fields that the specification does not have, among the known ones and of every JSON type. */
function withExtraFields({ data, ...top }: EventBody): EventBody {
  return {
    ...top,
    schemaVersion: "0.3.0",
    routing: { region: "west", hops: [1, 2] },
    data: { ...data, segments: 1, carrier: null, priced: true },
  };
}

// Makes an event: its record, its line in the journal, and its handing over.

/** Something that happened, to be told by an event. */
export interface Happening
  extends Pick<EventRecord, "kind" | "eventType" | "apiClientId" | "numberId" | "messageId" | "sequence"> {
  readonly at: number;
  readonly body: EventBody;
  readonly attemptDelayMs: number;
  readonly copies: number;
}

interface Told {
  readonly event: EventRecord;
  /** Those that the answer to the send has to wait for, by the fault `eventBeforeResponse`. */
  readonly awaited: readonly Delivery[];
}

export type Tell = (happening: Happening) => Told;

export function createTell({ state, journal }: EmulatorParts, deliveries: Deliveries, faults: Faults): Tell {
  return (happening) => {
    const { kind, apiClientId, numberId, messageId, sequence, at } = happening;
    const eventId = state.nextId("evt");
    const actions = faults.forEvent({ eventId, eventType: happening.eventType, messageId });
    const { eventType, body, attemptDelayMs, copies } =
      actions.length === 0 ? happening : withFaults(happening, actions);
    const event: EventRecord = {
      eventId,
      kind,
      eventType,
      apiClientId,
      numberId,
      messageId,
      sequence,
      occurredAt: at,
      body: JSON.stringify(body),
    };
    state.events.put(eventId, event);
    // Before listeners are called: one may continue the message, and its next event comes after this one.
    const queued = deliveries.queue(event, { at, delayMs: attemptDelayMs, copies });
    journal.tell({ type: "event", event });
    for (const delivery of queued) {
      // Not when a watcher has just put another state in the place of this one.
      if (state.deliveries.get(delivery.deliveryId) === delivery) journal.tell({ type: "delivery", delivery });
    }
    // An attempt that comes late anyway is not waited for: on a clock that stands still it would never come.
    const awaited = attemptDelayMs === 0 && actions.some(({ type }) => type === "eventBeforeResponse") ? queued : [];
    return { event, awaited };
  };
}
