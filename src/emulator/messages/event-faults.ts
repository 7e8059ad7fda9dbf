/** What fault rules do to an event as a whole, before its first attempt. */
import { type EventAction, UNKNOWN_EVENT_TYPE } from "../faults/actions.ts";
import type { EventBody } from "./event-body.ts";
import { END_LATEST_MS } from "./plan.ts";

/** An event on its way out. */
export interface OutgoingEvent {
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
export function withFaults(event: OutgoingEvent, actions: readonly EventAction[]): OutgoingEvent {
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
